#pragma once
// The speaker vector as the language model takes it (model spec, Speaker strings): v / max(|v|, 1e-12).

#include <span>
#include <vector>

#include "tts/engine/manifest.h"

namespace tts::model {

// kFloat16 rounds the norm and the quotient to half precision, as the official model was used. A zero vector stays zero.
std::vector<float> normalise_speaker(std::span<const float> speaker, engine::SpeakerPrecision precision);

}  // namespace tts::model
