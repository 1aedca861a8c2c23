#pragma once
// A StepEngine without a model: every sample is a pure function of prompt, parameters and position, so a test can say what an
// utterance must sound like whatever shares its batch. It keeps the rules of the interface and notes every breach of them.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tts/engine/step_engine.h"

namespace tts::test {

inline std::uint64_t mix64(std::uint64_t x) noexcept {  // splitmix64's finaliser
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

struct FakeEngineOptions {
  engine::EngineInfo info{.model = "fake",
                          .device = "cpu",
                          .sample_rate = 24000,
                          .samples_per_step = 512,
                          .max_slots = 32,
                          .max_context = 4096,
                          .max_rows_per_step = 64,
                          .max_pending_steps = 64,
                          .lookahead_steps = 0,
                          .precision = {}};
  std::int32_t vocabulary = 100000;  // token ids must be below
  std::size_t parking_bytes = 1 << 20;  // of any utterance; 0 = the engine cannot park
  // Instead of that step, counted from 0, the values are not finite.
  std::function<std::optional<std::uint32_t>(const engine::UtterancePrompt&)> breaks_at = [](const engine::UtterancePrompt&) {
    return std::nullopt;
  };
  // Steps an utterance generates before its end token (audio steps, or tokens in the text stage); cut by max_steps.
  std::function<std::uint32_t(const engine::UtterancePrompt&)> steps_of = [](const engine::UtterancePrompt& prompt) {
    return static_cast<std::uint32_t>(prompt.tokens.size()) * 2;
  };
};

// What the fake would say, worked out without it.
class FakeVoice {
 public:
  FakeVoice(const engine::UtterancePrompt& prompt, const engine::SamplingParams& sampling) : key_(mix64(sampling.seed + 1)) {
    for (const auto token : prompt.tokens) key_ = mix64(key_ ^ static_cast<std::uint64_t>(token));
    if (prompt.speaker) {
      for (const float value : *prompt.speaker) key_ = mix64(key_ ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(value * 1000.0F)));
    }
    key_ = mix64(key_ ^ static_cast<std::uint64_t>(sampling.temperature[0] * 1000.0F));
  }

  float sample(std::uint64_t position) const noexcept {  // within (-0.5, 0.5)
    return static_cast<float>(static_cast<std::int32_t>(mix64(key_ + position) & 0xFFFFU) - 0x8000) / 65536.0F;
  }
  std::int32_t token(std::uint32_t step) const noexcept { return static_cast<std::int32_t>(mix64(key_ ^ step) % 1000); }

  // The whole utterance of `steps` audio steps.
  std::vector<float> all(std::uint32_t steps, std::uint32_t samples_per_step = 512) const {
    std::vector<float> samples(total_samples(steps, samples_per_step));
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = sample(i);
    return samples;
  }

  static std::uint64_t total_samples(std::uint64_t steps, std::uint32_t samples_per_step) noexcept {
    return steps == 0 ? 0 : steps * samples_per_step - samples_per_step / 2;
  }

 private:
  std::uint64_t key_;
};

// The test's hold on a fake engine that was moved into a scheduler. Hooks run on the engine's thread before the call takes effect;
// a hook that throws is a device failure, one that blocks is a hang. Set them before the engine starts. The rest is thread-safe.
struct FakeEngineControl {
  std::function<void(std::uint64_t call)> before_step;    // calls count from 1
  std::function<void(std::uint64_t call)> before_decode;  // likewise
  std::function<void()> before_acquire;
  std::function<void()> before_park;    // throws: the utterance stays in its slot
  std::function<void()> before_unpark;  // throws: it stays parked
  std::function<void(std::span<const engine::StepWork> work)> step_work;      // what the call is about, after before_step
  std::function<void(std::span<const engine::DecodeWork> work)> decode_work;  // likewise
  engine::EngineStats stats;  // what the engine says; engine's thread once it runs
  std::atomic<std::uint64_t> step_calls{0};
  std::atomic<std::uint64_t> decode_calls{0};
  std::atomic<std::uint64_t> rows_stepped{0};
  std::atomic<std::uint32_t> slots_in_use{0};
  std::atomic<std::uint32_t> most_slots_in_use{0};
  std::atomic<std::uint32_t> parked{0};
  std::atomic<std::uint32_t> most_parked{0};

