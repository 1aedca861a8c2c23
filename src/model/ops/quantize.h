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

// Symmetric: y[i] = round(x[i] / scale) + 128 with scale = max |x| / 127, which is returned (0 for a row of zeros). A row that holds
// infinity or NaN has no such scale: NaN is returned, and every product of the row is NaN.
float quantize_row(const float* x, std::size_t n, std::uint8_t* y) noexcept;

// The same for weights: one output channel, signed.
float quantize_channel(const float* x, std::size_t n, std::int8_t* y) noexcept;

}  // namespace tts::model::ops
