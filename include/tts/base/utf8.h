#pragma once
// Strict UTF-8 (RFC 3629): overlong forms, surrogates and code points above U+10FFFF are errors.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tts {

// Byte offset of the first invalid sequence; nullopt when the whole text is valid.
std::optional<std::size_t> find_invalid_utf8(std::string_view text) noexcept;

// Number of code points. Precondition: valid UTF-8.
std::size_t count_code_points(std::string_view text) noexcept;

// Precondition: valid UTF-8.
std::u32string decode_utf8(std::string_view text);

// Precondition: every value is a Unicode scalar value.
std::string encode_utf8(std::u32string_view text);
void append_utf8(std::string& out, char32_t code_point);

}  // namespace tts
