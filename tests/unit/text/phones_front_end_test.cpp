#include "phones_front_end.h"

#include <chrono>
#include <cstdio>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "tts/base/utf8.h"

#include "nano_voice.h"

namespace tts::text::testing {
namespace {

constexpr std::size_t kControls = 3;             // start, speaker, end
constexpr std::int32_t kFirstSpokenSymbol = 20;  // everything before is a control symbol

PreparedText prepared(std::string_view text, const TextOptions& options = {}) {
  auto result = nano_front_end().prepare(text, options);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? std::move(*result) : PreparedText{};
}

std::vector<std::string> sources(const std::string& text) {
  std::vector<std::string> out;
  for (const auto& u : prepared(text).utterances) out.push_back(text.substr(u.source.begin, u.source.end - u.source.begin));
  return out;
}

// What must hold for any text that can be spoken.
void check_invariants(const std::string& text, const PreparedText& result) {
  std::vector<bool> covered(text.size(), false);
  std::size_t end = 0;
  ASSERT_FALSE(result.utterances.empty());
  for (const PreparedUtterance& u : result.utterances) {
    ASSERT_LE(end, u.source.begin) << text;
    ASSERT_LT(u.source.begin, u.source.end) << text;
    end = u.source.end;
    ASSERT_LE(end, text.size()) << text;
    std::fill(covered.begin() + static_cast<std::ptrdiff_t>(u.source.begin), covered.begin() + static_cast<std::ptrdiff_t>(end), true);
    ASSERT_GT(u.tokens.size(), kControls + 1) << text;
    EXPECT_EQ(names_of(std::span(u.tokens).first(2)), "[Stts] [spk_emb]");
    EXPECT_EQ(u.shared_prefix, 2U) << "what every text of the voice begins with";
    EXPECT_EQ(names_of(std::span(u.tokens).last(1)), "[Ptts]");
    for (std::size_t i = 2; i + 1 < u.tokens.size(); ++i) ASSERT_GE(u.tokens[i], kFirstSpokenSymbol) << text;
    EXPECT_TRUE(std::set<std::string>({".", "?", "!"}).contains(names_of(std::span(u.tokens).last(2).first(1)))) << text;
  }
  for (const Unit& unit : fold_text(text)) {
    EXPECT_TRUE(is_space(unit.c) || covered[unit.source.begin]) << text.substr(0, 100) << " at " << unit.source.begin;
  }
}

TEST(PhonesFrontEnd, DecoratesThePrompt) {
  const auto with = prepared("你好").utterances.front();
  EXPECT_EQ(names_of(with.tokens), "[Stts] [spk_emb] n i2 h ao3 . [Ptts]");
  EXPECT_EQ(with.tokens[1], nano_front_end().speaker_token());
  TextOptions no_speaker;
  no_speaker.has_speaker = false;
  EXPECT_EQ(names_of(prepared("你好", no_speaker).utterances.front().tokens), "[Stts] [empty_spk] n i2 h ao3 . [Ptts]");
}

TEST(PhonesFrontEnd, SeparatesWordsAndKeepsTheFirstOfSeveralMarks) {
  EXPECT_EQ(symbols_of("我爱你，、你呢？！"), "uo3 ai4 n i3 , n i3 _ n e5 ?");
  EXPECT_EQ(symbols_of("用GitHub吧"), "iong4 _ JH IH1 TH AH0 B _ b a5 .");
  EXPECT_EQ(symbols_of("“你好”"), "n i2 h ao3 .");
}

TEST(PhonesFrontEnd, EndsInAMarkTheVoiceKnowsAsAnEnd) {
  EXPECT_EQ(symbols_of("你好，"), "n i2 h ao3 .");
  EXPECT_EQ(symbols_of("你好……"), "n i2 h ao3 .");
  EXPECT_EQ(symbols_of("你好…？"), "n i2 h ao3 ?");
}

TEST(PhonesFrontEnd, SplitsIntoSentencesWithTheirRanges) {
  EXPECT_EQ(sources("  今天天气真不错。 我们一起去公园散步吧！"), (std::vector<std::string>{"今天天气真不错。", "我们一起去公园散步吧！"}));
  EXPECT_EQ(sources("“今天天气真不错。”他笑着对我们大家说。"), (std::vector<std::string>{"“今天天气真不错。”", "他笑着对我们大家说。"}));
}

TEST(PhonesFrontEnd, JoinsShortSentences) { EXPECT_EQ(sources("好。我们走吧。嗯。"), (std::vector<std::string>{"好。我们走吧。嗯。"})); }

TEST(PhonesFrontEnd, LongTextsGiveUtterancesOfBoundedLength) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 7 == 6 ? "我们慢慢地走，" : "大家都很高兴";
  const auto result = prepared(text);
  EXPECT_GT(result.utterances.size(), 5U);
  for (const auto& u : result.utterances) EXPECT_LE(u.tokens.size(), kMaxUtteranceSymbols + kControls);
  check_invariants(text, result);
}

TEST(PhonesFrontEnd, OneUtteranceOnRequestOrAnError) {
  TextOptions whole;
  whole.split = false;
  EXPECT_EQ(prepared("今天天气真不错。我们一起去公园散步吧！", whole).utterances.size(), 1U);
  const auto too_long = nano_front_end().prepare(encode_utf8(std::u32string(400, U'的')), whole);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::kTooLarge);
  EXPECT_NE(too_long.error().message.find("400"), std::string::npos);
}

