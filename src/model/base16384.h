#pragma once
// Base16384: 14 bits a character, U+4E00 + value, then U+3D00 + n when the last 7-byte group holds only n bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tts/base/result.h"

namespace tts::model {

std::string encode_base16384(std::span<const std::uint8_t> bytes);

// kInvalidArgument for invalid UTF-8, other characters, a wrong number of them or a wrong marker; kTooLarge when more than
// `max_bytes` would come out.
Result<std::vector<std::uint8_t>> decode_base16384(std::string_view utf8, std::size_t max_bytes);

}  // namespace tts::model
