#pragma once
// An engine loop on a machine made of numbers: steps and decodes take what a cost table says, on a manual clock, and listeners with
// playback clocks of their own hear what comes.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine_loop.h"
#include "support/fake_engine.h"
#include "support/manual_clock.h"
#include "tts/base/playback_clock.h"

namespace tts::scheduling {

struct MachineCosts {  // milliseconds
  double step = 1, row = 0.1, prompt_token = 0.02;
  double decode = 0.5, decoder_step = 0.05;  // a step the decoder computes: new, flushed or computed ahead
  // A row whose keys and values are not among those of the `cached_rows` read last has to fetch them.
  double fetch = 0;
  std::size_t cached_rows = 0;
  double park = 0.5;  // a row out of its slot, or back into one
};

class Listener final : public engine::UtteranceSink {
 public:
  explicit Listener(const Clock& clock, double pace = 1) : clock_(clock), pace_(pace), arrived_(clock.now()) {}

  void on_pcm(std::span<const float> samples, bool) override {
    const TimePoint now = clock_.now();
    if (!playback_.started()) first_sound_ = now - arrived_;
    if (playback_.started() && playback_.left(now) < Duration(0)) {
      silence_ -= playback_.left(now);
      ++gaps_;
    }
    playback_.deliver(now, std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(samples.size()) * 1e9 / 24000 / pace_)));
    samples_ += samples.size();
    most_ahead_ = std::max(most_ahead_, playback_.left(now));
  }
  void on_done(const engine::UtteranceSummary&) override { done_at_ = clock_.now(); }
  void on_error(const Error& error) override { error_ = error.code; }

  bool done() const noexcept { return done_at_.has_value(); }
  TimePoint done_at() const { return done_at_.value(); }
  TimePoint arrived() const noexcept { return arrived_; }
  std::optional<ErrorCode> error() const noexcept { return error_; }
  std::optional<Duration> first_sound() const noexcept { return first_sound_; }
  Duration silence() const noexcept { return silence_; }  // after the first sound
  int gaps() const noexcept { return gaps_; }
  std::uint64_t samples() const noexcept { return samples_; }
  Duration left() const noexcept { return playback_.left(clock_.now()); }
  Duration most_ahead() const noexcept { return most_ahead_; }

 private:
  const Clock& clock_;
  const double pace_;
  const TimePoint arrived_;
  PlaybackClock playback_;
  std::optional<Duration> first_sound_;
  std::optional<TimePoint> done_at_;
  std::optional<ErrorCode> error_;
  Duration silence_{0}, most_ahead_{0};
  int gaps_ = 0;
  std::uint64_t samples_ = 0;
};

struct Wish {
  std::uint32_t prompt = 60;  // tokens
  std::uint32_t steps = 240;  // about 5 s of sound
  engine::Delivery delivery = engine::Delivery::kStreamed;
  engine::Latency latency = engine::Latency::kDefault;
  std::uint64_t listener = 0;
  TimePoint runs_dry_at{};
  double pace = 1;
};

class Simulation {
 public:
  explicit Simulation(MachineCosts costs, SchedulerOptions options = {}, std::uint32_t lookahead = 31, std::uint32_t max_pending = 32)
      : costs_(costs), options_(std::move(options)), engine_(engine_options(options_, lookahead, max_pending), control) {
    control->step_work = [this](std::span<const engine::StepWork> work) {
      double tokens = 0;
      std::uint32_t rows = 0, fetched = 0;
      for (const auto& one : work) {
        tokens += one.prefill_tokens;
        rows += one.prefill_tokens == 0 ? 1 : 0;
        fetched += one.prefill_tokens == 0 && read(one.slot.index) ? 1 : 0;
      }
      most_prefill_ = std::max(most_prefill_, tokens);
      steps += rows;
      spend(costs_.step + costs_.row * rows + costs_.fetch * fetched + costs_.prompt_token * tokens);
    };
    control->decode_work = [this, lookahead](std::span<const engine::DecodeWork> work) {
      double steps = 0;
      ++decodes;
      for (const auto& one : work) {
        const auto ahead = std::min(one.lookahead, lookahead);
        steps += one.steps + (one.last ? lookahead : lookahead - ahead);
        lookaheads.push_back(one.last ? lookahead : ahead);
      }
      spend(costs_.decode + costs_.decoder_step * steps);
    };
    control->before_park = control->before_unpark = [this] { spend(costs_.park); };
  }

  std::shared_ptr<Listener> listener(double pace = 1) { return std::make_shared<Listener>(clock, pace); }

