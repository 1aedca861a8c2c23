#pragma once
// From what is written to what is said: numbers in words, and no pause at dots that end nothing.

#include <optional>
#include <span>
#include <vector>

#include "characters.h"
#include "number_reading.h"
#include "sentence_splitter.h"

namespace tts::text {

struct SpokenChar {
  char32_t c = 0;
  SourceRange source;  // characters of one number share the range of the number
  Break after = Break::kNone;
  bool blank = false;  // white space in the source, whatever is said for it
};

struct SpokenOptions {
  std::optional<Language> language;  // of numbers; empty = that of the neighbours, else of the sentence, else of the text
  bool numbers = true;               // false = digits stay digits
};

// `breaks` are those of the units. Sources are ordered. Linear.
//
// Numbers: 1,234 · 3.14 · -5 · 50% · v1.3.2 as groups. Digit by digit: years (four digits before 年), runs of 7 digits or more, and numbers
// that start with 0. Ranges, dates, times, money and ordinals are read as the plain numbers they hold.
std::vector<SpokenChar> spell_out(std::span<const Unit> units, std::span<const Break> breaks, const SpokenOptions& options);

}  // namespace tts::text
