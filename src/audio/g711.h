#pragma once
// Telephone companding (ITU-T G.711): 16-bit samples to 8 bits, eight segments each twice as coarse as the one below.

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tts::audio {

// mu-law is made for 14 bits: the last two of the sample fall away. Both signs alike; 0 is 0xFF.
constexpr std::uint8_t to_mulaw(std::int16_t sample) noexcept {
  constexpr std::uint32_t kBias = 132;  // makes the segments begin at powers of two
  constexpr std::uint32_t kClip = 32767 - kBias;
  const int value = sample;
  const std::uint32_t magnitude = std::min(static_cast<std::uint32_t>(value < 0 ? -value : value), kClip) + kBias;
  const auto segment = static_cast<std::uint32_t>(std::bit_width(magnitude)) - 8;
  const std::uint32_t code = (value < 0 ? 0x80U : 0U) | segment << 4U | ((magnitude >> (segment + 3)) & 0x0FU);
  return static_cast<std::uint8_t>(~code);
}

// A-law is made for 13 bits. Every other bit is turned over, as on the line; 0 is 0xD5, the step below it 0x55.
constexpr std::uint8_t to_alaw(std::int16_t sample) noexcept {
  const int value = sample;
  const auto magnitude = static_cast<std::uint32_t>(value < 0 ? ~value : value) >> 4U;
  const std::uint32_t segment = magnitude < 16 ? 0 : static_cast<std::uint32_t>(std::bit_width(magnitude)) - 4;
  const std::uint32_t step = segment == 0 ? magnitude : (magnitude >> (segment - 1)) & 0x0FU;
  const std::uint32_t code = (value < 0 ? 0U : 0x80U) | segment << 4U | step;
  return static_cast<std::uint8_t>(code ^ 0x55U);
}

}  // namespace tts::audio
