#pragma once
// Little-endian writing, as RIFF and Ogg want it.

#include <cstdint>
#include <string_view>

#include "tts/audio/encoder.h"

namespace tts::audio {

inline void put_u16(Bytes& out, std::uint32_t value) {
  out.push_back(static_cast<std::uint8_t>(value));
  out.push_back(static_cast<std::uint8_t>(value >> 8));
}

inline void put_u32(Bytes& out, std::uint32_t value) {
  put_u16(out, value & 0xFFFFU);
  put_u16(out, value >> 16);
}

inline void put_text(Bytes& out, std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }

}  // namespace tts::audio
