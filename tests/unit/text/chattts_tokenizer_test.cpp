#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tts/base/utf8.h"

#include "bert_tokenizer.h"
#include "chattts_goldens.h"

namespace tts::text {
namespace {

using nlohmann::json;
using test::golden;
using test::golden_tokenizer;
using testing::HasSubstr;

using Ids = std::vector<TokenId>;

TEST(ChatttsTokenizer, ReproducesEveryRecordedText) {
  const BertTokenizer tokenizer = golden_tokenizer();
  const json recorded = golden("tokenizer.json");
  EXPECT_EQ(tokenizer.size(), recorded["len"].get<std::size_t>());
  EXPECT_EQ(tokenizer.special("[spk_emb]"), recorded["spk_emb_ids"].get<TokenId>());
  EXPECT_EQ(tokenizer.special("[break_0]"), recorded["break_0_ids"].get<TokenId>());
  EXPECT_EQ(tokenizer.special("[Ebreak]"), recorded["eos_token"].get<TokenId>());
  ASSERT_EQ(recorded["cases"].size(), 26U);
  for (const json& one : recorded["cases"]) {
    const auto text = one["text"].get<std::string>();
    const Ids ids = tokenizer.encode(text);
    EXPECT_EQ(ids, one["ids"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer.decode(ids), one["decode"].get<std::string>()) << text;
  }
}

// A tokenizer with the pieces given; the config changes what it names.
struct Small {
  json model = {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"continuing_subword_prefix", "##"}, {"max_input_chars_per_word", 100}};
  json normalizer = {
      {"type", "BertNormalizer"}, {"clean_text", true}, {"handle_chinese_chars", true}, {"strip_accents", nullptr}, {"lowercase", true}};
  json decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  json added = json::array();
  json config = json::object();

  explicit Small(const std::vector<std::string>& pieces = {}) {
    model["vocab"]["[UNK]"] = 0;
    for (const auto& piece : pieces) model["vocab"].emplace(piece, model["vocab"].size());
    special("[UNK]", 0);
  }

  void special(const std::string& name, int id) {
    added.push_back({{"id", id},
                     {"content", name},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }

  std::string text() const {
    return json{{"model", model},
                {"normalizer", normalizer},
                {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                {"decoder", decoder},
                {"added_tokens", added}}
        .dump();
  }
  BertTokenizer make() const { return {text(), config.dump()}; }

  std::string refusal() const {
    try {
      make();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  std::string round_trip(const char* text) const {
    const BertTokenizer tokenizer = make();
    Ids ids;
    tokenizer.encode_ordinary(text, ids);
    return tokenizer.decode(ids);
  }
};

TEST(ChatttsTokenizer, ConfigOverridesTheNormaliser) {
  Small small({"CAFÉ", "CAFE", "café", "cafe"});
  EXPECT_EQ(small.round_trip("CAFÉ"), "cafe");
  small.config = {{"do_lower_case", false}};
  EXPECT_EQ(small.round_trip("CAFÉ"), "CAFÉ") << "strip_accents follows lowercase when nothing else is said";
  small.config = {{"do_lower_case", false}, {"strip_accents", true}};
  EXPECT_EQ(small.round_trip("CAFÉ"), "CAFE");
  small.config = {{"do_lower_case", true}, {"strip_accents", false}};
  EXPECT_EQ(small.round_trip("CAFÉ"), "café");
  small.config = {{"do_lower_case", nullptr}, {"strip_accents", nullptr}};
  EXPECT_EQ(small.round_trip("CAFÉ"), "cafe");
}

TEST(ChatttsTokenizer, HanIsIsolatedOnlyWhereTheConfigSaysSo) {
  Small small({"你", "好", "你好"});
  EXPECT_EQ(small.round_trip("你好"), "你 好");
  small.config = {{"tokenize_chinese_chars", false}};
  EXPECT_EQ(small.round_trip("你好"), "你好");
}

TEST(ChatttsTokenizer, CapitalIWithDotIsTwoCharactersWhenAccentsStay) {
  Small small({"i\u0307", "i"});
  EXPECT_EQ(small.round_trip("İ"), "i");
  small.config = {{"strip_accents", false}};
  EXPECT_EQ(small.round_trip("İ"), "i\u0307");
}

TEST(ChatttsTokenizer, LongestPieceWinsAndAFailureTakesTheWholeWord) {
  const Small small({"un", "una", "##able", "##affable"});
  EXPECT_EQ(small.round_trip("unable"), "[UNK]") << "greedy: una leaves ble";
  EXPECT_EQ(small.round_trip("unaable unable"), "unaable [UNK]");
}

TEST(ChatttsTokenizer, WordLimitCountsCharactersNotBytes) {
  Small small({"é", "##é"});
  small.config = {{"strip_accents", false}};
  small.model["max_input_chars_per_word"] = 3;
  EXPECT_EQ(small.round_trip("ééé"), "ééé");
  EXPECT_EQ(small.round_trip("éééé"), "[UNK]");
}

TEST(ChatttsTokenizer, LongRunsOfMarksAreSortedAndStripped) {
  std::string marks = "a";
  for (int i = 0; i < 100000; ++i) marks += i % 2 ? "\u0323" : "\u0301";  // alternating classes: the worst case of an insertion sort
  EXPECT_EQ(Small({"a"}).round_trip(marks.c_str()), "a");
}

TEST(ChatttsTokenizer, CleanUpOfTheConfigContractsEnglish) {
  Small small({"i", "do", "not", "we", "'", "ve", "."});
  EXPECT_EQ(small.round_trip("we ' ve do not."), "we ' ve do not.");
  small.config = {{"clean_up_tokenization_spaces", true}};
  EXPECT_EQ(small.round_trip("i do not."), "i don't.");
}

TEST(ChatttsTokenizer, LongestSpecialWinsAndOverlapsGoToTheLeft) {
  Small small({"[", "]", "a", "b"});
  small.special("[a", 10);
  small.special("[a]", 11);
  small.special("]b", 12);
  const BertTokenizer tokenizer = small.make();
  EXPECT_EQ(tokenizer.encode("[a]b"), (Ids{11, 4}));
  EXPECT_EQ(tokenizer.encode("[ab"), (Ids{10, 4}));
  EXPECT_EQ(tokenizer.encode("[[a"), (Ids{1, 10}));
  EXPECT_EQ(tokenizer.encode("a]b"), (Ids{3, 12}));
}

TEST(ChatttsTokenizer, OrdinaryTextNeverReachesASpecialIdEvenWhereOneLooksLikeAWord) {
  Small small({"a", "##b"});
  small.special("ab", 7);
  small.special("##c", 8);
  const BertTokenizer tokenizer = small.make();
  Ids ids;
  tokenizer.encode_ordinary("ab ac [UNK]", ids);
  for (const TokenId id : ids) EXPECT_TRUE(!tokenizer.is_special(id) || id == tokenizer.unknown()) << id;
  EXPECT_EQ(tokenizer.encode("ab"), Ids{7});
}

TEST(ChatttsTokenizer, DecodeIgnoresIdsThatDoNotExist) {
  const BertTokenizer tokenizer = Small({"a", "b"}).make();
  EXPECT_EQ(tokenizer.decode(Ids{-1, 1, 99, 2, std::numeric_limits<TokenId>::max(), std::numeric_limits<TokenId>::min()}), "a b");
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_FALSE(tokenizer.is_special(99));
}

TEST(ChatttsTokenizer, RefusesFilesItCannotReproduceAndListsEverything) {
  Small small;
  small.model["type"] = "BPE";
  small.normalizer["type"] = "NFC";
  small.added[0]["lstrip"] = true;
  const std::string message = small.refusal();
  EXPECT_THAT(message, HasSubstr("model.type must be \"WordPiece\""));
  EXPECT_THAT(message, HasSubstr("normalizer.type must be \"BertNormalizer\""));
  EXPECT_THAT(message, HasSubstr("[UNK]: lstrip is not supported"));
}

TEST(ChatttsTokenizer, RefusesHostileValues) {
  const auto with = [](auto change) {
    Small small({"a", "b"});
    change(small);
    return small.refusal();
  };
  EXPECT_THAT(with([](Small& s) { s.model["vocab"]["x"] = -1; }), HasSubstr("no valid id for token x"));
  EXPECT_THAT(with([](Small& s) { s.model["vocab"]["x"] = BertTokenizer::kMaxVocabulary; }), HasSubstr("no valid id"));
  EXPECT_THAT(with([](Small& s) { s.model["vocab"]["x"] = 1.5; }), HasSubstr("no valid id"));
  EXPECT_THAT(with([](Small& s) { s.model["vocab"]["x"] = 1; }), HasSubstr("belongs to"));
  EXPECT_THAT(with([](Small& s) { s.model["vocab"][""] = 9; }), HasSubstr("a token of 0 bytes"));
  EXPECT_THAT(with([](Small& s) { s.model["vocab"][std::string(BertTokenizer::kMaxTokenBytes + 1, 'x')] = 9; }),
              HasSubstr("a token of 1025 bytes"));
  EXPECT_THAT(with([](Small& s) { s.model["vocab"] = json::array(); }), HasSubstr("model.vocab must be"));
  EXPECT_THAT(with([](Small& s) { s.model["max_input_chars_per_word"] = 0; }), HasSubstr("max_input_chars_per_word"));
  EXPECT_THAT(with([](Small& s) { s.model["max_input_chars_per_word"] = BertTokenizer::kMaxWordLengthLimit + 1; }),
              HasSubstr("max_input_chars_per_word"));
  EXPECT_THAT(with([](Small& s) { s.model["unk_token"] = "nowhere"; }), HasSubstr("unk_token"));
  EXPECT_THAT(with([](Small& s) { s.model["unk_token"] = nullptr; }), HasSubstr("unk_token"));
  EXPECT_THAT(with([](Small& s) { s.added = 5; }), HasSubstr("added_tokens"));
  EXPECT_THAT(with([](Small& s) { s.added.push_back(nullptr); }), HasSubstr("without content or id"));
  EXPECT_THAT(with([](Small& s) { s.special("a", 2); }), HasSubstr("belongs to"));
  EXPECT_THAT(with([](Small& s) { s.normalizer["lowercase"] = "yes"; }), HasSubstr("normalizer.lowercase must be true or false"));
  EXPECT_THAT(with([](Small& s) { s.config["do_lower_case"] = 1; }), HasSubstr("do_lower_case must be true or false"));
  EXPECT_EQ(with([](Small&) {}), "");
}

TEST(ChatttsTokenizer, RefusesWhatIsNoJson) {
  const std::string good = Small().text();
  for (const std::string& bad : {std::string(), std::string("[]"), std::string("{"), std::string("\xFF\xFE"), std::string(100000, '['),
                                 good.substr(0, good.size() / 2), std::string("{\"model\":\"\\ud800\"}")}) {
    EXPECT_THROW(BertTokenizer(bad, ""), std::runtime_error) << bad.substr(0, 40);
    if (bad.empty()) continue;  // no config is fine
    EXPECT_THROW(BertTokenizer(good, bad), std::runtime_error) << bad.substr(0, 40);
  }
}

TEST(ChatttsTokenizer, SurvivesAnyUnicodeAndKeepsToItsVocabulary) {
  const BertTokenizer tokenizer = golden_tokenizer();
  std::mt19937 random(20240528);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 200; ++i) {
      auto c = static_cast<char32_t>(random() % (round % 3 == 0 ? 0x80 : round % 3 == 1 ? 0x3000 : 0x110000));
      if (c >= 0xD800 && c <= 0xDFFF) c = U'a';
      append_utf8(text, c);
    }
    Ids ids;
    tokenizer.encode_ordinary(text, ids);
    for (const TokenId id : ids) {
      ASSERT_GE(id, 0);
      ASSERT_LT(static_cast<std::size_t>(id), tokenizer.size());
      ASSERT_TRUE(!tokenizer.is_special(id) || id == tokenizer.unknown());
    }
    EXPECT_FALSE(find_invalid_utf8(tokenizer.decode(ids)).has_value());
  }
}

}  // namespace
}  // namespace tts::text