  void note_breach(const std::string& what) {
    const std::lock_guard lock(mutex_);
    breaches_.push_back(what);
  }
  std::vector<std::string> breaches() const {  // rules of StepEngine that its caller broke
    const std::lock_guard lock(mutex_);
    return breaches_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> breaches_;
};

// A hook that fails on the given calls.
inline std::function<void(std::uint64_t)> fail_on_calls(std::vector<std::uint64_t> calls) {
  return [calls = std::move(calls)](std::uint64_t call) {
    if (std::find(calls.begin(), calls.end(), call) != calls.end()) throw std::runtime_error("device lost on call " + std::to_string(call));
  };
}

class FakeEngine final : public engine::StepEngine {
 public:
  explicit FakeEngine(FakeEngineOptions options = {}, std::shared_ptr<FakeEngineControl> control = std::make_shared<FakeEngineControl>())
      : options_(std::move(options)), control_(std::move(control)), slots_(options_.info.max_slots) {}

  const engine::EngineInfo& info() const noexcept override { return options_.info; }
  engine::EngineStats stats() const noexcept override { return control_->stats; }

  Result<engine::SlotId> acquire(const engine::UtterancePrompt& prompt, const engine::SamplingParams& sampling) override {
    check_thread();
    if (control_->before_acquire) control_->before_acquire();
    if (prompt.tokens.empty()) return Error{ErrorCode::kInvalidArgument, "the prompt is empty", {}, {}};
    for (const auto token : prompt.tokens) {
      if (token < 0 || token >= options_.vocabulary) return Error{ErrorCode::kInvalidArgument, "token outside the vocabulary", {}, {}};
    }
    const std::uint64_t positions = prompt.tokens.size() + prompt.audio_prompt.size();
    if (positions + sampling.max_steps > options_.info.max_context) return Error{ErrorCode::kTooLarge, "prompt too long", {}, {}};
    const auto free = take_free_slot();
    if (!free) return Error{ErrorCode::kQueueFull, "no free slot", {}, {}};
    auto& slot = slots_[free->index];
    slot.voice.emplace(prompt, sampling);
    slot.text = prompt.stage == engine::Stage::kText;
    slot.prefill_left = static_cast<std::uint32_t>(positions);
    slot.steps_wanted = std::max(options_.steps_of(prompt), sampling.min_steps);
    slot.breaks_at = options_.breaks_at(prompt);
    slot.max_steps = sampling.max_steps;
    return *free;
  }

  std::uint32_t prefill_left(engine::SlotId id) const noexcept override {
    const Slot* slot = find(id);
    return slot ? slot->prefill_left : 0;
  }

  std::uint32_t pending_steps(engine::SlotId id) const noexcept override {
    const Slot* slot = find(id);
    return slot ? slot->pending : 0;
  }

  void step(std::span<const engine::StepWork> work, std::span<engine::StepOutcome> outcomes) override {
    check_thread();
    require(!work.empty() && work.size() == outcomes.size(), "step: sizes of work and outcomes");
    std::uint64_t rows = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
      const Slot& slot = at(work[i].slot);
      rows += std::max(1U, work[i].prefill_tokens);
      require(!slot.poisoned, "step: poisoned slot");
      require(!slot.ended, "step: the utterance has ended");
      require(work[i].prefill_tokens <= slot.prefill_left, "step: more prefill than is left");
      require(work[i].prefill_tokens > 0 || slot.prefill_left == 0, "step: decode step before the prompt is consumed");
      require(slot.pending < options_.info.max_pending_steps || slot.text, "step: pending steps must be decoded first");
      for (std::size_t j = 0; j < i; ++j) require(!(work[j].slot == work[i].slot), "step: a slot twice");
    }
    require(rows <= options_.info.max_rows_per_step, "step: too many rows");
    run_hook(control_->before_step, ++control_->step_calls, work);
    if (control_->step_work) control_->step_work(work);
    control_->rows_stepped += rows;
    for (std::size_t i = 0; i < work.size(); ++i) outcomes[i] = advance(at(work[i].slot), work[i].prefill_tokens);
  }

