#include "characters.h"

#include <gtest/gtest.h>

#include "tts/base/utf8.h"

namespace tts::text {
namespace {

std::string folded(std::string_view text) {
  std::u32string out;
  for (const Unit& unit : fold_text(text)) out.push_back(unit.c);
  return encode_utf8(out);
}

TEST(FoldText, NarrowsFullWidthLettersAndDigitsButNotSentencePunctuation) {
  EXPECT_EQ(folded("Ｂ座７层２０６号，好！５０％"), "B座7层206号，好！50%");
}

TEST(FoldText, ReplacesRadicalsAndCompatibilityIdeographs) {
  EXPECT_EQ(folded("⾼空作业，⽴即检查⼯具\uF900"), "高空作业，立即检查工具豈");
}

TEST(FoldText, RemovesInvisibleCharactersInsideWords) { EXPECT_EQ(folded("pro\u00ADfes\u200Bsor\uFEFF e\u0301t\u00E9"), "professor ete"); }

TEST(FoldText, ReadsLatinLettersWithMarksAsTheirBase) { EXPECT_EQ(folded("naïve Łódź Straße œuvre"), "naive Lodz Strasse oeuvre"); }

TEST(FoldText, KeepsScriptsItCannotRead) { EXPECT_EQ(folded("Привет 한글 ひらがな ℃"), "Привет 한글 ひらがな ℃"); }

TEST(FoldText, DigitsInCirclesAndSuperscriptsStayApart) { EXPECT_EQ(folded("①②10²"), " 1  2 10 2 "); }

TEST(FoldText, EveryUnitKnowsItsSourceBytes) {
  const std::string text = "a½é中😀";
  const auto units = fold_text(text);
  ASSERT_EQ(units.size(), 9U);  // a, space, 1, space, 2, space, e, 中, 😀
  const std::vector<std::pair<std::size_t, std::size_t>> want{{0, 1}, {1, 3}, {1, 3}, {1, 3}, {1, 3}, {1, 3}, {3, 5}, {5, 8}, {8, 12}};
  for (std::size_t i = 0; i < units.size(); ++i) {
    EXPECT_EQ(units[i].source.begin, want[i].first) << i;
    EXPECT_EQ(units[i].source.end, want[i].second) << i;
  }
}

TEST(FoldText, WidestDecompositionStaysItself) { EXPECT_EQ(folded("\uFDFA"), "\uFDFA"); }

TEST(CarriesMeaning, LettersAndSignsDoPunctuationDoesNot) {
  for (const char32_t c : std::u32string(U"Aя7€+😀ℵ%@")) EXPECT_TRUE(carries_meaning(c)) << static_cast<unsigned>(c);
  for (const char32_t c : std::u32string(U" \n.,()[]“”~～_-\u0301\u200B")) EXPECT_FALSE(carries_meaning(c)) << static_cast<unsigned>(c);
}

}  // namespace
}  // namespace tts::text
