#pragma once
// An UtteranceEngine that does nothing by itself: the test sees what was asked of it and plays the engine's thread.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tts/engine/utterance_engine.h"

namespace tts::test {

// Thread-safe. Utterances are addressed by their order of submission, from 0.
class FakeUtteranceEngine final : public engine::UtteranceEngine {
 public:
  struct Utterance {
    engine::UtteranceId id = 0;
    engine::UtteranceRequest request;
    std::shared_ptr<engine::UtteranceSink> sink;  // null after the final call
    bool cancelled = false, paused = false, pause_seen = false;
    TimePoint runs_dry_at{};  // as last reported; zero = nothing was
  };

  Result<engine::UtteranceId> submit(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink) override {
    const std::lock_guard lock(mutex_);
    if (stopped_) return Error{ErrorCode::kUnavailable, "stopped", {}, {}};
    if (!refusals_.empty()) {
      auto error = std::move(refusals_.front());
      refusals_.pop_front();
      return error;
    }
    const auto id = next_id_++;
    utterances_.push_back({id, std::move(request), std::move(sink)});
    changed_.notify_all();
    return id;
  }

  void cancel(engine::UtteranceId id) noexcept override {
    change(id, [](Utterance& utterance) { utterance.cancelled = true; });
  }
  void set_paused(engine::UtteranceId id, bool paused) noexcept override {
    change(id, [paused](Utterance& utterance) {
      utterance.paused = paused;
      utterance.pause_seen |= paused;
    });
  }
  void set_runs_dry_at(engine::UtteranceId id, TimePoint when) noexcept override {
    change(id, [when](Utterance& utterance) { utterance.runs_dry_at = when; });
  }
  engine::EngineLoad load() const override {
    const std::lock_guard lock(mutex_);
    return load_;
  }
  engine::EngineHealth health() const override {
    const std::lock_guard lock(mutex_);
    return health_;
  }

  void set_load(engine::EngineLoad load) {
    const std::lock_guard lock(mutex_);
    load_ = load;
  }
  void set_health(engine::EngineHealth health) {
    const std::lock_guard lock(mutex_);
    health_ = std::move(health);
  }
  void refuse_next(Error error) {  // the next submission not yet refused
    const std::lock_guard lock(mutex_);
    refusals_.push_back(std::move(error));
  }

  std::size_t submitted() const {
    const std::lock_guard lock(mutex_);
    return utterances_.size();
  }
  Utterance utterance(std::size_t index) const {
    const std::lock_guard lock(mutex_);
    return utterances_.at(index);
  }
  template <class Predicate>
  void wait_until(Predicate holds) {  // holds(const std::vector<Utterance>&); blocks until true
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return holds(std::as_const(utterances_)); });
  }
  void wait_submitted(std::size_t count) {
    wait_until([count](const auto& all) { return all.size() >= count; });
  }

  void pcm(std::size_t index, std::span<const float> samples, bool last = false) { utterance(index).sink->on_pcm(samples, last); }
  void done(std::size_t index, engine::UtteranceSummary summary = {}) { take_sink(index)->on_done(summary); }
  void fail(std::size_t index, Error error) { take_sink(index)->on_error(error); }

  // Refuses everything from now on and gives whoever still waits a final call.
  void stop() {
    std::vector<std::shared_ptr<engine::UtteranceSink>> waiting;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      for (auto& utterance : utterances_) {
        if (utterance.sink) waiting.push_back(std::exchange(utterance.sink, nullptr));
      }
    }
    for (const auto& sink : waiting) sink->on_error({ErrorCode::kUnavailable, "stopped", {}, {}});
  }

 private:
  template <class Change>
  void change(engine::UtteranceId id, Change apply) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(utterances_.begin(), utterances_.end(), [id](const auto& utterance) { return utterance.id == id; });
    if (found != utterances_.end()) apply(*found);
    changed_.notify_all();
  }

  std::shared_ptr<engine::UtteranceSink> take_sink(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return std::exchange(utterances_.at(index).sink, nullptr);
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Utterance> utterances_;
  std::deque<Error> refusals_;
  engine::EngineLoad load_{.queued = 0, .active = 0, .max_active = 4, .max_queued = 16};
  engine::EngineHealth health_{.ready = true, .last_progress = {}, .detail = {}};
  engine::UtteranceId next_id_ = 1;
  bool stopped_ = false;
};

}  // namespace tts::test
