#pragma once
// StepEngine on tensors: one or several GPUs, or for tests the CPU. Slots over StepProgram and TensorStreamDecoder.
//
// While the caller works on a step's outcome, the device already computes the next step of the same slots (run ahead): a slot holds at
// most one outcome that nobody has asked for yet. It costs one row of work when the slot stops or is released meanwhile, and changes
// no result. decode() overlaps with it: the sound networks have a queue of their own.
//
// A row's bits depend on the sizes its work was padded to (batch_sizes.h), not on what else is in the batch.
//
// Prompts' shared prefixes are not kept: a prompt takes a fraction of a millisecond on the devices this is for.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tts/engine/manifest.h"
#include "tts/engine/step_engine.h"

#include "ops/compute_pool.h"
#include "torch/gpt_tensors.h"
#include "torch/runtime.h"
#include "torch/sound_tensors.h"
#include "torch/step_program.h"
#include "torch/tensor_stream_decoder.h"

namespace tts::model {

// Immutable; engines on the same devices share it.
struct TensorModel {
  std::string name;
  std::uint32_t sample_rate = 24000;
  engine::SpeakerPrecision speaker_precision = engine::SpeakerPrecision::kFloat32;
  GptTensors gpt;
  SoundTensors sound;
};

struct TensorEngineOptions {
  std::uint32_t max_slots = 16;
  std::uint32_t max_context = 1024;
  std::uint32_t max_prefill_rows = 64;
  std::uint32_t max_decode_steps = 32;               // also the most pending steps of a slot
  std::vector<std::uint32_t> preferred_batch_sizes;  // empty = powers of two
  std::optional<bool> run_ahead;                     // nothing = where the runtime runs behind
};

class TensorStepEngine final : public engine::StepEngine {
 public:
  // Where the runtime runs behind, records what utterances will need; blocks for that. Throws std::exception when memory does not suffice.
  TensorStepEngine(std::shared_ptr<const TensorModel> model, std::unique_ptr<Runtime> runtime, const TensorEngineOptions& options);
  ~TensorStepEngine() override;

  const engine::EngineInfo& info() const noexcept override { return info_; }
  Result<engine::SlotId> acquire(const engine::UtterancePrompt& prompt, const engine::SamplingParams& sampling) override;
  std::uint32_t prefill_left(engine::SlotId slot) const noexcept override;
  std::uint32_t pending_steps(engine::SlotId slot) const noexcept override;
  void step(std::span<const engine::StepWork> work, std::span<engine::StepOutcome> outcomes) override;
  std::size_t max_decode_samples(std::uint32_t steps, bool last) const noexcept override;
  void decode(std::span<engine::DecodeWork> work) override;
  void release(engine::SlotId slot) noexcept override;
  std::size_t parking_bytes(engine::SlotId slot) const noexcept override;
  Result<std::unique_ptr<engine::ParkedUtterance>> park(engine::SlotId slot) override;
  Result<engine::SlotId> unpark(std::unique_ptr<engine::ParkedUtterance>& parked) override;
  Result<std::vector<engine::CodeFrame>> encode_reference(std::span<const float> pcm) override;

 private:
  struct Slot {
    std::uint32_t generation = 1;
    bool taken = false;
    bool lost = false;  // its step was on the way when the device failed
    engine::UtterancePrompt prompt;
    engine::SamplingParams sampling;
    std::vector<float> speaker;  // normalised; empty = none
    std::uint32_t lane = 0;
    std::uint32_t prompt_length = 0;
    std::uint32_t consumed = 0;  // positions of the prompt
    std::uint32_t queued = 0;    // steps that the device was given
    std::uint32_t steps = 0;     // generated, the end step excluded
    std::uint32_t pending = 0;
    bool stopped = false;
    std::optional<StepTokens> ready;  // drawn, not yet asked for

    bool in_code_stage() const noexcept { return prompt.stage == engine::Stage::kCode; }
    bool started() const noexcept { return consumed == prompt_length; }
  };
  class Parked;
  struct InFlight {
    engine::SlotId slot;
    std::uint32_t lane;
  };

  Slot* find(engine::SlotId id) noexcept;
  const Slot* find(engine::SlotId id) const noexcept;
  std::uint32_t index_of(const Slot& slot) const noexcept { return static_cast<std::uint32_t>(&slot - slots_.data()); }
  std::uint32_t positions_of(const Slot& slot) const noexcept;  // with keys and values in the cache
  void take_free_lane(Slot& slot, std::uint32_t index) noexcept;

  void run_step(std::span<const engine::StepWork> work, std::span<engine::StepOutcome> outcomes);
  void settle_lanes();
  void take_prompt(Slot& slot, std::uint32_t count);
  void embed(const Slot& slot, std::uint32_t position, std::span<float> out) const;
  void queue_steps();
  void collect();
  engine::StepOutcome finish_step(Slot& slot);
  void run_ahead(std::span<const engine::StepWork> work);
  void lose_steps() noexcept;
  void settle() noexcept;

  const std::shared_ptr<const TensorModel> model_;
  const TensorEngineOptions options_;
  const std::unique_ptr<Runtime> runtime_;
  const std::unique_ptr<Queue> step_queue_, sound_queue_;
  const bool runs_ahead_;
  StepProgram program_;
  TensorStreamDecoder decoder_;
  ops::ComputePool pool_;  // of encode_reference()
  engine::EngineInfo info_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;  // the next one to use is last
  struct Lane {
    bool taken = false, dirty = false;  // dirty: may hold values that are not finite
    std::uint32_t slot = 0;
  };
  std::vector<Lane> lanes_;
  std::vector<InFlight> in_flight_;  // steps on the way
  // Of the current call; reserved at construction.
  std::vector<Slot*> to_queue_;
  std::vector<std::uint32_t> step_lanes_;
  std::vector<float> prompt_rows_;
  std::vector<TensorDecodePush> pushes_;
};

}  // namespace tts::model
