#pragma once
// English words to phones: a table of function words, letter names, and flite's CMU lexicon with its letter-to-sound rules.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "symbol_table.h"

namespace tts::text {

// Longer runs of letters are no words; they are read in pieces of this length, so that flite never sees unbounded input.
inline constexpr std::size_t kMaxWordLetters = 32;

// ARPAbet phones of one word, vowels with stress ("HH AH0 L OW1"), T between vowels flapped to DX. `word` holds letters in the case the
// user chose (short capital words are spelled) and apostrophes inside, at most kMaxWordLetters of both. Thread-safe: flite is called
// under a lock, because its contract says nothing about threads. Throws std::bad_alloc only.
std::vector<std::string> read_english(const SymbolTable& symbols, std::string_view word);

}  // namespace tts::text
