#include "pinyin.h"

#include "zh_segmenter.h"

namespace tts::text {
namespace {

constexpr std::uint8_t kNeutral = 5;

// pypinyin's reading of one word: the longest phrase at each position, else the first reading of the character.
std::vector<Syllable> read_word(const ZhLexicon& lexicon, std::u32string_view word) {
  std::vector<Syllable> out;
  const auto read_character = [&](char32_t c) {
    if (const auto id = lexicon.reading(c)) out.push_back(lexicon.syllable(*id));
  };
  for (std::size_t begin = 0; begin < word.size();) {
    ZhLexicon::Node node = ZhLexicon::kRoot;
    std::span<const SyllableId> phrase;
    std::size_t end = begin;
    for (; end < word.size(); ++end) {
      node = lexicon.child(node, word[end]);
      if (node == ZhLexicon::kNoNode || !lexicon.is_phrase_prefix(node)) break;
      if (const auto reading = lexicon.phrase_reading(node, end + 1 - begin); !reading.empty()) phrase = reading;
    }
    if (!phrase.empty()) {
      for (const SyllableId id : phrase) out.push_back(lexicon.syllable(id));
      begin += phrase.size();
    } else if (end == word.size()) {  // the rest only begins a phrase: pypinyin then reads it character by character
      for (; begin < word.size(); ++begin) read_character(word[begin]);
    } else {
      read_character(word[begin++]);
    }
  }
  return out;
}

bool contains(std::u32string_view set, char32_t c) { return set.find(c) != std::u32string_view::npos; }

struct Place {
  char32_t character;
  Syllable* syllable;
  std::size_t word, word_length;  // which word, and how many syllables it has
};

void change_bu_and_yi(std::vector<Place>& places) {
  for (std::size_t k = 0; k < places.size(); ++k) {
    const char32_t c = places[k].character;
    std::uint8_t& tone = places[k].syllable->tone;
    const bool bu = c == U'不' && tone == 4, yi = c == U'一' && tone == 1;
    if (!bu && !yi) continue;
    const char32_t before = k > 0 ? places[k - 1].character : 0;
    const char32_t after = k + 1 < places.size() ? places[k + 1].character : 0;
    const std::uint8_t next = after != 0 ? places[k + 1].syllable->tone : 0;
    if (before != 0 && before == after) {  // 看一看, 好不好
      tone = kNeutral;
    } else if (bu) {
      if (next == 4) tone = 2;
    } else if (contains(U"第初十百千零点〇二三四五六七八九一月星期周", before) || contains(U"月号日二三四五六七八九零点一", after)) {
      continue;  // digits of a number, ordinals, dates
    } else if (next == 4) {
      tone = 2;
    } else if (next >= 1 && next <= 3) {
      tone = 4;
    }
  }
}

void change_third_tones(std::vector<Place>& places) {
  // Decided on the tones before this change, hence from the front: a place only looks at the one after it.
  for (std::size_t k = 0; k + 1 < places.size(); ++k) {
    const Place &here = places[k], &next = places[k + 1];
    const bool linked = here.word == next.word || here.word_length == 1 || next.word_length == 1;
    if (here.syllable->tone == 3 && next.syllable->tone == 3 && linked) here.syllable->tone = 2;
  }
}

}  // namespace

std::vector<PinyinWord> read_pinyin(const ZhLexicon& lexicon, std::u32string_view run) {
  std::vector<PinyinWord> words;
  bool every_character_read = true;
  std::size_t begin = 0;
  for (const std::size_t end : segment_words(lexicon, run)) {
    std::vector<Syllable> syllables = read_word(lexicon, run.substr(begin, end - begin));
    if (!syllables.empty()) {
      every_character_read = every_character_read && syllables.size() == end - begin;
      words.push_back({begin, end, std::move(syllables)});
    }
    begin = end;
  }
  if (!every_character_read) return words;  // characters and tones cannot be paired
  std::vector<Place> places;
  places.reserve(run.size());
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (std::size_t i = 0; i < words[w].syllables.size(); ++i) {
      places.push_back({run[words[w].begin + i], &words[w].syllables[i], w, words[w].syllables.size()});
    }
  }
  change_bu_and_yi(places);
  change_third_tones(places);
  return words;
}

}  // namespace tts::text
