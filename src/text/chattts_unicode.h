#pragma once
// Character classes as the tools behind ChatTTS see them. Categories come from utf8proc (Unicode 15 in Debian 12). The reference
// tokenizer's tables are of Unicode 8: marks and punctuation of scripts added since then are dropped or split off here and kept there,
// which only concerns scripts that the vocabulary does not cover.

#include <utf8proc.h>

namespace tts::text {

inline utf8proc_category_t category(char32_t c) noexcept { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

inline bool is_letter_or_number(char32_t c) noexcept {
  const auto kind = category(c);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO) || (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

// Python's \w.
inline bool is_word_character(char32_t c) noexcept { return c == U'_' || is_letter_or_number(c); }

// Unicode's White_Space.
inline bool is_white_space(char32_t c) noexcept {
  if ((c >= 0x09 && c <= 0x0D) || c == U' ' || c == 0x85) return true;
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ZS && kind <= UTF8PROC_CATEGORY_ZP;
}

// Python's str.isspace and \s: White_Space and the four information separators.
inline bool is_python_space(char32_t c) noexcept { return (c >= 0x1C && c <= 0x1F) || is_white_space(c); }

// The one block that ChatTTS counts as Chinese.
inline bool is_basic_han(char32_t c) noexcept { return c >= 0x4E00 && c <= 0x9FFF; }

inline bool is_ascii_letter(char32_t c) noexcept { return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z'); }

}  // namespace tts::text
