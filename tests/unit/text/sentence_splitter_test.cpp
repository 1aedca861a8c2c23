#include "sentence_splitter.h"

#include <random>

#include <gtest/gtest.h>

#include "tts/base/utf8.h"

namespace tts::text {
namespace {

using Strings = std::vector<std::string>;

std::uint32_t one(char32_t) { return 1; }

Strings split(const std::string& text, GroupLimits limits = {0, 120}) {
  Strings out;
  for (const SourceRange& range : split_sentences(text, limits, one)) out.push_back(text.substr(range.begin, range.end - range.begin));
  return out;
}

TEST(SplitSentences, CutsAfterSentencePunctuationOfBothScripts) {
  EXPECT_EQ(split("你好。今天好吗？好！走吧"), (Strings{"你好。", "今天好吗？", "好！", "走吧"}));
  EXPECT_EQ(split("One. Two? Three! Four"), (Strings{"One.", "Two?", "Three!", "Four"}));
  EXPECT_EQ(split("我用Python. 你呢?我也用."), (Strings{"我用Python.", "你呢?", "我也用."}));
}

TEST(SplitSentences, CutsAtLineEnds) { EXPECT_EQ(split("苹果\n牛奶\r\n\n面包"), (Strings{"苹果", "牛奶", "面包"})); }

TEST(SplitSentences, ClosingQuotesStayWithTheirSentence) {
  EXPECT_EQ(split("“走吧！”他说。（好。）再见。"), (Strings{"“走吧！”", "他说。", "（好。）", "再见。"}));
  EXPECT_EQ(split("他说\"好。\"然后走了。"), (Strings{"他说\"好。\"", "然后走了。"}));
  EXPECT_EQ(split("He said \"go.\" Then he left."), (Strings{"He said \"go.\"", "Then he left."}));
}

TEST(SplitSentences, RunsOfMarksAreOneEnd) {
  EXPECT_EQ(split("什么？！真的？？？好吧。。。"), (Strings{"什么？！", "真的？？？", "好吧。。。"}));
}

TEST(SplitSentences, KeepsNumbersWhole) {
  EXPECT_EQ(split("It is 3.14 or 1,234.5. Yes."), (Strings{"It is 3.14 or 1,234.5.", "Yes."}));
  EXPECT_EQ(split("体温37.2度，血氧98.5。好。"), (Strings{"体温37.2度，血氧98.5。", "好。"}));
}

TEST(SplitSentences, KeepsAbbreviationsAndInitials) {
  EXPECT_EQ(split("Mr. Smith met Dr. J.R. Lin, e.g. at noon. Then St. James."),
            (Strings{"Mr. Smith met Dr. J.R. Lin, e.g. at noon.", "Then St. James."}));
  EXPECT_EQ(split("See No. 5 first. No. That is it."), (Strings{"See No. 5 first.", "No.", "That is it."}));
  EXPECT_EQ(split("It was I. He left."), (Strings{"It was I.", "He left."}));
}

TEST(SplitSentences, DotBeforeLowerCaseIsNoEnd) {
  EXPECT_EQ(split("about approx. ten of etc. and more."), (Strings{"about approx. ten of etc. and more."}));
}

TEST(SplitSentences, KeepsAddresses) {
  EXPECT_EQ(split("See https://a.example.org/x?y=1!z. Mail me@a.example.org! Done."),
            (Strings{"See https://a.example.org/x?y=1!z.", "Mail me@a.example.org!", "Done."}));
}

TEST(SplitSentences, EllipsisIsNoEnd) { EXPECT_EQ(split("她看了看……算了。"), (Strings{"她看了看……算了。"})); }

TEST(SplitSentences, ShortSentencesJoinANeighbour) {
  EXPECT_EQ(split("好。我们现在就出发吧。嗯。", {5, 120}), (Strings{"好。我们现在就出发吧。嗯。"}));
  EXPECT_EQ(split("好。我们现在就出发吧。嗯。", {5, 9}), (Strings{"好。", "我们现在就出发吧。", "嗯。"}));  // joined they would be too long
}

TEST(SplitSentences, LongSentencesAreCutAtTheClauseNearTheMiddle) {
  EXPECT_EQ(split("一二三，四五六七八九，十。", {0, 12}), (Strings{"一二三，", "四五六七八九，十。"}));
  EXPECT_EQ(split("aaaa bbbb, cccc dddd eeee ffff", {0, 20}), (Strings{"aaaa bbbb,", "cccc dddd eeee ffff"}));
}

TEST(SplitSentences, WithoutClausesTheCutIsBetweenWords) {
  EXPECT_EQ(split("aaaa bbbb cccc dddd", {0, 12}), (Strings{"aaaa bbbb", "cccc dddd"}));
}

TEST(SplitSentences, ARunWithoutAnyBreakIsCutAtTheLimit) {
  std::size_t total = 0;
  for (const std::string& piece : split(std::string(4000, 'a'), {0, 100})) {
    EXPECT_LE(piece.size(), 100U);
    total += piece.size();
  }
  EXPECT_EQ(total, 4000U);
}

TEST(SplitSentences, NothingVisibleGivesNothing) {
  EXPECT_TRUE(split("").empty());
  EXPECT_TRUE(split(" \n\t　").empty());
}

TEST(SplitSentences, RangesAreOrderedBoundedAndLoseNothing) {
  const std::u32string alphabet = U"你好，。！？…“”（）、；：abcXY.,!?'\"()- \n\t3579%/:@é½😀\u200B\u0301—";
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::u32string wide(random() % 80, U' ');
    for (char32_t& c : wide) c = alphabet[random() % alphabet.size()];
    const std::string text = encode_utf8(wide);
    const GroupLimits limits{static_cast<std::uint32_t>(random() % 10), 10 + static_cast<std::uint32_t>(random() % 20)};
    std::vector<bool> covered(text.size(), false);
    std::size_t end = 0;
    for (const SourceRange& range : split_sentences(text, limits, one)) {
      ASSERT_LE(end, range.begin) << text;
      ASSERT_LT(range.begin, range.end) << text;
      end = range.end;
      ASSERT_LE(end, text.size()) << text;
      std::fill(covered.begin() + static_cast<std::ptrdiff_t>(range.begin), covered.begin() + static_cast<std::ptrdiff_t>(end), true);
      EXPECT_LE(fold_text(std::string_view(text).substr(range.begin, range.end - range.begin)).size(), limits.max_cost) << text;
    }
    for (const Unit& unit : fold_text(text)) EXPECT_TRUE(is_space(unit.c) || covered[unit.source.begin]) << text;
  }
}

TEST(GroupAtoms, AnAtomOverTheLimitStandsAlone) {
  const std::vector<Atom> atoms{{5, Break::kWord}, {50, Break::kWord}, {5, Break::kSentence}};
  EXPECT_EQ(group_atoms(atoms, {0, 20}), (std::vector<std::size_t>{1, 2, 3}));
}

TEST(GroupAtoms, BadPlacesAreUsedOnlyWhenThereIsNoBetterOne) {
  const std::vector<Atom> atoms{{4, Break::kNone}, {4, Break::kNone}, {4, Break::kWord}, {4, Break::kSentence}};
  EXPECT_EQ(group_atoms(atoms, {0, 12}), (std::vector<std::size_t>{3, 4}));
  const std::vector<Atom> no_breaks{{4, Break::kNone}, {4, Break::kNone}, {4, Break::kNone}, {4, Break::kSentence}};
  EXPECT_EQ(group_atoms(no_breaks, {0, 12}), (std::vector<std::size_t>{2, 4}));
}

TEST(GroupAtoms, AtomsWithoutCostAreKept) {
  const std::vector<Atom> atoms(1000, Atom{0, Break::kWord});
  EXPECT_EQ(group_atoms(atoms, {0, 10}), (std::vector<std::size_t>{1000}));
}

}  // namespace
}  // namespace tts::text
