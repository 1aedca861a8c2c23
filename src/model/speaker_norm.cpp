#include "speaker_norm.h"

#include <algorithm>
#include <cmath>

#include <c10/util/Half.h>

namespace tts::model {
namespace {

float to_half(float value) { return static_cast<float>(static_cast<c10::Half>(value)); }

}  // namespace

std::vector<float> normalise_speaker(std::span<const float> speaker, engine::SpeakerPrecision precision) {
  const bool half = precision == engine::SpeakerPrecision::kFloat16;
  std::vector<float> normalised(speaker.begin(), speaker.end());
  double squares = 0.0;
  for (float& value : normalised) {
    if (half) value = to_half(value);
    squares += double{value} * value;
  }
  auto norm = static_cast<float>(std::sqrt(squares));
  norm = half ? to_half(norm) : std::max(norm, 1e-12F);
  if (norm == 0.0F) return normalised;
  for (float& value : normalised) value = half ? to_half(value / norm) : value / norm;
  return normalised;
}

}  // namespace tts::model
