#pragma once
// Code points of the caller's text in the form that the rest of the front end reads.

#include <string_view>
#include <vector>

#include "tts/text/front_end.h"

namespace tts::text {

// One code point and the bytes of the original text it came from. Several units may share one source (½ becomes 1 2).
struct Unit {
  char32_t c = 0;
  SourceRange source;
};

// Folds look-alikes to the characters they stand for: full-width and styled letters and digits, Kangxi radicals, compatibility
// ideographs, Latin letters with marks. Zero-width characters and combining marks leave no unit. Sentence punctuation keeps its own width,
// because ，and , differ between digits. Linear. Precondition: valid UTF-8.
std::vector<Unit> fold_text(std::string_view text);

bool is_han(char32_t c) noexcept;
bool is_latin(char32_t c) noexcept;  // a-z, A-Z: what fold_text leaves of Latin scripts
bool is_digit(char32_t c) noexcept;  // 0-9
bool is_space(char32_t c) noexcept;  // includes line ends
bool is_line_end(char32_t c) noexcept;

// Letters, digits and signs that a listener would miss if they were not spoken; punctuation, spaces and control characters are not.
bool carries_meaning(char32_t c) noexcept;

}  // namespace tts::text
