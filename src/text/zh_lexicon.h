#pragma once
// Mandarin words, readings and the segmentation model, in one file written by tools/build_zh_lexicon.py (which must change together with
// this reader).
//
// Layout, little endian: magic "TTSZHLX1", u32 file size, u32 number of sections, then (u32 offset, u32 bytes) of each section, each at a
// multiple of 8. Words and phrases share one trie in level order: the children of a node are neighbours, sorted by character, so a node
// needs only the index of its first child, and the readings of all phrases of one length lie in one row.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tts::text {

using SyllableId = std::uint16_t;

struct Syllable {
  std::uint8_t initial = 0;  // 1-based index of initial_names(); 0 = none
  std::uint8_t final = 0;    // index of final_names(); kUnspoken = the voice has no such sound
  std::uint8_t tone = 0;     // 1 to 5, 5 = neutral

  static constexpr std::uint8_t kUnspoken = 0xFF;
};

// States of jieba's model for words that are in no dictionary: the character begins, continues or ends a word, or is one.
enum class HmmState : std::uint8_t { kBegin, kMiddle, kEnd, kSingle };
inline constexpr std::size_t kHmmStates = 4;

// Immutable. Every index of the file is checked once in the constructor, so that look-ups need no checks.
class ZhLexicon {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNoNode = 0xFFFFFFFF;
  static constexpr std::size_t kMaxWordLength = 32;  // characters; deeper tries are refused

  // Takes the content of the file. Throws std::runtime_error saying what is wrong with it.
  explicit ZhLexicon(std::vector<std::byte> file);

  ZhLexicon(const ZhLexicon&) = delete;
  ZhLexicon& operator=(const ZhLexicon&) = delete;

  // The node one character further, kNoNode when no word or phrase goes on like this.
  Node child(Node node, char32_t character) const noexcept;

  bool is_word(Node node) const noexcept { return frequencies_[node] != 0; }
  double log_probability(Node word) const noexcept { return log_frequencies_[frequencies_[word]]; }
  double log_probability_unknown() const noexcept { return log_frequencies_[0]; }

  bool is_phrase_prefix(Node node) const noexcept { return test(phrase_prefix_bits_, node); }
  // One reading per character; empty when the node is no phrase. `length` is the depth of the node.
  std::span<const SyllableId> phrase_reading(Node node, std::size_t length) const noexcept;

  std::optional<SyllableId> reading(char32_t character) const noexcept;
  Syllable syllable(SyllableId id) const noexcept { return syllables_[id]; }
  std::size_t syllable_count() const noexcept { return syllables_.size(); }
  const std::vector<std::string>& initial_names() const noexcept { return initial_names_; }
  const std::vector<std::string>& final_names() const noexcept { return final_names_; }

  // Logarithms, indexed by HmmState.
  std::array<double, kHmmStates> hmm_emission(char32_t character) const noexcept;
  double hmm_start(HmmState state) const noexcept { return hmm_transitions_[static_cast<std::size_t>(state)]; }
  double hmm_transition(HmmState from, HmmState to) const noexcept {
    return hmm_transitions_[kHmmStates + static_cast<std::size_t>(from) * kHmmStates + static_cast<std::size_t>(to)];
  }

 private:
  template <class T>
  std::span<const T> section(std::size_t index) const;
  void read_sections();
  void check_trie();
  void check_readings() const;
  void check_hmm() const;
  void read_names(std::span<const char> names);

  static bool test(std::span<const std::uint64_t> bits, std::size_t at) noexcept { return (bits[at / 64] >> (at % 64)) & 1; }
  static std::size_t rank(std::span<const std::uint64_t> bits, std::span<const std::uint32_t> ranks, std::size_t at) noexcept;

  std::vector<std::byte> file_;
  std::span<const std::uint16_t> labels_, frequencies_;
  std::span<const std::uint64_t> internal_bits_, phrase_bits_, phrase_prefix_bits_;
  std::span<const std::uint32_t> internal_ranks_, phrase_ranks_;  // set bits before each word of the bit sets
  std::span<const std::uint32_t> first_children_;                 // by rank among the nodes that have children, and one past the end
  std::span<const SyllableId> phrase_readings_, han_readings_, other_readings_;
  std::span<const double> log_frequencies_, hmm_values_, hmm_transitions_;
  std::span<const Syllable> syllables_;
  std::span<const std::uint32_t> other_characters_;
  std::span<const std::uint16_t> hmm_characters_, hmm_emissions_;

  struct Level {
    std::size_t first_phrase = 0;   // rank of the first phrase of this length
    std::size_t first_reading = 0;  // where its reading starts
  };
  std::vector<Level> levels_;  // by word length
  std::vector<std::string> initial_names_, final_names_;
};

}  // namespace tts::text
