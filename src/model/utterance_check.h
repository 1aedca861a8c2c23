#pragma once
// What acquire() admits, whatever the engine runs on.

#include <cstdint>
#include <vector>

#include "tts/base/result.h"
#include "tts/engine/manifest.h"
#include "tts/engine/utterance.h"

namespace tts::model {

struct UtteranceLimits {
  engine::GptSizes sizes;
  bool text_head = false;  // the model can refine text
  std::uint32_t max_context = 0;
  engine::SpeakerPrecision speaker_precision = engine::SpeakerPrecision::kFloat32;
};

// The speaker vector as the language model takes it, empty without one; or what is wrong, with the name of the field.
Result<std::vector<float>> check_utterance(const UtteranceLimits& limits, const engine::UtterancePrompt& prompt,
                                           const engine::SamplingParams& sampling);

}  // namespace tts::model
