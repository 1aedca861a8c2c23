#include "sentence_splitter.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace tts::text {
namespace {

constexpr std::u32string_view kStops = U"。！？!?";
constexpr std::u32string_view kClauseMarks = U"，、；：,;:—…";
constexpr std::u32string_view kClosing = U"”’）)]】」』》〉}»";
constexpr std::u32string_view kOpening = U"“‘（([【「『《〈{«";

// Lower case, without the last dot, sorted. None of them ends a sentence that goes on.
constexpr std::u32string_view kAbbreviations[] = {
    U"approx", U"capt", U"cf",   U"col", U"dept", U"dr",  U"e.g", U"eg",     U"est", U"fig", U"gen",
    U"gov",    U"hon",  U"i.e",  U"ie",  U"jr",   U"lt",  U"maj", U"messrs", U"mr",  U"mrs", U"ms",
    U"mt",     U"pp",   U"prof", U"rep", U"rev",  U"sen", U"sgt", U"sr",     U"st",  U"vol", U"vs",
};
static_assert(std::ranges::is_sorted(kAbbreviations));
constexpr std::size_t kLongestAbbreviation = 6;

bool contains(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }

char32_t lower(char32_t c) { return c >= U'A' && c <= U'Z' ? c + 32 : c; }

using Text = std::span<const Unit>;

char32_t char_at(Text text, std::size_t at) { return at < text.size() ? text[at].c : 0; }
char32_t char_before(Text text, std::size_t at) { return at > 0 ? text[at - 1].c : 0; }

bool is_alphanumeric(char32_t c) { return is_latin(c) || is_digit(c); }

bool is_closing(Text text, std::size_t at) {
  const char32_t c = char_at(text, at);
  const char32_t next = char_at(text, at + 1);
  if (c == U'"' || c == U'\'') {  // the same sign opens and closes
    const char32_t previous = char_before(text, at);
    if (previous == U'.' || contains(kStops, previous)) return true;
    return previous != 0 && !is_space(previous) && !is_alphanumeric(next) && !is_han(next);
  }
  return contains(kClosing, c) && !(c == U'’' && is_latin(next));
}

// The letters and dots that end right before `at`, lower case; empty when they are too many for an abbreviation.
std::u32string word_before(Text text, std::size_t at) {
  std::u32string word;
  while (at > 0 && (is_latin(text[at - 1].c) || text[at - 1].c == U'.')) {
    if (word.size() == kLongestAbbreviation) return {};
    word.push_back(lower(text[--at].c));
  }
  std::ranges::reverse(word);
  return word;
}

bool is_abbreviation(Text text, std::size_t dot) {
  const char32_t next = char_at(text, dot + 1);
  if (!is_space(next) || is_line_end(next)) return false;  // "No." at the end of a text is a sentence
  const char32_t letter = char_before(text, dot);
  const bool initial = letter >= U'A' && letter <= U'Z' && letter != U'I' && !is_latin(dot >= 2 ? text[dot - 2].c : 0);
  if (initial) return true;  // J. Lin, J.R. Lin; but "It was I."
  const std::u32string word = word_before(text, dot);
  if (word == U"no") return is_digit(char_at(text, dot + 2));
  return std::ranges::binary_search(kAbbreviations, std::u32string_view(word));
}

// "1. 买菜": the number of an item at the start of a line.
bool is_item_number(Text text, std::size_t dot) {
  constexpr std::size_t kMaxDigits = 3;
  std::size_t at = dot;
  while (at > 0 && is_digit(text[at - 1].c) && dot - at < kMaxDigits) --at;
  return at < dot && (at == 0 || is_line_end(text[at - 1].c)) && is_space(char_at(text, dot + 1));
}

// What a run of stops and clause marks [begin, end), perhaps with closing quotes up to `next`, allows after itself.
Break break_after_marks(Text text, std::size_t begin, std::size_t end, std::size_t next) {
  const auto is_mark = [&](auto predicate) { return std::ranges::any_of(text.subspan(begin, end - begin), predicate, &Unit::c); };
  const char32_t follower = char_at(text, next);
  if (is_mark([](char32_t c) { return contains(U"。！？", c); })) return Break::kSentence;
  if (is_mark([](char32_t c) { return c == U'!' || c == U'?'; })) return is_alphanumeric(follower) ? Break::kNone : Break::kSentence;
  if (text[begin].c == U'.') {
    if (is_inner_dot(text, begin)) return Break::kNone;
    if (is_item_number(text, begin)) return Break::kClause;
    std::size_t word = next;
    if (is_space(follower) && !is_line_end(follower)) ++word;
    const char32_t letter = char_at(text, word);
    return word > next && letter >= U'a' && letter <= U'z' ? Break::kClause : Break::kSentence;
  }
  if (end - begin == 1 && contains(U",:", text[begin].c) && is_digit(char_before(text, begin)) && is_digit(follower)) return Break::kNone;
  return Break::kClause;
}

// Marks addresses ("https://a.b/c?d=1", "www.a.b", "me@a.b"), the punctuation after them excluded.
std::vector<bool> find_addresses(Text text) {
  std::vector<bool> inside(text.size(), false);
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    bool address = false;
    while (end < text.size() && text[end].c > U' ' && text[end].c < 0x7F) {
      address = address || text[end].c == U'@' || (text[end].c == U'/' && end > begin && text[end - 1].c == U'/');
      ++end;
    }
    constexpr std::u32string_view kPrefix = U"www.";
    address = address || (end - begin > kPrefix.size() && std::ranges::equal(text.subspan(begin, kPrefix.size()), kPrefix, {},
                                                                             [](const Unit& unit) { return lower(unit.c); }));
    const std::size_t next = std::max(end, begin + 1);
    if (address) {
      while (end > begin && !is_alphanumeric(text[end - 1].c) && text[end - 1].c != U'/') --end;
      std::fill(inside.begin() + static_cast<std::ptrdiff_t>(begin), inside.begin() + static_cast<std::ptrdiff_t>(end), true);
    }
    begin = next;
  }
  return inside;
}

