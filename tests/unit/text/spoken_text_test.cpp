#include "spoken_text.h"

#include <gtest/gtest.h>

#include "nano_voice.h"

namespace tts::text::testing {
namespace {

TEST(SpokenText, ChineseNumbers) {
  EXPECT_EQ(spoken_of("会议改到3月28日19点40分，请带上2份合同。"), "会议改到三月二十八日十九点四十分，请带上两份合同。");
  EXPECT_EQ(spoken_of("2026年覆盖率47%，今年涨到92.5%。"), "二零二六年覆盖率百分之四十七，今年涨到百分之九十二点五。");
  EXPECT_EQ(spoken_of("放大400倍，300年前"), "放大四百倍，三百年前");
  EXPECT_EQ(spoken_of("人口为13,060,208人。"), "人口为一千三百零六万零二百零八人。");
  EXPECT_EQ(spoken_of("夜里-7度，白天+3度"), "夜里负七度，白天加三度");
  EXPECT_EQ(spoken_of("手机是13800138000对吧"), "手机是一三八零零一三八零零零对吧");
  EXPECT_EQ(spoken_of("房间007，二年级和2年级，2年"), "房间零零七，二年级和二年级，两年");
  EXPECT_EQ(spoken_of("版本v1.3.2"), "版本v一点三点二");
  EXPECT_EQ(spoken_of("ＡＢ１２号"), "AB十二号");
}

TEST(SpokenText, EnglishNumbers) {
  EXPECT_EQ(spoken_of("It costs 1,234 dollars, 3.14 each, up 50% from -5."),
            "It costs one thousand two hundred thirty four dollars, three point one four each, up fifty percent from minus five.");
  EXPECT_EQ(spoken_of("Call 5550199 now"), "Call five five five zero one nine nine now");
  EXPECT_EQ(spoken_of("a 3D film on 5G"), "a three D film on five G");
}

TEST(SpokenText, NeighboursThenSentenceThenTextDecideTheLanguageOfNumbers) {
  EXPECT_EQ(spoken_of("I paid 5块 for 7 apples."), "I paid 五块 for seven apples.");
  EXPECT_EQ(spoken_of("他用RTX 40显卡跑了Windows 11。"), "他用RTX 四十显卡跑了Windows 十一。");
  EXPECT_EQ(spoken_of("Nice weather. 42."), "Nice weather. forty two.");
  EXPECT_EQ(spoken_of("42"), "四十二");
  TextOptions english;
  english.language = "en";
  EXPECT_EQ(spoken_of("42", english), "forty two");
  TextOptions chinese;
  chinese.language = "zh";
  EXPECT_EQ(spoken_of("Nice 42", chinese), "Nice 四十二");
}

TEST(SpokenText, WithoutNormalisingDigitsAreNotSpoken) {
  TextOptions raw;
  raw.normalize = false;
  const auto prepared = nano_front_end().prepare("买3斤", raw);
  ASSERT_TRUE(prepared);
  EXPECT_EQ(prepared->dropped, std::vector<std::string>{"3"});
  EXPECT_EQ(symbols_of("买3斤", raw), symbols_of("买 斤"));
}

TEST(SpokenText, NoPauseInsideNumbersInitialsAndAddresses) {
  EXPECT_EQ(symbols_of("Dr. J.R. Lin lives here."), symbols_of("Dr J R Lin lives here."));
  EXPECT_EQ(symbols_of("see docs.example.org."), symbols_of("see docs example org."));
  EXPECT_EQ(symbols_of("比分2:1。"), symbols_of("比分二 一。"));
}

TEST(SpokenText, LineEndsArePauses) {
  EXPECT_EQ(symbols_of("买菜\n取快递"), symbols_of("买菜。取快递"));
  EXPECT_EQ(symbols_of("买菜，\n\n取快递"), symbols_of("买菜，取快递"));
  EXPECT_EQ(symbols_of("\n\n你好"), symbols_of("你好"));
}

TEST(SpokenText, LongNumbersAreReadDigitByDigitWithTheirOwnSources) {
  const std::string digits(40, '7');
  const auto units = fold_text(digits);
  const auto spoken = spell_out(units, find_breaks(units), {});
  ASSERT_EQ(spoken.size(), 40U);
  for (std::size_t i = 0; i < spoken.size(); ++i) {
    EXPECT_EQ(spoken[i].c, U'七');
    EXPECT_EQ(spoken[i].source.begin, i);
  }
}

TEST(SpokenText, SourcesAreOrdered) {
  const std::string text = "约-12.50%的人，1,234,567元，½杯，12345678901234567.5%，a3b -4";
  const auto units = fold_text(text);
  std::size_t begin = 0;
  for (const SpokenChar& c : spell_out(units, find_breaks(units), {})) {
    EXPECT_LE(begin, c.source.begin);
    begin = c.source.begin;
  }
}

}  // namespace
}  // namespace tts::text::testing
