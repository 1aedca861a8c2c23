#pragma once
// float32 to the number formats of the linears. Every instruction set gives the same bits.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tts::model::ops {

// Round to nearest even; NaN stays NaN.
inline std::uint16_t to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

inline float from_bfloat16(std::uint16_t value) noexcept { return std::bit_cast<float>(std::uint32_t{value} << 16); }

void to_bfloat16(const float* x, std::size_t n, std::uint16_t* y) noexcept;

bool all_finite(const float* x, std::size_t n) noexcept;

struct QuantizedRow {
  float scale = 0.0F;    // value = scale * code
  std::int32_t sum = 0;  // of the codes
};

// Symmetric int8 codes -127 .. 127: y[i] = x[i] / scale rounded to nearest even, scale = max |x| / 127. A row of zeros, or of values so
// small that 127 / max |x| overflows, is zero with scale 0. A row that holds infinity or NaN has zero codes and the scale NaN, so that
// each of its products is NaN.
QuantizedRow quantize(const float* x, std::size_t n, std::int8_t* y) noexcept;

}  // namespace tts::model::ops
