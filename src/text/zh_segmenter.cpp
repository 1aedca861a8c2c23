#include "zh_segmenter.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

namespace tts::text {
namespace {

// jieba looks at these only; others are words of their own.
bool is_segmented(char32_t c) { return c >= 0x4E00 && c <= 0x9FD5; }

bool is_dictionary_word(const ZhLexicon& lexicon, std::u32string_view text) {
  ZhLexicon::Node node = ZhLexicon::kRoot;
  for (const char32_t c : text) {
    node = lexicon.child(node, c);
    if (node == ZhLexicon::kNoNode) return false;
  }
  return lexicon.is_word(node);
}

// For every position the end of the word that starts there on the most probable path to the end of the text.
std::vector<std::size_t> best_path(const ZhLexicon& lexicon, std::u32string_view text) {
  std::vector<std::size_t> ends(text.size());
  std::vector<double> best(text.size() + 1, 0.0);
  for (std::size_t begin = text.size(); begin-- > 0;) {
    bool found = false;
    const auto offer = [&](std::size_t end, double log_probability) {
      const double candidate = log_probability + best[end];
      if (found && candidate < best[begin]) return;  // of equals the longest word wins
      found = true;
      best[begin] = candidate;
      ends[begin] = end;
    };
    ZhLexicon::Node node = ZhLexicon::kRoot;
    for (std::size_t at = begin; at < text.size(); ++at) {
      node = lexicon.child(node, text[at]);
      if (node == ZhLexicon::kNoNode) break;
      if (lexicon.is_word(node)) offer(at + 1, lexicon.log_probability(node));
    }
    if (!found) offer(begin + 1, lexicon.log_probability_unknown());
  }
  return ends;
}

// Viterbi search over the four states; appends the ends of the words, counted from `offset`.
void segment_unknown(const ZhLexicon& lexicon, std::u32string_view text, std::size_t offset, std::vector<std::size_t>& ends) {
  using enum HmmState;
  // The two states that may come before each state. Of equals the second wins: jieba takes the greater letter of B, E, M, S.
  static constexpr std::array<std::pair<HmmState, HmmState>, kHmmStates> kPrevious{
      {{kEnd, kSingle}, {kBegin, kMiddle}, {kBegin, kMiddle}, {kEnd, kSingle}}};
  const auto index = [](HmmState state) { return static_cast<std::size_t>(state); };
  std::vector<std::array<HmmState, kHmmStates>> from(text.size());
  std::array<double, kHmmStates> score{};
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto emission = lexicon.hmm_emission(text[at]);
    std::array<double, kHmmStates> next{};
    for (std::size_t state = 0; state < kHmmStates; ++state) {
      if (at == 0) {
        next[state] = lexicon.hmm_start(static_cast<HmmState>(state)) + emission[state];
        continue;
      }
      const auto [first, second] = kPrevious[state];
      const double with_first = score[index(first)] + lexicon.hmm_transition(first, static_cast<HmmState>(state)) + emission[state];
      const double with_second = score[index(second)] + lexicon.hmm_transition(second, static_cast<HmmState>(state)) + emission[state];
      from[at][state] = with_second >= with_first ? second : first;
      next[state] = std::max(with_first, with_second);
    }
    score = next;
  }
  std::vector<HmmState> states(text.size());
  HmmState state = score[index(kSingle)] >= score[index(kEnd)] ? kSingle : kEnd;
  for (std::size_t at = text.size(); at-- > 0;) {
    states[at] = state;
    state = from[at][index(state)];
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (states[at] == kEnd || states[at] == kSingle) ends.push_back(offset + at + 1);
  }
}

void segment_block(const ZhLexicon& lexicon, std::u32string_view block, std::size_t offset, std::vector<std::size_t>& ends) {
  const std::vector<std::size_t> path = best_path(lexicon, block);
  std::size_t singles = 0;  // start of the single characters before `at`
  const auto flush = [&](std::size_t end) {
    const std::u32string_view rest = block.substr(singles, end - singles);
    if (rest.size() > 1 && !is_dictionary_word(lexicon, rest)) {
      segment_unknown(lexicon, rest, offset + singles, ends);
    } else {
      for (std::size_t at = singles; at < end; ++at) ends.push_back(offset + at + 1);
    }
  };
  for (std::size_t at = 0; at < block.size(); at = path[at]) {
    if (path[at] - at == 1) continue;
    flush(at);
    ends.push_back(offset + path[at]);
    singles = path[at];
  }
  flush(block.size());
}

}  // namespace

std::vector<std::size_t> segment_words(const ZhLexicon& lexicon, std::u32string_view run) {
  std::vector<std::size_t> ends;
  for (std::size_t begin = 0; begin < run.size();) {
    std::size_t end = begin;
    while (end < run.size() && is_segmented(run[end])) ++end;
    if (end == begin) {
      ends.push_back(++begin);
    } else {
      segment_block(lexicon, run.substr(begin, end - begin), begin, ends);
      begin = end;
    }
  }
  return ends;
}

}  // namespace tts::text
