#include "number_reading.h"

#include <gtest/gtest.h>

#include "tts/base/utf8.h"

namespace tts::text {
namespace {

std::string zh(std::u32string_view digits) { return encode_utf8(read_cardinal(digits, Language::kChinese)); }
std::string en(std::u32string_view digits) { return encode_utf8(read_cardinal(digits, Language::kEnglish)); }

TEST(ReadCardinal, Chinese) {
  EXPECT_EQ(zh(U"0"), "零");
  EXPECT_EQ(zh(U"10"), "十");
  EXPECT_EQ(zh(U"12"), "十二");
  EXPECT_EQ(zh(U"101"), "一百零一");
  EXPECT_EQ(zh(U"110"), "一百一十");
  EXPECT_EQ(zh(U"1005"), "一千零五");
  EXPECT_EQ(zh(U"100000"), "十万");
  EXPECT_EQ(zh(U"10001000"), "一千万一千");
  EXPECT_EQ(zh(U"13060208"), "一千三百零六万零二百零八");
  EXPECT_EQ(zh(U"100000001"), "一亿零一");
  EXPECT_EQ(zh(U"999999999999999"), "九百九十九万九千九百九十九亿九千九百九十九万九千九百九十九");
}

TEST(ReadCardinal, English) {
  EXPECT_EQ(en(U"0"), "zero");
  EXPECT_EQ(en(U"19"), "nineteen");
  EXPECT_EQ(en(U"40"), "forty");
  EXPECT_EQ(en(U"105"), "one hundred five");
  EXPECT_EQ(en(U"1203"), "one thousand two hundred three");
  EXPECT_EQ(en(U"1000000"), "one million");
  EXPECT_EQ(en(U"1000000000015"), "one trillion fifteen");
  EXPECT_EQ(en(U"999999999999999"),
            "nine hundred ninety nine trillion nine hundred ninety nine billion nine hundred ninety nine million nine hundred ninety nine "
            "thousand nine hundred ninety nine");
}

TEST(ReadDigits, OneByOne) {
  EXPECT_EQ(encode_utf8(read_digits(U"1080", Language::kChinese)), "一零八零");
  EXPECT_EQ(encode_utf8(read_digits(U"108", Language::kEnglish)), "one zero eight");
}

}  // namespace
}  // namespace tts::text
