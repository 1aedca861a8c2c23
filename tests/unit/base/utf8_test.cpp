#include "tts/base/utf8.h"

#include <gtest/gtest.h>

namespace tts {
namespace {

using namespace std::string_view_literals;

TEST(FindInvalidUtf8, AcceptsTheEdgesOfEveryLength) {
  for (const std::string_view text : {""sv, "\0"sv, "\x7F"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv, "\xED\x9F\xBF"sv,
                                      "\xEE\x80\x80"sv, "\xEF\xBF\xBF"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv, "你好, world 😀"sv}) {
    EXPECT_EQ(find_invalid_utf8(text), std::nullopt);
  }
}

TEST(FindInvalidUtf8, RefusesOverlongForms) {
  for (const std::string_view text :
       {"\xC0\x80"sv, "\xC1\xBF"sv, "\xE0\x80\x80"sv, "\xE0\x9F\xBF"sv, "\xF0\x80\x80\x80"sv, "\xF0\x8F\xBF\xBF"sv}) {
    EXPECT_EQ(find_invalid_utf8(text), 0U);
  }
}

TEST(FindInvalidUtf8, RefusesSurrogatesAndWhatLiesBeyondUnicode) {
  for (const std::string_view text : {"\xED\xA0\x80"sv, "\xED\xBF\xBF"sv, "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv}) {
    EXPECT_EQ(find_invalid_utf8(text), 0U);
  }
}

TEST(FindInvalidUtf8, NamesTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("ab\x80"sv), 2U);
  EXPECT_EQ(find_invalid_utf8("你\xE5\xA5"sv), 3U);  // cut off
  EXPECT_EQ(find_invalid_utf8("\xE5\xA5x"sv), 0U);
  EXPECT_EQ(find_invalid_utf8("a\xF0\x9F\x98"sv), 1U);
  EXPECT_EQ(find_invalid_utf8("\xC3("sv), 0U);
}

TEST(CountCodePoints, CountsCharactersNotBytes) {
  EXPECT_EQ(count_code_points(""), 0U);
  EXPECT_EQ(count_code_points("aé中😀"), 4U);
}

TEST(DecodeUtf8, AndBack) {
  const std::u32string wide = U"a\u0080\u07FF\u0800\uFFFF\U00010000\U0010FFFF";
  EXPECT_EQ(decode_utf8(encode_utf8(wide)), wide);
  EXPECT_EQ(decode_utf8("aé中😀"), U"aé中😀");
  EXPECT_EQ(encode_utf8(U"中"), "\xE4\xB8\xAD");
}

// Every scalar value survives the round trip and is valid on its own.
TEST(DecodeUtf8, EveryScalarValue) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c == 0xD800) c = 0xE000;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(find_invalid_utf8(text), std::nullopt) << static_cast<unsigned>(c);
    ASSERT_EQ(decode_utf8(text), std::u32string(1, c)) << static_cast<unsigned>(c);
  }
}

}  // namespace
}  // namespace tts
