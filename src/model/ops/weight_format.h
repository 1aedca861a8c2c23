#pragma once

#include <cstdint>

namespace tts::model::ops {

// How a linear holds its weights and reads its activations.
enum class WeightFormat : std::uint8_t { kFloat32, kBfloat16, kInt8 };

}  // namespace tts::model::ops
