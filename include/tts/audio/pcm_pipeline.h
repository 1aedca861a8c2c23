#pragma once
// From utterances' float PCM at the model's rate to the PCM a client asked for: overlap-add joins, speed, resampling.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tts/base/result.h"

namespace tts::audio {

struct PcmPipelineOptions {
  std::uint32_t source_rate = 24000;   // Hz
  std::uint32_t output_rate = 24000;   // Hz
  double speed = 1.0;                  // 0.5..2.0, pitch kept; 1 = bit-exact pass-through
  std::uint32_t crossfade_ms = 50;     // overlap where two utterances meet; 0 = plain concatenation
};

// One request's audio; not thread-safe. Output is independent of how the input is cut into calls, as long as what is said of the
// following ones is true.
class PcmPipeline {
 public:
  virtual ~PcmPipeline() = default;
  // Appends to `out`. The end of what came so far is held back for a cross-fade, because the utterance may end there; not so with
  // `more_follows`: a later call brings at least a cross-fade of this utterance. If it brings less, the fade is that much shorter.
  virtual void push(std::span<const float> samples, std::vector<float>& out, bool more_follows = false) = 0;
  virtual void end_utterance(std::vector<float>& out) = 0;  // the next push starts a new utterance that is faded into this one
  virtual void finish(std::vector<float>& out) = 0;         // flushes everything held back
};

Result<std::unique_ptr<PcmPipeline>> make_pcm_pipeline(const PcmPipelineOptions& options);

}  // namespace tts::audio
