#pragma once
// Where a text may be cut into utterances, and how to group what lies between the cuts. Knows nothing about tokens: callers bring the cost.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "characters.h"

namespace tts::text {

// How good a place is for a cut. Ordered: a greater value is a better place.
enum class Break : std::uint8_t { kNone, kWord, kClause, kSentence };

// For every unit, what a cut right after it would be. Closing quotes stay with their sentence. No break inside numbers, web addresses and
// common abbreviations; none before punctuation. Linear.
std::vector<Break> find_breaks(std::span<const Unit> units);

// A full stop that belongs to a number, a web address or an abbreviation, so that no pause is heard.
bool is_inner_dot(std::span<const Unit> units, std::size_t at);

// Something that is never cut.
struct Atom {
  std::uint32_t cost = 0;
  Break after = Break::kNone;
};

struct GroupLimits {
  std::uint32_t min_cost = 0;    // shorter sentences join a neighbour where both fit
  std::uint32_t max_cost = 120;  // > 0
};

// Ends (exclusive atom indices, ascending, the last one is atoms.size()) of groups: one sentence each, too long ones cut near the middle at
// a clause, else between words, else anywhere; too short ones joined. A group exceeds max_cost only when it is a single atom. Linear.
std::vector<std::size_t> group_atoms(std::span<const Atom> atoms, const GroupLimits& limits);

// Both of the above on plain text, with a cost for each code point: ranges are ordered, do not overlap and leave out only white space
// and invisible characters at their borders. A run without any break is cut where it reaches max_cost. Precondition: valid UTF-8.
using CostOf = std::uint32_t (*)(char32_t);
std::vector<SourceRange> split_sentences(std::string_view text, const GroupLimits& limits, CostOf cost_of);

}  // namespace tts::text