  Result<engine::UtteranceId> submit(const Wish& wish, const std::shared_ptr<Listener>& listener) {
    engine::UtteranceRequest request;
    request.prompt.tokens.assign(wish.prompt, 7);
    request.sampling.min_steps = wish.steps;
    request.sampling.max_steps = wish.steps;
    request.sampling.seed = ++seed_;
    request.delivery = wish.delivery;
    request.latency = wish.latency;
    request.listener = wish.listener;
    request.runs_dry_at = wish.runs_dry_at;
    request.pace = wish.pace;
    return mailbox.post(std::move(request), listener);
  }

  // A listener who asks now; null = refused.
  std::shared_ptr<Listener> ask(const Wish& wish = {}) {
    auto who = listener(wish.pace);
    auto id = submit(wish, who);
    if (id.ok()) {
      last_id = *id;
      return who;
    }
    refusal = id.error();
    return nullptr;
  }

  void set_paused(engine::UtteranceId id, bool paused) {
    mailbox.set_paused(id, paused);
    if (paused) {
      paused_.insert(id);
    } else {
      paused_.erase(id);
    }
  }

  // Turns until then; arrivals may come from `each_turn`.
  void run_until(TimePoint end, const std::function<void()>& each_turn = {}) {
    while (clock.now() < end) {
      if (each_turn) each_turn();
      const auto turn = loop.turn();
      if (!turn.worked) {
        if (loop.active() > 0 && paused_.empty()) ++stood_still;
        constexpr Duration kNap = std::chrono::milliseconds(1);
        clock.advance(std::max(Duration(1), std::min({kNap, end - clock.now(), turn.wake_at - clock.now()})));
      }
    }
  }
  void run_for(Duration time, const std::function<void()>& each_turn = {}) { run_until(clock.now() + time, each_turn); }

  // As a server warms up: a sentence alone, then a few together.
  void warm_up() {
    for (const int together : {1, 4}) {
      std::vector<std::shared_ptr<Listener>> all;
      for (int i = 0; i < together; ++i) all.push_back(ask({.steps = 100}));
      while (std::any_of(all.begin(), all.end(), [](const auto& one) { return !one->done(); })) run_for(std::chrono::milliseconds(10));
    }
    lookaheads.clear();
    most_prefill_ = 0;
  }

  double most_prefill() const noexcept { return most_prefill_; }  // prompt positions of one step
  void set_costs(MachineCosts costs) { costs_ = costs; }
  bool exports(const std::string& line) const { return metrics.render().find(line) != std::string::npos; }

  std::shared_ptr<test::FakeEngineControl> control = std::make_shared<test::FakeEngineControl>();
  test::ManualClock clock;
  observability::Metrics metrics;
  std::vector<std::uint32_t> lookaheads;  // of all decodes
  int decodes = 0;
  std::uint64_t steps = 0;  // of all rows
  int stood_still = 0;  // turns in which utterances had slots, nobody paused, and nothing was done
  engine::UtteranceId last_id = 0;
  std::optional<Error> refusal;

 private:
  static test::FakeEngineOptions engine_options(const SchedulerOptions& options, std::uint32_t lookahead, std::uint32_t max_pending) {
    test::FakeEngineOptions engine;
    engine.info.max_slots = options.max_batch;
    engine.info.max_rows_per_step = options.max_batch + 64;
    engine.info.lookahead_steps = lookahead;
    engine.info.max_pending_steps = max_pending;
    engine.steps_of = [](const auto&) { return 0U; };  // min_steps decides
    return engine;
  }
  // Whether the row had to fetch what it reads.
  bool read(std::uint32_t slot) {
    const auto found = std::find(cached_.begin(), cached_.end(), slot);
    const bool missed = found == cached_.end();
    if (!missed) cached_.erase(found);
    cached_.push_back(slot);
    if (cached_.size() > costs_.cached_rows) cached_.erase(cached_.begin());
    return missed;
  }
  void spend(double milliseconds) { clock.advance(std::chrono::nanoseconds(static_cast<std::int64_t>(milliseconds * 1e6))); }

  MachineCosts costs_;
  SchedulerOptions options_;
  test::FakeEngine engine_;
  std::uint64_t seed_ = 0;
  double most_prefill_ = 0;
  std::vector<std::uint32_t> cached_;  // slots, the one read last at the end
  std::set<engine::UtteranceId> paused_;

 public:
  Mailbox mailbox{options_.max_queue, options_.max_wait, clock, metrics};
  Progress progress{{}, clock.now()};
  EngineLoop loop{engine_, options_, clock, metrics, mailbox, progress};
};

}  // namespace tts::scheduling