  std::size_t max_decode_samples(std::uint32_t steps, bool last) const noexcept override {
    return static_cast<std::size_t>(steps + (last ? options_.info.lookahead_steps : 0U)) * options_.info.samples_per_step;
  }

  void decode(std::span<engine::DecodeWork> work) override {
    check_thread();
    require(!work.empty(), "decode: no work");
    for (std::size_t i = 0; i < work.size(); ++i) {
      const Slot& slot = at(work[i].slot);
      require(!slot.poisoned, "decode: poisoned slot");
      require(!slot.text, "decode: text stage");
      require(!slot.flushed, "decode: after the last one");
      require(work[i].steps <= slot.pending, "decode: more steps than are pending");
      require(work[i].pcm.size() >= max_decode_samples(work[i].steps, work[i].last), "decode: buffer too small");
      for (std::size_t j = 0; j < i; ++j) require(!(work[j].slot == work[i].slot), "decode: a slot twice");
    }
    run_hook(control_->before_decode, ++control_->decode_calls, std::span<const engine::DecodeWork>(work));
    if (control_->decode_work) control_->decode_work(work);
    for (auto& item : work) emit(at(item.slot), item);
  }

  void release(engine::SlotId id) noexcept override {
    check_thread();
    if (find(id) == nullptr) return;
    slots_[id.index].in_use = false;
    --control_->slots_in_use;
  }

  std::size_t parking_bytes(engine::SlotId id) const noexcept override { return find(id) == nullptr ? 0 : options_.parking_bytes; }

  Result<std::unique_ptr<engine::ParkedUtterance>> park(engine::SlotId id) override {
    check_thread();
    if (options_.parking_bytes == 0) return StepEngine::park(id);
    require(!at(id).poisoned, "park: poisoned slot");
    if (control_->before_park) control_->before_park();
    auto parked = std::make_unique<Parked>(*this);
    parked->slot = std::move(slots_[id.index]);
    release(id);
    return std::unique_ptr<engine::ParkedUtterance>(std::move(parked));
  }

  Result<engine::SlotId> unpark(std::unique_ptr<engine::ParkedUtterance>& state) override {
    check_thread();
    auto* const parked = dynamic_cast<Parked*>(state.get());
    require(parked != nullptr, "unpark: not parked here");
    const auto free = take_free_slot();
    if (!free) return Error{ErrorCode::kQueueFull, "no free slot", {}, {}};
    if (control_->before_unpark) {
      try {
        control_->before_unpark();
      } catch (...) {
        release(*free);
        throw;
      }
    }
    parked->slot.generation = free->generation;
    slots_[free->index] = std::move(parked->slot);
    state.reset();
    return *free;
  }

  Result<std::vector<engine::CodeFrame>> encode_reference(std::span<const float>) override {
    return Error{ErrorCode::kUnsupported, "the fake has no encoder", {}, {}};
  }

 private:
  struct Slot {
    std::uint32_t generation = 0;
    bool in_use = false, poisoned = false, ended = false, flushed = false, text = false;
    std::uint32_t prefill_left = 0, pending = 0, generated = 0, decoded = 0, steps_wanted = 0, max_steps = 0;
    std::optional<std::uint32_t> breaks_at;
    std::uint64_t emitted = 0;
    std::optional<FakeVoice> voice;
  };

