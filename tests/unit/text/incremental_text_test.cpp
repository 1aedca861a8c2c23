#include "tts/text/incremental_text.h"

#include <random>

#include <gtest/gtest.h>

#include "nano_voice.h"
#include "sentence_splitter.h"
#include "tts/base/utf8.h"

namespace tts::text {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Strings = std::vector<std::string>;

constexpr TimePoint kStart{std::chrono::hours(1)};

// The pieces that come out when each of `appended` comes in turn, and what is still held.
struct Taken {
  Strings pieces;
  std::string rest;
};

Taken take(const Strings& appended) {
  IncrementalText text(Duration(0));
  Taken taken;
  for (const std::string& piece : appended) {
    text.append(piece, kStart);
    if (auto certain = text.take_certain(kStart); !certain.empty()) taken.pieces.push_back(std::move(certain));
  }
  taken.rest = text.take_all();
  EXPECT_TRUE(text.empty());
  return taken;
}

Strings pieces(const Strings& appended) { return take(appended).pieces; }

TEST(IncrementalText, FullWidthStopsAreCertainAtOnce) {
  EXPECT_EQ(pieces({"你好"}), Strings{});
  EXPECT_EQ(pieces({"你", "好", "。"}), Strings{"你好。"});
  EXPECT_EQ(pieces({"真的？"}), Strings{"真的？"});
  EXPECT_EQ(pieces({"走吧！”他说"}), Strings{"走吧！”"});
  EXPECT_EQ(pieces({"好｡"}), Strings{"好｡"}) << "in its narrow form too";
  EXPECT_EQ(pieces({"一。二。三"}), Strings{"一。二。"}) << "all that is certain";
}

TEST(IncrementalText, LineEndsAreCertainAtOnce) {
  EXPECT_EQ(pieces({"Shopping\n"}), Strings{"Shopping\n"});
  EXPECT_EQ(pieces({"Mr", ".", "\n"}), Strings{"Mr.\n"});
  EXPECT_EQ(pieces({"a\r", "\nb"}), (Strings{"a\r", "\n"}));
}

TEST(IncrementalText, LatinStopsWaitForWhatFollows) {
  EXPECT_EQ(pieces({"Hello."}), Strings{});
  EXPECT_EQ(pieces({"Hello. "}), Strings{});
  EXPECT_EQ(pieces({"Hello", ". ", "W", "orld"}), Strings{"Hello. "});
  EXPECT_EQ(pieces({"Really?! ", "Y"}), Strings{"Really?! "});
  EXPECT_EQ(pieces({"He said \"go.", "\" ", "T"}), Strings{"He said \"go.\" "});
  EXPECT_EQ(pieces({"我用Python.", "你呢"}), Strings{"我用Python."});
}

TEST(IncrementalText, DotsThatEndNothingAreNotCertain) {
  EXPECT_EQ(pieces({"It is 3", ".", "1", "4 or so"}), Strings{});
  EXPECT_EQ(pieces({"Mr", ". ", "Smith and Dr. J", ". ", "Lin"}), Strings{});
  EXPECT_EQ(pieces({"about etc", ". ", "and more"}), Strings{});
  EXPECT_EQ(pieces({"See No", ". ", "5"}), Strings{});
  EXPECT_EQ(pieces({"See example", ".", "org"}), Strings{});
}

TEST(IncrementalText, AStopThatMayBelongToAnAddressWaitsForItsEnd) {
  EXPECT_EQ(pieces({"Ask!(me"}), Strings{});
  EXPECT_EQ(pieces({"Ask!(me", "@a.example.org) now"}), Strings{}) << "it did";
  EXPECT_EQ(pieces({"Ask!(me", ") now"}), Strings{"Ask!"}) << "it did not";
  EXPECT_EQ(pieces({"See https://a.example.org/x?y=1!z", ". ", "Then"}), Strings{"See https://a.example.org/x?y=1!z. "});
}

TEST(IncrementalText, WhiteSpaceGoesWithTheSentenceBeforeIt) {
  const Taken taken = take({"One.  Two. \n  Three"});
  EXPECT_EQ(taken.pieces, Strings{"One.  Two. \n  "});
  EXPECT_EQ(taken.rest, "Three");
}

TEST(IncrementalText, NothingIsDueWithoutADelay) {
  IncrementalText text(Duration(0));
  text.append("Hello, wor", kStart);
  EXPECT_EQ(text.due_at(), TimePoint::max());
  EXPECT_EQ(text.take_due(kStart + std::chrono::hours(9)), "");
}

TEST(IncrementalText, WhatIsHeldTooLongIsGivenOutToTheLastClause) {
  IncrementalText text(seconds(3));
  text.append("Well, my friend, this is", kStart);
  text.append(" lo", kStart + seconds(2));
  EXPECT_EQ(text.due_at(), kStart + seconds(3)) << "since the oldest came";
  EXPECT_EQ(text.take_due(kStart + milliseconds(2999)), "");
  EXPECT_EQ(text.take_due(kStart + seconds(3)), "Well, my friend, ");
  EXPECT_EQ(text.due_at(), kStart + seconds(6)) << "the rest has its own time";
  EXPECT_EQ(text.take_due(kStart + seconds(6)), "this is ") << "to the last word";
  EXPECT_EQ(text.take_due(kStart + seconds(9)), "lo") << "all of a single run";
  EXPECT_EQ(text.due_at(), TimePoint::max());
}

TEST(IncrementalText, ASentenceThatNothingFollowedIsDueAsAWhole) {
  for (const char* sentence : {"I like cats.", "I like cats. ", "It costs 5.", "你好吗", "你好，世界", "Is it good?", "\"Yes.\""}) {
    IncrementalText text(seconds(3));
    text.append(sentence, kStart);
    EXPECT_EQ(text.take_due(kStart + seconds(3)), std::string_view(sentence).starts_with("你好，") ? "你好，" : sentence);
  }
}

TEST(IncrementalText, AnAddressIsNotGivenOutBeforeItIsComplete) {
  IncrementalText text(seconds(3));
  text.append("See https://a.example.org/x", kStart);
  EXPECT_EQ(text.take_due(kStart + seconds(3)), "See ");
}

TEST(IncrementalText, WhiteSpaceIsNeverDue) {
  IncrementalText text(seconds(3));
  text.append(" \t ", kStart);
  EXPECT_EQ(text.due_at(), TimePoint::max());
  text.append("a", kStart + seconds(8));
  EXPECT_EQ(text.due_at(), kStart + seconds(11));
  EXPECT_EQ(text.take_due(kStart + seconds(11)), " \t a");
}

TEST(IncrementalText, ASentenceTakenStartsTheTimeOfTheRest) {
  IncrementalText text(seconds(3));
  text.append("One. T", kStart);
  EXPECT_EQ(text.take_certain(kStart + seconds(2)), "One. ");
  EXPECT_EQ(text.due_at(), kStart + seconds(5));
  EXPECT_EQ(text.take_all(), "T");
  EXPECT_EQ(text.due_at(), TimePoint::max());
}

TEST(IncrementalText, CharactersThatBecomeSeveralAreNotCut) {
  EXPECT_EQ(pieces({"Half. ½ cup"}), Strings{"Half. "});
  EXPECT_EQ(pieces({"First ⒈ is it"}), Strings{}) << "the stop within a number sign";
}

// Sentences without what may stand on either side of a cut: white space, and marks that came after a full-width stop.
Strings bare_sentences(const Strings& texts) {
  constexpr std::u32string_view kLoose = U"。！？!?.，、；：,;:—…”’）)]】」』》〉}»\"' \n\t\r　";
  Strings out;
  for (const std::string& text : texts) {
    for (const SourceRange& range : split_sentences(text, {0, 1U << 20U}, [](char32_t) { return 1U; })) {
      std::u32string wide = decode_utf8(std::string_view(text).substr(range.begin, range.end - range.begin));
      const auto first = wide.find_first_not_of(kLoose);
      if (first == std::u32string::npos) continue;
      out.push_back(encode_utf8(wide.substr(first, wide.find_last_not_of(kLoose) + 1 - first)));
    }
  }
  return out;
}

Strings cut_anywhere(const std::string& text, std::mt19937& random) {
  Strings cuts;
  std::u32string wide = decode_utf8(text);
  for (std::size_t at = 0; at < wide.size();) {
    const std::size_t count = 1 + random() % 7;
    cuts.push_back(encode_utf8(wide.substr(at, count)));
    at += count;
  }
  return cuts;
}

TEST(IncrementalText, HoweverItComesTheSentencesAreThoseOfTheWhole) {
  const Strings words = {
      "你好", "世界", "word", "Word ", " ",  "I",  "Mr. ", "U.S. ", "e.g. ", "approx. ", "No. 5th", "v3.14 ",    "B2B",    ". ", ".)",
      "! ",   "? ",   "?",    "。",    "！", "？", "……",   "，",    ", ",    "：",       "”",     "\"",        "“",      "（", "）",
      "(",    ")",    "\n",   "\r\n",  "  ", "'",  "；",   "—",     "- ",    "½ cup ",   "😀",    "www.a.org", "me@a.b", "//", "’s ",
      "https://a.example.org/c?d=1!e ",
  };
  std::mt19937 random(5);
  std::size_t given_out_early = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t i = random() % 16; i > 0; --i) text += words[random() % words.size()];
    const Strings appended = cut_anywhere(text, random);
    Taken taken = take(appended);
    given_out_early += taken.pieces.size();
    taken.pieces.push_back(taken.rest);
    std::string joined;
    for (const std::string& piece : taken.pieces) joined += piece;
    ASSERT_EQ(joined, text);
    ASSERT_EQ(bare_sentences(taken.pieces), bare_sentences({text})) << ::testing::PrintToString(appended);
  }
  EXPECT_GT(given_out_early, 20000U);
}

