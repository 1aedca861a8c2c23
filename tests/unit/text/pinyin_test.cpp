#include "pinyin.h"

#include <gtest/gtest.h>

#include "nano_voice.h"

namespace tts::text::testing {
namespace {

// "ni2 hao3 / ..." with words separated by slashes.
std::string read(std::u32string_view run) {
  const ZhLexicon& lexicon = nano_lexicon();
  std::string out;
  for (const PinyinWord& word : read_pinyin(lexicon, run)) {
    if (!out.empty()) out += " / ";
    bool first = true;
    for (const Syllable s : word.syllables) {
      if (!first) out += ' ';
      first = false;
      if (s.initial != 0) out += lexicon.initial_names()[s.initial - 1U];
      out += lexicon.final_names()[s.final] + std::to_string(s.tone);
    }
  }
  return out;
}

TEST(ReadPinyin, PhrasesDecideReadingsOfCharacters) {
  EXPECT_EQ(read(U"银行"), "in2 hang2");
  EXPECT_EQ(read(U"行走"), "xing2 zou3");
  EXPECT_EQ(read(U"音乐"), "in1 ve4");
}

TEST(ReadPinyin, SpellingsBecomeSounds) {
  EXPECT_EQ(read(U"知"), "zhir1");
  EXPECT_EQ(read(U"鱼"), "v2");
  EXPECT_EQ(read(U"五"), "u3");
  EXPECT_EQ(read(U"有"), "iou3");
  EXPECT_EQ(read(U"喂"), "uei4");
  EXPECT_EQ(read(U"穷"), "qiong2");
  EXPECT_EQ(read(U"略"), "lve4");
  EXPECT_EQ(read(U"嗯"), "en2");
}

TEST(ReadPinyin, NeutralToneIsFive) { EXPECT_EQ(read(U"我们"), "uo3 men5"); }

TEST(ReadPinyin, BuBeforeFourthToneRises) {
  EXPECT_EQ(read(U"不是"), "bu2 shir4");
  EXPECT_EQ(read(U"不来"), "bu4 / lai2");
}

TEST(ReadPinyin, BuAndYiBetweenTwinsAreNeutral) {
  EXPECT_EQ(read(U"好不好"), "hao3 bu5 hao3");
  EXPECT_EQ(read(U"看一看"), "kan4 i5 kan4");
}

TEST(ReadPinyin, YiChangesBeforeTonesButNotInNumbersAndOrdinals) {
  EXPECT_EQ(read(U"一个"), "i2 ge4");
  EXPECT_EQ(read(U"一天"), "i4 tian1");
  EXPECT_EQ(read(U"第一天"), "di4 i1 tian1");
  EXPECT_EQ(read(U"三十一号"), "san1 shir2 i1 / hao4");
  EXPECT_EQ(read(U"星期一来"), "xing1 qi1 i1 / lai2");
}

TEST(ReadPinyin, ThirdToneBeforeThirdToneRises) {
  EXPECT_EQ(read(U"你好"), "ni2 hao3");
  EXPECT_EQ(read(U"我很好"), "uo2 / hen2 / hao3");
}

TEST(ReadPinyin, BetweenTwoLongWordsThirdTonesStay) { EXPECT_EQ(read(U"永远美好"), "iong2 van3 / mei2 hao3"); }

TEST(ReadPinyin, CharactersWithoutReadingAreLeftOut) {
  EXPECT_EQ(read(U"你好\u9FD7"), "ni2 hao3");
  EXPECT_EQ(read(U"\u9FD7"), "");
}

}  // namespace
}  // namespace tts::text::testing