  class Parked final : public engine::ParkedUtterance {
   public:
    explicit Parked(const FakeEngine& engine) : engine_(engine) {
      const auto parked = ++engine_.control_->parked;
      if (parked > engine_.control_->most_parked) engine_.control_->most_parked = parked;
    }
    ~Parked() override {
      engine_.check_thread();
      --engine_.control_->parked;
    }
    std::size_t bytes() const noexcept override { return engine_.options_.parking_bytes; }
    Slot slot;

   private:
    const FakeEngine& engine_;
  };

  std::optional<engine::SlotId> take_free_slot() {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].in_use) continue;
      Slot fresh;
      fresh.generation = slots_[i].generation + 1;
      fresh.in_use = true;
      slots_[i] = std::move(fresh);
      const auto used = ++control_->slots_in_use;
      if (used > control_->most_slots_in_use) control_->most_slots_in_use = used;
      return engine::SlotId{i, slots_[i].generation};
    }
    return std::nullopt;
  }

  const Slot* find(engine::SlotId id) const noexcept {
    if (id.index >= slots_.size()) return nullptr;
    const Slot& slot = slots_[id.index];
    return slot.in_use && slot.generation == id.generation ? &slot : nullptr;
  }

  Slot& at(engine::SlotId id) {
    require(find(id) != nullptr, "dead slot");
    return slots_[id.index];
  }

  void require(bool kept, const char* rule) const {
    if (kept) return;
    control_->note_breach(rule);
    throw std::logic_error(rule);
  }

  void check_thread() const {
    const auto me = std::this_thread::get_id();
    if (owner_ == std::thread::id{}) owner_ = me;
    if (owner_ != me) control_->note_breach("called from a second thread");
  }

  template <class Work>
  void run_hook(const std::function<void(std::uint64_t)>& hook, std::uint64_t call, std::span<const Work> work) {
    if (!hook) return;
    try {
      hook(call);
    } catch (...) {
      for (const auto& item : work) at(item.slot).poisoned = true;
      throw;
    }
  }

  static engine::StepOutcome advance(Slot& slot, std::uint32_t prefill_tokens) {
    slot.prefill_left -= prefill_tokens;
    if (slot.prefill_left > 0) return {};
    engine::StepOutcome outcome;
    if (slot.breaks_at == slot.generated) {
      slot.ended = slot.poisoned = true;
      outcome.stop = engine::StopReason::kFailed;
      return outcome;
    }
    outcome.sampled = true;
    if (slot.generated == slot.steps_wanted) {
      outcome.stop = engine::StopReason::kEndToken;
    } else {
      outcome.token = slot.voice->token(slot.generated);
      outcome.codes[0] = static_cast<std::uint16_t>(outcome.token);
      ++slot.generated;
      if (!slot.text) ++slot.pending;
      if (slot.generated == slot.max_steps) outcome.stop = engine::StopReason::kMaxSteps;
    }
    slot.ended = outcome.stop != engine::StopReason::kNone;
    return outcome;
  }

  void emit(Slot& slot, engine::DecodeWork& item) const {
    slot.pending -= item.steps;
    slot.decoded += item.steps;
    slot.flushed = item.last;
    const auto lookahead = std::min(item.lookahead, options_.info.lookahead_steps);
    const auto held_back = item.last ? 0U : std::min(slot.decoded, lookahead);
    const auto until = FakeVoice::total_samples(slot.decoded - held_back, options_.info.samples_per_step);
    item.samples = 0;
    for (; slot.emitted < until; ++slot.emitted) item.pcm[item.samples++] = slot.voice->sample(slot.emitted);
  }

  FakeEngineOptions options_;
  std::shared_ptr<FakeEngineControl> control_;
  std::vector<Slot> slots_;
  mutable std::thread::id owner_;
};

}  // namespace tts::test