TEST(PhonesFrontEnd, ReportsWhatHasNoReadingOnce) {
  const auto result = prepared("你好😀，Привет😀世界€");
  EXPECT_EQ(result.dropped, (std::vector<std::string>{"😀", "П", "р", "и", "в", "е", "т", "€"}));
  EXPECT_TRUE(prepared("“你好”，（世界）——~。").dropped.empty());
}

TEST(PhonesFrontEnd, RefusesWhatCannotBeSpoken) {
  using namespace std::string_literals;
  for (const std::string& text : {""s, "  \n\t　"s, "？！。"s, "😀😀"s, "\xFF你好"s, "你\0好"s, "你好\xE4\xBD"s, "\xED\xA0\x80"s}) {
    const auto result = nano_front_end().prepare(text, {});
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().param, "text");
  }
}

TEST(PhonesFrontEnd, TraditionalAndRareCharactersHaveReadings) {
  EXPECT_EQ(symbols_of("圖書館"), symbols_of("图书馆"));
  EXPECT_EQ(symbols_of("〇"), "l ing2 .");
  EXPECT_TRUE(prepared("神祇偈语苯酞㐀").dropped.empty());
}

TEST(PhonesFrontEnd, SingleSyllablesAreSpoken) {
  for (const char* text : {"好", "嗯", "A", "7", "Hi", "No."}) EXPECT_EQ(prepared(text).utterances.size(), 1U) << text;
}

TEST(PhonesFrontEnd, NamesOfControlSymbolsInTheTextAreOnlyText) {
  std::mt19937 random(3);
  const std::vector<std::string> fragments{"[Stts]", "[spk_emb]", "[Ptts]", "[empty_spk]", "[uv_break]", "[laugh]", "[speed_5]",
                                           "[zh]",   "[en]",      "[pad]",  "［Ptts］",    "Ptts",       "[",       "]",
                                           "你好",   "一个人",    "，",     "。",          "hello ",     "the ",    "12",
                                           " ",      "\n",        "p",      "zh",          "_"};
  for (int round = 0; round < 600; ++round) {
    std::string text = "我";
    for (std::size_t i = random() % 12; i > 0; --i) text += fragments[random() % fragments.size()];
    check_invariants(text, prepared(text));
  }
}

TEST(PhonesFrontEnd, RandomTextsLoseAndRepeatNothing) {
  const std::u32string alphabet = U"的一不银行长好你，。！？…“”（）、；：aTthexyzABC.,!?'’\"()- \n3579%/:@é½😀\u200B\u0301—\u9FFC㐀";
  std::mt19937 random(23);
  for (int round = 0; round < 600; ++round) {
    std::u32string wide(1 + random() % 300, U'我');
    for (std::size_t i = 1; i < wide.size(); ++i) wide[i] = alphabet[random() % alphabet.size()];
    const std::string text = encode_utf8(wide);
    check_invariants(text, prepared(text));
  }
}

