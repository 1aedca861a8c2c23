#include "zh_lexicon.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tts::text {
namespace {

static_assert(std::endian::native == std::endian::little, "the lexicon file is little endian");
static_assert(sizeof(Syllable) == 3);

constexpr std::string_view kMagic = "TTSZHLX1";
constexpr std::size_t kHeaderBytes = kMagic.size() + 2 * sizeof(std::uint32_t);
constexpr std::size_t kAlignment = 8;
constexpr char32_t kFirstHan = 0x4E00;
constexpr std::size_t kHanCount = 0x9FFF - 0x4E00 + 1;
constexpr SyllableId kNoReading = 0xFFFF;

enum Section : std::size_t {
  kLabels,
  kFrequencies,
  kInternalBits,
  kInternalRanks,
  kFirstChildren,
  kPhraseBits,
  kPhraseRanks,
  kPhrasePrefixBits,
  kPhraseReadings,
  kLogFrequencies,
  kSyllables,
  kHanReadings,
  kOtherCharacters,
  kOtherReadings,
  kHmmCharacters,
  kHmmEmissions,
  kHmmValues,
  kHmmTransitions,
  kNames,
  kSectionCount
};

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("malformed lexicon: ") + what);
}

std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Each rank is the number of set bits before its word, and no bit is set beyond `size`. Returns the number of set bits.
std::size_t check_bits(std::span<const std::uint64_t> bits, std::span<const std::uint32_t> ranks, std::size_t size, const char* what) {
  require(bits.size() == (size + 63) / 64 && ranks.size() == bits.size(), what);
  std::size_t total = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    require(ranks[i] == total, what);
    total += static_cast<std::size_t>(std::popcount(bits[i]));
  }
  require(size % 64 == 0 || bits.back() >> (size % 64) == 0, what);
  return total;
}

}  // namespace

template <class T>
std::span<const T> ZhLexicon::section(std::size_t index) const {
  const std::size_t entry = kHeaderBytes + index * 2 * sizeof(std::uint32_t);
  const std::size_t offset = read_u32(file_, entry), bytes = read_u32(file_, entry + sizeof(std::uint32_t));
  require(offset % kAlignment == 0 && offset <= file_.size() && bytes <= file_.size() - offset, "a section lies outside the file");
  require(bytes % sizeof(T) == 0, "a section has an odd size");
  return {reinterpret_cast<const T*>(file_.data() + offset), bytes / sizeof(T)};
}

ZhLexicon::ZhLexicon(std::vector<std::byte> file) : file_(std::move(file)) {
  require(file_.size() >= kHeaderBytes + kSectionCount * 2 * sizeof(std::uint32_t), "too short");
  require(std::memcmp(file_.data(), kMagic.data(), kMagic.size()) == 0, "not a lexicon of this version");
  require(read_u32(file_, kMagic.size()) == file_.size(), "cut off");
  require(read_u32(file_, kMagic.size() + sizeof(std::uint32_t)) == kSectionCount, "number of sections");
  read_sections();
  check_trie();
  check_readings();
  check_hmm();
  read_names(section<char>(kNames));
}

void ZhLexicon::read_sections() {
  labels_ = section<std::uint16_t>(kLabels);
  frequencies_ = section<std::uint16_t>(kFrequencies);
  internal_bits_ = section<std::uint64_t>(kInternalBits);
  internal_ranks_ = section<std::uint32_t>(kInternalRanks);
  first_children_ = section<std::uint32_t>(kFirstChildren);
  phrase_bits_ = section<std::uint64_t>(kPhraseBits);
  phrase_ranks_ = section<std::uint32_t>(kPhraseRanks);
  phrase_prefix_bits_ = section<std::uint64_t>(kPhrasePrefixBits);
  phrase_readings_ = section<SyllableId>(kPhraseReadings);
  log_frequencies_ = section<double>(kLogFrequencies);
  syllables_ = section<Syllable>(kSyllables);
  han_readings_ = section<SyllableId>(kHanReadings);
  other_characters_ = section<std::uint32_t>(kOtherCharacters);
  other_readings_ = section<SyllableId>(kOtherReadings);
  hmm_characters_ = section<std::uint16_t>(kHmmCharacters);
  hmm_emissions_ = section<std::uint16_t>(kHmmEmissions);
  hmm_values_ = section<double>(kHmmValues);
  hmm_transitions_ = section<double>(kHmmTransitions);
}