// Between units that are no punctuation.
Break break_after_plain(Text text, std::size_t at) {
  const char32_t c = text[at].c;
  const char32_t next = char_at(text, at + 1);
  if (is_line_end(c)) return Break::kSentence;
  if (contains(kOpening, c)) return Break::kNone;
  if (is_space(c) || is_han(c) || is_closing(text, at)) return Break::kWord;
  if (c == U'-') {
    const char32_t previous = char_before(text, at);
    if (is_space(previous) && is_space(next)) return Break::kClause;
    return is_latin(previous) && is_latin(next) ? Break::kWord : Break::kNone;
  }
  if (is_latin(c)) return is_han(next) ? Break::kWord : Break::kNone;
  if (is_alphanumeric(next) || is_digit(c)) return Break::kNone;
  return carries_meaning(c) ? Break::kWord : Break::kNone;
}

bool is_mark(char32_t c) { return c == U'.' || contains(kStops, c) || contains(kClauseMarks, c); }

// Appends the ends of the groups that one sentence [begin, end) becomes.
void cut_sentence(std::span<const Atom> atoms, std::size_t begin, std::size_t end, std::uint32_t max_cost, std::vector<std::size_t>& ends) {
  std::uint64_t left = 0;
  for (std::size_t i = begin; i < end; ++i) left += atoms[i].cost;
  while (left > max_cost) {
    const std::uint64_t usual = max_cost - max_cost / 8;  // cuts do not fall exactly where they would be best
    const std::uint64_t groups = (left + usual - 1) / usual;
    const std::uint64_t target = left / groups;
    const auto distance = [target](std::uint64_t cost) { return cost > target ? cost - target : target - cost; };
    struct Candidate {
      std::size_t end = 0;  // 0 = none yet
      std::uint64_t cost = 0;
    } clause, word, anywhere;
    const auto offer = [&](Candidate& best, std::size_t at, std::uint64_t cost) {
      if (best.end == 0 || distance(cost) <= distance(best.cost)) best = {at, cost};
    };
    std::uint64_t cost = 0;
    for (std::size_t i = begin; i + 1 < end; ++i) {
      cost += atoms[i].cost;
      if (cost > max_cost && i > begin) break;
      offer(anywhere, i + 1, cost);
      if (atoms[i].after >= Break::kWord) offer(word, i + 1, cost);
      if (atoms[i].after >= Break::kClause && cost >= target / 2) offer(clause, i + 1, cost);
    }
    const Candidate& best = clause.end != 0 ? clause : word.end != 0 ? word : anywhere;
    if (best.end == 0) break;  // one atom is left
    ends.push_back(best.end);
    begin = best.end;
    left -= best.cost;
  }
  ends.push_back(end);
}

}  // namespace

