#pragma once
// StepEngine on the CPU: slots over Gpt, Sampler and StreamDecoder, and the compute pool they share.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tts/engine/manifest.h"
#include "tts/engine/step_engine.h"

#include "gpt.h"
#include "gpt_weights.h"
#include "noise.h"
#include "ops/aligned_buffer.h"
#include "ops/compute_pool.h"
#include "prefix_cache.h"
#include "sampler.h"
#include "sound_model.h"
#include "stream_decoder.h"

namespace tts::model {

struct CpuEngineOptions {
  std::string model{}, precision{};  // for EngineInfo
  std::uint32_t sample_rate = 24000;
  std::uint32_t max_slots = 16;
  std::uint32_t max_context = 1024;
  std::uint32_t max_prefill_rows = 64;
  std::uint32_t max_decode_steps = 32;  // also the most pending steps of a slot
  std::uint32_t compute_threads = 1;
  ops::KvFormat kv = ops::KvFormat::kFloat32;
  std::size_t prefix_cache_bytes = 0;  // 0 = no prefix is kept
  engine::SpeakerPrecision speaker_precision = engine::SpeakerPrecision::kFloat32;
};

class CpuStepEngine final : public engine::StepEngine {
 public:
  CpuStepEngine(GptWeights weights, SoundModel sound, const CpuEngineOptions& options);

  std::uint32_t threads() const noexcept { return pool_.workers(); }

  const engine::EngineInfo& info() const noexcept override { return info_; }
  engine::EngineStats stats() const noexcept override;
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
    engine::UtterancePrompt prompt;
    engine::SamplingParams sampling;
    SeededNoise noise;
    RepetitionPenalty repetition_penalty;
    std::vector<float> speaker;                        // normalised; empty = none
    std::shared_ptr<PrefixCache::Entry> prefix_entry;  // to be filled when the prompt's shared prefix has been computed
    std::uint32_t prompt_length = 0;
    std::uint32_t position = 0;  // positions consumed, prompt and generated
    std::uint32_t steps = 0;     // generated, the end step excluded
    bool stopped = false;
    bool broken = false;  // its values are not finite: stopped, and nothing of it is of use
    engine::CodeFrame codes{};  // next input of the code stage
    std::int32_t token = 0;     // next input of the text stage
    std::array<TokenWindow, engine::kCodebooks> recent;
    std::uint32_t pending = 0;

    bool in_code_stage() const noexcept { return prompt.stage == engine::Stage::kCode; }
    bool decodes_hidden() const noexcept { return prompt.mel_path == engine::MelPath::kHidden; }
  };
  class Parked;

  // A row of this step that gets a token.
  struct Draw {
    std::size_t work, row;
    Slot* slot;
    std::array<std::optional<std::uint32_t>, engine::kCodebooks> tokens;  // the text stage uses the first
  };

  Slot* find(engine::SlotId id) noexcept;
  const Slot* find(engine::SlotId id) const noexcept;
  std::size_t index_of(const Slot& slot) const noexcept { return static_cast<std::size_t>(&slot - slots_.data()); }
  std::size_t pending_bytes(const Slot& slot) const noexcept;
  std::span<std::byte> pending_of(const Slot& slot) noexcept;
  float* pending_hidden(const Slot& slot, std::size_t step) noexcept;
  engine::CodeFrame* pending_codes(const Slot& slot, std::size_t step) noexcept;

  void take_prefix(Slot& slot);
  void keep_prefix(Slot& slot);
  void add_rows(Slot& slot, const engine::StepWork& work, std::size_t work_index);
  void embed(const Slot& slot, std::uint32_t position, std::span<float> out) const;
  void draw_token(Draw& draw, std::uint32_t codebook, Sampler& sampler);
  engine::StepOutcome finish_step(const Draw& draw);

  GptWeights weights_;
  SoundModel sound_;
  CpuEngineOptions options_;
  ops::ComputePool pool_;
  Gpt gpt_;
  PrefixCache prefixes_;
  StreamDecoder stream_decoder_;
  engine::EngineInfo info_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;         // the next one to use is last
  std::vector<Sampler> samplers_;                 // one a worker
  ops::AlignedBuffer pending_hidden_;             // [slot][step][hidden]
  std::vector<engine::CodeFrame> pending_codes_;  // [slot][step]
  // Of the current call; reserved at construction.
  std::vector<GptRow> rows_;
  std::vector<Draw> draws_;
  std::vector<DecodePush> pushes_;
};

}  // namespace tts::model
