#pragma once
// Readings of a run of Han characters, with tone sandhi as the bundled voice was trained on.

#include <string_view>
#include <vector>

#include "zh_lexicon.h"

namespace tts::text {

struct PinyinWord {
  std::size_t begin = 0, end = 0;   // characters of the run
  std::vector<Syllable> syllables;  // fewer than characters where some have no reading
};

// The words of the run in order, words without any reading left out. Readings of known phrases go before those of single characters. Tones
// change inside the run: 不 and 一 before the next tone, third tone before third tone. Linear. Thread-safe.
std::vector<PinyinWord> read_pinyin(const ZhLexicon& lexicon, std::u32string_view run);

}  // namespace tts::text