bool is_inner_dot(std::span<const Unit> units, std::size_t at) {
  if (char_at(units, at) != U'.' || char_before(units, at) == U'.') return false;
  const char32_t next = char_at(units, at + 1);
  return is_alphanumeric(next) || contains(U"-_/\\@", next) || is_abbreviation(units, at);
}

std::vector<Break> find_breaks(std::span<const Unit> units) {
  std::vector<Break> breaks(units.size(), Break::kNone);
  const std::vector<bool> address = find_addresses(units);
  for (std::size_t i = 0; i < units.size();) {
    if (address[i]) {
      if (i + 1 < units.size() && !address[i + 1]) breaks[i] = Break::kWord;
      ++i;
      continue;
    }
    if (!is_mark(units[i].c)) {
      breaks[i] = break_after_plain(units, i);
      ++i;
      continue;
    }
    std::size_t marks = i + 1;
    while (marks < units.size() && is_mark(units[marks].c) && !address[marks]) ++marks;
    std::size_t next = marks;
    while (next < units.size() && is_closing(units, next)) ++next;
    breaks[next - 1] = break_after_marks(units, i, marks, next);
    i = next;
  }
  for (std::size_t i = 0; i + 1 < units.size(); ++i) {
    if (breaks[i] != Break::kSentence && (is_mark(units[i + 1].c) || is_closing(units, i + 1))) breaks[i] = Break::kNone;
  }
  if (!breaks.empty()) breaks.back() = Break::kSentence;
  return breaks;
}

std::vector<std::size_t> group_atoms(std::span<const Atom> atoms, const GroupLimits& limits) {
  assert(limits.max_cost > 0);
  std::vector<std::size_t> cuts;
  for (std::size_t begin = 0, i = 0; i < atoms.size(); ++i) {
    if (atoms[i].after != Break::kSentence && i + 1 < atoms.size()) continue;
    cut_sentence(atoms, begin, i + 1, limits.max_cost, cuts);
    begin = i + 1;
  }
  std::vector<std::size_t> ends;
  std::uint64_t last_cost = 0;
  std::size_t begin = 0;
  for (const std::size_t end : cuts) {
    std::uint64_t cost = 0;
    for (std::size_t i = begin; i < end; ++i) cost += atoms[i].cost;
    begin = end;
    if (!ends.empty() && std::min(last_cost, cost) < limits.min_cost && last_cost + cost <= limits.max_cost) {
      ends.back() = end;
      last_cost += cost;
    } else {
      ends.push_back(end);
      last_cost = cost;
    }
  }
  return ends;
}

std::vector<SourceRange> split_sentences(std::string_view text, const GroupLimits& limits, CostOf cost_of) {
  const std::vector<Unit> units = fold_text(text);
  const std::vector<Break> breaks = find_breaks(units);
  std::vector<Atom> atoms;
  std::vector<std::size_t> atom_ends;  // in units
  Atom atom;
  for (std::size_t i = 0; i < units.size(); ++i) {
    atom.cost += cost_of(units[i].c);
    if (i + 1 < units.size() && units[i + 1].source.begin == units[i].source.begin) continue;
    atom.after = breaks[i];
    atoms.push_back(atom);
    atom_ends.push_back(i + 1);
    atom = {};
  }
  std::vector<SourceRange> ranges;
  std::size_t begin = 0;
  for (const std::size_t atom_end : group_atoms(atoms, limits)) {
    std::size_t end = atom_ends[atom_end - 1];
    const std::size_t next = end;
    while (begin < end && is_space(units[begin].c)) ++begin;
    while (end > begin && is_space(units[end - 1].c)) --end;
    if (begin < end) ranges.push_back({units[begin].source.begin, units[end - 1].source.end});
    begin = next;
  }
  return ranges;
}

}  // namespace tts::text
