#pragma once
// One model on one device, driven a step at a time.
//
// Thread: every call comes from one thread (the scheduling thread); nothing here is thread-safe except info().
// Blocking: step() and decode() return when the computation is done. Nothing allocates after construction except acquire() and park().
// Errors: acquire() and encode_reference() validate and return Result. step() and decode() throw std::exception only when
// the device failed; every slot that took part is then poisoned and must be released, other slots stay valid.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tts/base/result.h"
#include "tts/engine/utterance.h"

namespace tts::engine {

struct EngineInfo {
  std::string model;                    // manifest name
  std::string device;                   // "cpu", "cuda:0"
  std::uint32_t sample_rate = 24000;    // Hz, mono
  std::uint32_t samples_per_step = 512;
  std::uint32_t max_slots = 0;          // concurrent utterances
  std::uint32_t max_context = 0;        // prompt + generated steps per slot, in positions
  std::uint32_t max_rows_per_step = 0;  // decode rows + prefill tokens of one step() call
  std::uint32_t max_pending_steps = 0;  // generated steps a slot may hold before decode() must take them
  std::uint32_t lookahead_steps = 0;    // steps the streaming decoder holds back in exact mode; 0 = none
  std::string precision{};              // for people: "int8 weights, int8 KV, bf16 sound"; empty = nothing to say
};

// Counted since the start.
struct EngineStats {
  std::uint64_t prefix_cache_hits = 0, prefix_cache_misses = 0;  // of utterances with a shared prefix
  std::size_t prefix_cache_bytes = 0;                            // held now
};

// DecodeWork::lookahead: wait for the whole receptive field, so that samples equal those of decoding everything at once.
inline constexpr std::uint32_t kExactLookahead = ~std::uint32_t{0};

// One row of work. Before its prompt is consumed a slot only takes prefill work; afterwards only decode steps.
struct StepWork {
  SlotId slot;
  std::uint32_t prefill_tokens = 0;  // 0 = one decode step; n = consume the next n prompt positions
};

struct StepOutcome {
  bool sampled = false;    // a step was generated (false while a prompt is only partly consumed)
  // kEndToken: the sampled step is the end and is not audio; kMaxSteps: it is the last audio; kFailed: the model's values for this slot
  // are not finite, nothing was sampled, and only release() is left. Others in the batch are none the worse.
  StopReason stop = StopReason::kNone;
  CodeFrame codes{};       // code stage, valid when sampled
  std::int32_t token = 0;  // text stage, valid when sampled
};

struct DecodeWork {
  SlotId slot;
  std::uint32_t steps = 0;  // pending steps to push through Decoder and vocoder, <= the slot's pending count
  bool last = false;        // no more steps will come: also flush everything held back
  // Generated steps that a sample must be followed by before it is written; kExactLookahead, or anything from lookahead_steps up, =
  // exact. Less = sooner but approximate: such samples are computed as if nothing followed the newest step, and never revised. May
  // differ from call to call; a call whose lookahead grew may write nothing, samples are neither repeated nor left out.
  std::uint32_t lookahead = kExactLookahead;
  std::span<float> pcm;     // out; at least max_decode_samples(steps, last) long
  std::size_t samples = 0;  // out; samples written to the front of `pcm`
};

// All that an utterance had in its slot, in host memory, until it gets a slot again or is given up, which is its destruction. Belongs to
// the engine that made it and to that engine's thread.
class ParkedUtterance {
 public:
  virtual ~ParkedUtterance() = default;
  virtual std::size_t bytes() const noexcept = 0;
};

class StepEngine {
 public:
  virtual ~StepEngine() = default;

  virtual const EngineInfo& info() const noexcept = 0;
  virtual EngineStats stats() const noexcept { return {}; }

  // Claims a free slot for the utterance. kQueueFull when none is free; kInvalidArgument or kTooLarge when the prompt is
  // empty, holds ids outside the vocabulary, a sampling value is out of range, or prompt + max_steps exceeds max_context;
  // kEngineFailure when a part of the model that only some prompts need cannot be read any more.
  virtual Result<SlotId> acquire(const UtterancePrompt& prompt, const SamplingParams& sampling) = 0;

  // Prompt positions not yet consumed; 0 = the slot is decoding.
  virtual std::uint32_t prefill_left(SlotId slot) const noexcept = 0;

  // Generated steps not yet given to decode(). Always 0 in the text stage.
  virtual std::uint32_t pending_steps(SlotId slot) const noexcept = 0;

  // Runs all rows in one pass over the weights. outcomes.size() == work.size(); each slot at most once; the sum of rows must
  // not exceed max_rows_per_step. A row's result does not depend on the other rows: bits are equal at any batch size. (On a GPU, only at
  // equal sizes of the work.)
  virtual void step(std::span<const StepWork> work, std::span<StepOutcome> outcomes) = 0;

  // Upper bound of the samples one decode() of `steps` steps may write.
  virtual std::size_t max_decode_samples(std::uint32_t steps, bool last) const noexcept = 0;

  // Stateful: the concatenation of a slot's outputs equals decoding the whole utterance at once (in number always, in value where
  // lookahead was exact): T steps give T * samples_per_step samples less half a step. Each slot at most once per call; work of several
  // slots shares one pass over the weights.
  virtual void decode(std::span<DecodeWork> work) = 0;

  // Frees the slot at once; its SlotId is dead afterwards. Unknown or dead ids are ignored.
  virtual void release(SlotId slot) noexcept = 0;

  // ParkedUtterance::bytes() if the slot were parked now; 0 = this engine cannot park, or the id is dead.
  virtual std::size_t parking_bytes(SlotId /*slot*/) const noexcept { return 0; }

  // Takes everything of an utterance that has not failed out of its slot, between any two calls, and frees the slot as release() does:
  // kUnsupported when the engine cannot, kNotFound for a dead id. Throws std::exception when memory or the device fails; the utterance is
  // then still in its slot.
  virtual Result<std::unique_ptr<ParkedUtterance>> park(SlotId /*slot*/) {
    return Error{.code = ErrorCode::kUnsupported, .message = "this engine parks no utterances", .param = {}, .retry_after = {}};
  }

  // The way back, into any free slot, where it goes on as if nothing had happened: not a bit differs. `parked` is null afterwards, except
  // on error: kQueueFull when no slot is free, kInvalidArgument when it is null or another engine's. Throws std::exception when the device
  // fails; no slot is then taken.
  virtual Result<SlotId> unpark(std::unique_ptr<ParkedUtterance>& /*parked*/) {
    return Error{.code = ErrorCode::kUnsupported, .message = "this engine parks no utterances", .param = {}, .retry_after = {}};
  }

  // Reference recording (mono, sample_rate) to codes for UtterancePrompt::audio_prompt. kUnsupported when the model has no encoder.
  virtual Result<std::vector<CodeFrame>> encode_reference(std::span<const float> pcm) = 0;
};

}  // namespace tts::engine