// Inputs that would show anything worse than linear work, or a run that is never cut.
TEST(PhonesFrontEnd, HostileInputsStayBounded) {
  constexpr std::size_t kLength = 4000;
  std::vector<std::u32string> texts;
  for (const char32_t c : std::u32string(U"的一龘aWI1.,-'’。？…“(\n \u0301\u202E\u0627😀½\u9FFF"))
    texts.push_back(U"我" + std::u32string(kLength, c));
  for (const std::u32string_view unit :
       {U"1.", U"1:", U"a.", U"a'", U"1,", U"//", U"@a", U"- ", U"“a", U"a\n", U"一不", U"$1", U"1年", U". "}) {
    std::u32string text = U"我";
    while (text.size() < kLength) text += unit;
    texts.push_back(text);
  }
  for (const std::u32string& wide : texts) {
    const std::string text = encode_utf8(wide);
    const auto result = prepared(text);
    check_invariants(text, result);
    for (const auto& u : result.utterances) EXPECT_LE(u.tokens.size(), kMinPromptTokens) << text.substr(0, 20);
  }
}

TEST(PhonesFrontEnd, TheLongestPieceFitsTheSmallestPrompt) {
  const std::string number(kMaxCardinalDigits, '7');
  const std::string grouped = "777,777,777,777,777.";
  const std::vector<std::string> texts{std::string(kMaxWordLetters, 'W'), "cost " + number, "cost -" + grouped,
                                       "cost 777,777,777,777.777%"};
  for (const std::string& text : texts) {
    for (const auto& u : prepared(text).utterances) EXPECT_LE(u.tokens.size(), kMinPromptTokens) << text;
  }
}

TEST(PhonesFrontEnd, HasNoRefinement) {
  EXPECT_FALSE(nano_front_end().has_refine());
  EXPECT_EQ(nano_front_end().prepare_refine("a", "").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(nano_front_end().prepare_refined({}, {}).error().code, ErrorCode::kUnsupported);
}

TEST(PhonesFrontEnd, AnswersManyThreadsAlike) {
  const std::string text = "今天天气真不错。The weather is nice, 我们一起去park散步吧！";
  const auto want = prepared(text);
  std::vector<PreparedText> got(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : got) threads.emplace_back([&] { result = prepared(text); });
  }
  for (const auto& result : got) {
    ASSERT_EQ(result.utterances.size(), want.utterances.size());
    for (std::size_t i = 0; i < want.utterances.size(); ++i) EXPECT_EQ(result.utterances[i].tokens, want.utterances[i].tokens);
  }
}

TEST(PhonesFrontEnd, RefusesPartsThatDoNotFit) {
  const auto symbols = read_bytes(nano_directory() / "symbols.json");
  const auto lexicon = read_bytes(nano_directory() / "zh_lexicon.bin");
  EXPECT_THROW(PhonesFrontEnd(SymbolTable(symbols, 320), lexicon, kMinPromptTokens - 1), std::runtime_error);
  EXPECT_NO_THROW(PhonesFrontEnd(SymbolTable(symbols, 320), lexicon, 0));
  auto json =
      nlohmann::json::parse(reinterpret_cast<const char*>(symbols.data()), reinterpret_cast<const char*>(symbols.data()) + symbols.size());
  json["symbols"][40] = "renamed";
  const std::string text = json.dump();
  EXPECT_THROW(PhonesFrontEnd(SymbolTable(std::as_bytes(std::span(text)), 320), lexicon, 0), std::runtime_error);
}

TEST(LoadFrontEnd, OpensTheBundledVoice) {
  const engine::Manifest manifest = nano_manifest();
  const auto start = std::chrono::steady_clock::now();
  const auto front_end = load_front_end(manifest);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("front end opened in %.1f ms\n", took.count());
  const auto result = front_end->prepare("你好", {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->utterances.size(), 1U);
}

TEST(LoadFrontEnd, RefusesALexiconThatDiffersFromTheManifest) {
  auto manifest = nano_manifest();
  manifest.files["zh_lexicon"].sha256[0] = manifest.files["zh_lexicon"].sha256[0] == '0' ? '1' : '0';
  EXPECT_THROW(load_front_end(manifest), std::runtime_error);
  manifest.files.erase("zh_lexicon");
  EXPECT_THROW(load_front_end(manifest), std::runtime_error);
}

}  // namespace
}  // namespace tts::text::testing
