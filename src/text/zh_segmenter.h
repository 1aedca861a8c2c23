#pragma once
// Word boundaries in Mandarin as jieba finds them: the most probable path through the dictionary, and a hidden Markov model for what is
// left as single characters. Results equal jieba 0.42.1's, ties included.

#include <cstddef>
#include <string_view>
#include <vector>

#include "zh_lexicon.h"

namespace tts::text {

// Ends (exclusive, ascending) of the words of a run of Han characters. Linear: words have a bounded length. Thread-safe.
std::vector<std::size_t> segment_words(const ZhLexicon& lexicon, std::u32string_view run);

}  // namespace tts::text