void ZhLexicon::check_trie() {
  const std::size_t nodes = labels_.size();
  require(nodes > 0 && nodes < kNoNode && frequencies_.size() == nodes, "number of nodes");
  const std::size_t internal = check_bits(internal_bits_, internal_ranks_, nodes, "nodes with children");
  const std::size_t phrases = check_bits(phrase_bits_, phrase_ranks_, nodes, "phrases");
  require(phrase_prefix_bits_.size() == phrase_bits_.size(), "beginnings of phrases");
  require(!log_frequencies_.empty() && std::ranges::all_of(frequencies_, [&](auto f) { return f < log_frequencies_.size(); }),
          "frequencies");

  // Children follow their parents and fill the rest of the nodes without a gap, so that the trie has no circle.
  require(first_children_.size() == internal + 1 && first_children_.front() == 1 && first_children_.back() == nodes, "children");
  std::size_t family = 0;
  for (std::size_t word = 0; word < internal_bits_.size(); ++word) {
    for (std::uint64_t bits = internal_bits_[word]; bits != 0; bits &= bits - 1, ++family) {
      const std::size_t parent = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      require(first_children_[family] > parent && first_children_[family] < first_children_[family + 1], "children");
    }
  }
  std::size_t readings = 0;
  for (std::size_t begin = 0, end = 1; begin < nodes;) {
    const std::size_t first_phrase = rank(phrase_bits_, phrase_ranks_, begin);
    const std::size_t level_phrases = (end < nodes ? rank(phrase_bits_, phrase_ranks_, end) : phrases) - first_phrase;
    require(levels_.size() <= kMaxWordLength && (!levels_.empty() || level_phrases == 0), "depth of the trie");
    readings += level_phrases * levels_.size();
    levels_.push_back({first_phrase, readings - level_phrases * levels_.size()});
    const std::size_t next_internal = end < nodes ? rank(internal_bits_, internal_ranks_, end) : internal;
    begin = end;
    end = first_children_[next_internal];
    require(end > begin || begin == nodes, "children");
  }
  require(readings == phrase_readings_.size(), "readings of phrases");
}

void ZhLexicon::check_readings() const {
  const auto known = [&](SyllableId id) { return id < syllables_.size(); };
  require(std::ranges::all_of(phrase_readings_, known), "readings of phrases");
  require(han_readings_.size() == kHanCount, "readings of characters");
  require(std::ranges::all_of(han_readings_, [&](SyllableId id) { return id == kNoReading || known(id); }), "readings of characters");
  require(other_characters_.size() == other_readings_.size() && std::ranges::all_of(other_readings_, known), "readings of rare characters");
  require(std::ranges::all_of(syllables_, [](Syllable s) { return s.tone >= 1 && s.tone <= 5; }), "tones");
}

void ZhLexicon::check_hmm() const {
  require(hmm_emissions_.size() == hmm_characters_.size() * kHmmStates, "segmentation model");
  require(!hmm_values_.empty() && std::ranges::all_of(hmm_emissions_, [&](auto e) { return e < hmm_values_.size(); }),
          "segmentation model");
  require(hmm_transitions_.size() == kHmmStates + kHmmStates * kHmmStates, "segmentation model");
}

void ZhLexicon::read_names(std::span<const char> names) {
  std::istringstream lines(std::string(names.begin(), names.end()));
  for (std::vector<std::string>* list : {&initial_names_, &final_names_}) {
    std::string line, name;
    std::getline(lines, line);
    std::istringstream words(line);
    while (words >> name) list->push_back(name);
  }
  for (const Syllable s : syllables_) {
    require(s.initial <= initial_names_.size() && (s.final == Syllable::kUnspoken || s.final < final_names_.size()), "syllables");
  }
}

std::size_t ZhLexicon::rank(std::span<const std::uint64_t> bits, std::span<const std::uint32_t> ranks, std::size_t at) noexcept {
  const std::uint64_t before = bits[at / 64] & ((std::uint64_t{1} << (at % 64)) - 1);
  return ranks[at / 64] + static_cast<std::size_t>(std::popcount(before));
}

ZhLexicon::Node ZhLexicon::child(Node node, char32_t character) const noexcept {
  if (character > 0xFFFF || !test(internal_bits_, node)) return kNoNode;
  const std::size_t parent = rank(internal_bits_, internal_ranks_, node);
  const auto begin = labels_.begin() + first_children_[parent], end = labels_.begin() + first_children_[parent + 1];
  const auto found = std::lower_bound(begin, end, static_cast<std::uint16_t>(character));
  return found != end && *found == character ? static_cast<Node>(found - labels_.begin()) : kNoNode;
}

std::span<const SyllableId> ZhLexicon::phrase_reading(Node node, std::size_t length) const noexcept {
  if (!test(phrase_bits_, node)) return {};
  const Level& level = levels_[length];
  return phrase_readings_.subspan(level.first_reading + (rank(phrase_bits_, phrase_ranks_, node) - level.first_phrase) * length, length);
}

std::optional<SyllableId> ZhLexicon::reading(char32_t character) const noexcept {
  if (character >= kFirstHan && character < kFirstHan + kHanCount) {
    const SyllableId id = han_readings_[character - kFirstHan];
    return id == kNoReading ? std::nullopt : std::optional(id);
  }
  const auto found = std::ranges::lower_bound(other_characters_, character);
  if (found == other_characters_.end() || *found != character) return std::nullopt;
  return other_readings_[static_cast<std::size_t>(found - other_characters_.begin())];
}

std::array<double, kHmmStates> ZhLexicon::hmm_emission(char32_t character) const noexcept {
  const auto found = std::ranges::lower_bound(hmm_characters_, character);
  std::array<double, kHmmStates> out;
  out.fill(hmm_values_[0]);
  if (found == hmm_characters_.end() || *found != character) return out;
  const auto at = static_cast<std::size_t>(found - hmm_characters_.begin()) * kHmmStates;
  for (std::size_t state = 0; state < kHmmStates; ++state) out[state] = hmm_values_[hmm_emissions_[at + state]];
  return out;
}

}  // namespace tts::text