TEST(IncrementalText, WhateverComesWheneverNothingIsLostOrRepeated) {
  const std::u32string alphabet = U"你好，。！？…“”（）、；：abcXY.,!?'\"()- \n\r\t3579%/:@é½⒈😀\u200B\u0301—";
  std::mt19937 random(17);
  for (int round = 0; round < 5000; ++round) {
    std::u32string wide(random() % 60, U' ');
    for (char32_t& c : wide) c = alphabet[random() % alphabet.size()];
    const std::string input = encode_utf8(wide);
    IncrementalText text(milliseconds(random() % 3));
    std::string joined;
    TimePoint now = kStart;
    for (const std::string& piece : cut_anywhere(input, random)) {
      text.append(piece, now);
      now += milliseconds(random() % 3);
      switch (random() % 4) {
        case 0: break;
        case 1: joined += text.take_certain(now); break;
        case 2: joined += text.take_due(now); break;
        default: joined += random() % 4 == 0 ? text.take_all() : text.take_certain(now);
      }
      ASSERT_FALSE(find_invalid_utf8(joined).has_value());
    }
    joined += text.take_all();
    ASSERT_EQ(joined, input);
  }
}

// The whole way: what the bundled voice would say.
TEST(IncrementalText, TheVoiceSaysTheSameSentences) {
  const std::string text =
      "今天天气很好，我们一起去公园散步吧。公园里有很多人！ It is 3.14 degrees outside, Mr. Smith said to everybody. "
      "Then he left for good? "
      "“我们走吧，时间已经不早了。”他这样说。\nSee https://a.example.org/x?y=1 for all of the details of it.";
  const auto spoken = [](const std::string& part) {
    Strings out;
    if (const auto prepared = testing::nano_front_end().prepare(part, {})) {
      for (const auto& utterance : prepared->utterances) out.push_back(utterance.spoken);
    }
    return out;
  };
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    Taken taken = take(cut_anywhere(text, random));
    taken.pieces.push_back(taken.rest);
    Strings said;
    for (const std::string& piece : taken.pieces) {
      for (std::string& sentence : spoken(piece)) said.push_back(std::move(sentence));
    }
    // The closing mark that came after a full-width stop begins the sentence after it.
    Strings whole = spoken(text);
    const auto bare = [](Strings sentences) {
      for (std::string& sentence : sentences) std::erase_if(sentence, [](char c) { return c == ' '; });
      std::string joined;
      for (const std::string& sentence : sentences) joined += sentence;
      return joined;
    };
    EXPECT_EQ(bare(said), bare(whole));
    EXPECT_GE(said.size(), 5U);
  }
}

}  // namespace
}  // namespace tts::text
