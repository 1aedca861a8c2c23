#include "chattts_normalizer.h"

#include <random>

#include <gtest/gtest.h>

#include "tts/base/utf8.h"

#include "chattts_goldens.h"

namespace tts::text {
namespace {

using nlohmann::json;

ChatttsLanguage language_of(const json& name, std::u32string_view text) {
  if (name == "zh") return ChatttsLanguage::kChinese;
  if (name == "en") return ChatttsLanguage::kEnglish;
  return detect_chattts_language(text);
}

TEST(ChatttsNormalizer, ReproducesEveryRecordedCase) {
  const json recorded = test::golden("normalizer.json");
  const Homophones homophones = parse_homophones(recorded["homophones_map"].dump());
  EXPECT_EQ(homophones.size(), recorded["homophones_map"].size());
  ASSERT_EQ(recorded["cases"].size(), 136U);
  for (const json& one : recorded["cases"]) {
    const std::u32string text = decode_utf8(one["text"].get<std::string>());
    const ChatttsNormalizerOptions options{.marks = one["do_text_normalization"].get<bool>(),
                                           .homophones = one["do_homophone_replacement"].get<bool>() ? &homophones : nullptr};
    EXPECT_EQ(encode_utf8(normalize_chattts(text, language_of(one["lang"], text), options)), one["out"].get<std::string>()) << one.dump();
  }
}

TEST(ChatttsNormalizer, SpokenFormsAreMadeOutsideOfTagsOnly) {
  const auto upper = [](std::u32string part) {
    for (char32_t& c : part) c = c >= U'a' && c <= U'z' ? c - U'a' + U'A' : c;
    return part;
  };
  const json cases = test::golden("normalizer.json").at("registered_upper_en");
  ASSERT_FALSE(cases.empty());
  for (const json& one : cases) {
    const std::u32string text = decode_utf8(one["text"].get<std::string>());
    EXPECT_EQ(encode_utf8(normalize_chattts(text, ChatttsLanguage::kEnglish, {.spoken_forms = upper})), one["out"].get<std::string>())
        << one.dump();
  }
}

TEST(ChatttsNormalizer, LanguageIsChineseOnlyWithMoreHanThanEnglishWords) {
  const auto chinese = [](std::u32string_view text) { return detect_chattts_language(text) == ChatttsLanguage::kChinese; };
  EXPECT_TRUE(chinese(U"你好"));
  EXPECT_FALSE(chinese(U""));
  EXPECT_FALSE(chinese(U"hello 你"));
  EXPECT_TRUE(chinese(U"hello 你好"));
  EXPECT_TRUE(chinese(U"你world"));     // a word that touches Han is none
  EXPECT_TRUE(chinese(U"你 mp3 a_b"));  // nor one that touches digits or underscores
  EXPECT_TRUE(chinese(U"你 naïve"));    // nor one with other letters
  EXPECT_FALSE(chinese(U"你 well-known"));
}

TEST(ChatttsNormalizer, HomophonesAreReplacedOnceWithoutChaining) {
  const Homophones chain = parse_homophones(R"({"甲":"乙","乙":"丙"})");
  EXPECT_EQ(normalize_chattts(U"甲乙丙", ChatttsLanguage::kChinese, {.homophones = &chain}), U"乙丙丙");
}

TEST(ChatttsNormalizer, HomophoneTableMustMapSingleCharacters) {
  for (const char* bad :
       {"", "[]", "{", R"({"甲":5})", R"({"甲":"乙丙"})", R"({"":"乙"})", R"({"甲乙":"丙"})", R"({"𠀀":"丙"})", R"({"甲":"\ud800"})"}) {
    EXPECT_THROW(parse_homophones(bad), std::runtime_error) << bad;
  }
  EXPECT_TRUE(parse_homophones("{}").empty());
}

TEST(ChatttsNormalizer, WhatComesOutOfTextWithoutBracketsPasses) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::u32string text;
    for (int i = 0; i < 100; ++i) {
      const auto c = static_cast<char32_t>(random() % (round % 2 ? 0x80 : 0x10000));
      text.push_back((c >= 0xD800 && c <= 0xDFFF) || c == U'[' || c == U']' ? U'好' : c);
    }
    for (const auto language : {ChatttsLanguage::kChinese, ChatttsLanguage::kEnglish}) {
      for (const char32_t c : normalize_chattts(text, language, {}))
        ASSERT_TRUE(passes_chattts_normalizer(c)) << static_cast<std::uint32_t>(c);
    }
  }
}

TEST(ChatttsNormalizer, AnyMixOfBracketsIsSurvived) {
  std::mt19937 random(8);
  for (int round = 0; round < 2000; ++round) {
    std::u32string text;
    for (int i = 0; i < 24; ++i) text.push_back(U"[[]]a好1!"[random() % 8]);
    EXPECT_LE(normalize_chattts(text, ChatttsLanguage::kEnglish, {}).size(), text.size());
  }
}

}  // namespace
}  // namespace tts::text
