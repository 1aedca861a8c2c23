#include "chattts_front_end.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tts/base/sha256.h"
#include "tts/base/utf8.h"

#include "chattts_goldens.h"
#include "chattts_reference.h"

namespace tts::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Ids = std::vector<TokenId>;

constexpr std::uint32_t kTextTokens = 279;

engine::Manifest manifest() {
  engine::Manifest out;
  out.name = "chattts-test";
  out.front_end = engine::TextFrontEndKind::kChattts;
  out.architecture.gpt.num_text_tokens = kTextTokens;
  const auto add = [&](const char* role, const std::filesystem::path& path) {
    out.files[role] = {path, sha256_file_hex(path), std::filesystem::file_size(path)};
  };
  add("tokenizer", test::kTokenizerJson);
  add("tokenizer_config", test::kTokenizerConfig);
  add("homophones", test::kGoldens / "model/homophones_map.json");
  return out;
}

TextOptions cleaned(bool normalize) {
  TextOptions options;
  options.normalize = normalize;
  return options;
}

TextOptions verbatim() { return cleaned(false); }

TextOptions unsplit(bool normalize = true) {
  TextOptions options = cleaned(normalize);
  options.split = false;
  return options;
}

TextOptions styled(std::string style) {
  TextOptions options;
  options.style_prompt = std::move(style);
  return options;
}

TextOptions in(const char* language) {
  TextOptions options;
  options.language = language;
  return options;
}

TextOptions without_speaker() {
  TextOptions options;
  options.has_speaker = false;
  return options;
}

class ChatttsFrontEndTest : public testing::Test {
 protected:
  const std::unique_ptr<FrontEnd> front_end_ = load_chattts_front_end(manifest());
  const BertTokenizer tokenizer_ = test::golden_tokenizer();

  PreparedText prepare(std::string_view text, const TextOptions& options = {}) const {
    auto prepared = front_end_->prepare(text, options);
    EXPECT_TRUE(prepared.ok()) << text;
    return prepared.ok() ? *prepared : PreparedText{};
  }

  // Of a text that makes one utterance.
  PreparedUtterance one(std::string_view text, const TextOptions& options = {}) const {
    const PreparedText prepared = prepare(text, options);
    EXPECT_EQ(prepared.utterances.size(), 1U) << text;
    return prepared.utterances.empty() ? PreparedUtterance{} : prepared.utterances[0];
  }

  Error refusal(std::string_view text, const TextOptions& options = {}) const {
    const auto prepared = front_end_->prepare(text, options);
    EXPECT_FALSE(prepared.ok()) << text;
    return prepared.ok() ? Error{} : prepared.error();
  }

  TokenId id(const char* name) const { return tokenizer_.special(name).value(); }

  Ids reference(std::string_view text, std::string_view prompt, bool has_speaker) const {
    return tokenizer_.encode(decorate_code_like_reference(text, {prompt, "", has_speaker}));
  }
};

TEST_F(ChatttsFrontEndTest, PromptEqualsTheReferencesOnHonestText) {
  for (const char* text : {"今天天气真不错", "[uv_break]hello[laugh]world[lbreak]", "hello, world.", "你好。", "  hello  ", "[laugh]hello",
                           "hello [uv_break]"}) {
    for (const bool has_speaker : {true, false}) {
      for (const char* style : {"[speed_3]", "[oral_2][laugh_0][break_6]"}) {
        TextOptions options = verbatim();
        options.has_speaker = has_speaker;
        options.style_prompt = style;
        EXPECT_EQ(one(text, options).tokens, reference(text, style, has_speaker)) << text;
        options.normalize = true;
        EXPECT_EQ(one(text, options).tokens, reference(one(text, options).spoken, style, has_speaker)) << text;
      }
    }
  }
}

TEST_F(ChatttsFrontEndTest, DefaultStyleIsSpeed5) {
  EXPECT_EQ(one("你好").tokens, (Ids{id("[Stts]"), id("[spk_emb]"), id("[speed_5]"), 191, 192, id("[Ptts]")}));
  EXPECT_EQ(one("你好", without_speaker()).tokens[1], id("[empty_spk]"));
  EXPECT_EQ(front_end_->speaker_token(), id("[spk_emb]"));
}

TEST_F(ChatttsFrontEndTest, ThePrefixToShareIsVoiceAndStyle) {
  EXPECT_EQ(one("你好").shared_prefix, 3U);
  EXPECT_EQ(one("[laugh]你好", styled("[oral_2][laugh_0][break_6]")).shared_prefix, 5U);
  EXPECT_EQ(one("你好", without_speaker()).shared_prefix, 3U);
  const auto refined = front_end_->prepare_refined(tokenizer_.encode("你好"), styled("[oral_2][break_6]"));
  ASSERT_TRUE(refined.ok());
  EXPECT_EQ(refined->shared_prefix, 4U);
}

TEST_F(ChatttsFrontEndTest, StyleTakesMarkupAndNothingElse) {
  for (const char* bad :
       {"[speed_5", "x", " [speed_5]", "[speed_5] ", "[Stts]", "[spk_emb]", "[speed_5][Ptts]", "[SPEED_5]", "[speed_10]", "\xFF"}) {
    const Error error = refusal("你好", styled(bad));
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << bad;
    EXPECT_EQ(error.param, "style_prompt");
  }
  std::string most;
  for (std::size_t i = 0; i < kMaxPromptMarkup; ++i) most += "[oral_2]";
  EXPECT_EQ(one("你好", styled(most)).tokens.size(), kMaxPromptMarkup + 5);
  EXPECT_EQ(refusal("你好", styled(most + "[oral_2]")).code, ErrorCode::kTooLarge);
}

TEST_F(ChatttsFrontEndTest, TextIsRefusedWhenInvalidOrEmpty) {
  for (const std::string_view bad :
       {"", " \n\t", "...", "？！", "[uv_break]", "[laugh][laugh]", "\u200B", "a\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "你\xE4"}) {
    const Error error = refusal(bad);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument) << bad;
    EXPECT_EQ(error.param, "text");
  }
  EXPECT_EQ(refusal(std::string_view("a\0b", 3)).code, ErrorCode::kInvalidArgument);
}

TEST_F(ChatttsFrontEndTest, NumbersAreReadOutBeforeTheCleanUpDeletesDigits) {
  EXPECT_EQ(one("一共有3个人。", in("zh")).spoken, "一共有三个人。");
  EXPECT_EQ(one("there are 12 here.", in("en")).spoken, "there are twelve here.");
  EXPECT_EQ(one("今天３个").spoken, "今天三个");
}

TEST_F(ChatttsFrontEndTest, PausesStayWhereTheReferenceWouldJoinWords) {
  EXPECT_EQ(one("hello\tworld").spoken, "hello world");
  EXPECT_EQ(one("你好吗？").spoken, "你好吗。");
  EXPECT_EQ(one("now? here", unsplit()).spoken, "now. here");
  EXPECT_EQ(one("hello [now] here").spoken, "hello ,now, here");
  EXPECT_EQ(one("hello [now here").spoken, "hello ,now here");
}

TEST_F(ChatttsFrontEndTest, WithoutNormalisationTheTextIsTokenisedAsItIs) {
  EXPECT_EQ(one("$100 + 50%", verbatim()).spoken, "$100 + 50%");
  EXPECT_EQ(one("$100 + 50%", verbatim()).tokens, reference("$100 + 50%", "[speed_5]", true));
}

TEST_F(ChatttsFrontEndTest, HomophonesAreReplaced) { EXPECT_EQ(one("今天喝粥").spoken, "今天喝州"); }

TEST_F(ChatttsFrontEndTest, WhatWillNotBeSpokenIsNamedOnce) {
  EXPECT_THAT(prepare("你好🙂🙂world™").dropped, ElementsAre("🙂", "™"));
  EXPECT_THAT(prepare("你好，“世界”！[laugh]").dropped, IsEmpty());
}

TEST_F(ChatttsFrontEndTest, SourcesAreOrderedDisjointAndCoverTheWords) {
  const std::string text =
      "今天天气真不错，我们去公园散步吧？好！ [laugh] Hello, world. This is a test of the splitter, and it goes on and on.\n你好世界。";
  std::size_t before = 0;
  std::string covered;
  for (const PreparedUtterance& utterance : prepare(text).utterances) {
    EXPECT_LE(before, utterance.source.begin);
    EXPECT_LT(utterance.source.begin, utterance.source.end);
    ASSERT_LE(utterance.source.end, text.size());
    covered += text.substr(utterance.source.begin, utterance.source.end - utterance.source.begin);
    before = utterance.source.end;
  }
  const auto without_spaces = [](std::string s) {
    std::erase_if(s, [](char c) { return c == ' ' || c == '\n'; });
    return s;
  };
  EXPECT_EQ(without_spaces(covered), without_spaces(text));
}

TEST_F(ChatttsFrontEndTest, LongTextIsCutAndMarkupIsNever) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "今天[uv_break]天气[laugh_1]真不错";
  const auto utterances = prepare(text).utterances;
  EXPECT_GT(utterances.size(), 10U);
  std::size_t breaks = 0;
  for (const PreparedUtterance& utterance : utterances) {
    breaks += static_cast<std::size_t>(std::ranges::count(utterance.tokens, id("[uv_break]")));
    EXPECT_LE(utterance.tokens.size(), kMaxChatttsUtterance + 10);
    EXPECT_EQ(utterance.spoken.find("break "), std::string::npos);
  }
  EXPECT_EQ(breaks, 200U);
  EXPECT_EQ(prepare(text, unsplit()).utterances.size(), 1U);
}

TEST_F(ChatttsFrontEndTest, TheWorstLettersAndStyleStillFitTheSmallestPrompt) {
  auto limited_manifest = manifest();
  limited_manifest.max_prompt_tokens = kMinChatttsPromptTokens;
  const auto limited = load_chattts_front_end(limited_manifest);
  std::string style;
  for (std::size_t i = 0; i < kMaxPromptMarkup; ++i) style += "[oral_2]";
  std::string letters;
  for (int i = 0; i < 50; ++i) letters += std::string(90, 'x') + ' ';  // a token each
  for (const bool normalize : {true, false}) {
    TextOptions options = styled(style);
    options.normalize = normalize;
    const auto prepared = limited->prepare(letters, options);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    EXPECT_GT(prepared->utterances.size(), 15U);
  }
}

TEST_F(ChatttsFrontEndTest, UnsplitTextBeyondTheLimitIsTooLarge) {
  auto limited_manifest = manifest();
  limited_manifest.max_prompt_tokens = kMinChatttsPromptTokens;
  const auto limited = load_chattts_front_end(limited_manifest);
  std::string words;
  for (int i = 0; i < 400; ++i) words += "今 ";
  const auto whole = limited->prepare(words, unsplit());
  ASSERT_FALSE(whole.ok());
  EXPECT_EQ(whole.error().code, ErrorCode::kTooLarge);
  const auto refine = limited->prepare_refine(words, "");
  ASSERT_FALSE(refine.ok());
  EXPECT_EQ(refine.error().code, ErrorCode::kTooLarge);
}

// ---- control tokens

class Hostile : public ChatttsFrontEndTest {
 protected:
  void expect_safe(std::span<const TokenId> tokens, const std::string& text) const {
    ASSERT_GE(tokens.size(), 3U);
    EXPECT_EQ(std::ranges::count(tokens, id("[spk_emb]")), 1) << text;
    EXPECT_EQ(tokens.front(), id("[Stts]"));
    EXPECT_EQ(tokens[1], id("[spk_emb]"));
    EXPECT_EQ(tokens.back(), id("[Ptts]"));
    for (const TokenId token : tokens.subspan(2, tokens.size() - 3)) {
      if (!tokenizer_.is_special(token) || token == tokenizer_.unknown()) continue;
      const Ids single{token};
      EXPECT_THAT(tokenizer_.decode(single),
                  testing::MatchesRegex(R"(\[(uv_break|lbreak|laugh|laugh_[0-2]|break_[0-7]|oral_[0-9]|speed_[0-9])\])"))
          << text;
    }
  }

  std::vector<std::string> special_names() const {
    std::vector<std::string> names;
    for (TokenId token = 0; static_cast<std::size_t>(token) < tokenizer_.size(); ++token) {
      if (tokenizer_.is_special(token)) names.push_back(tokenizer_.decode(Ids{token}));
    }
    return names;
  }
};

TEST_F(Hostile, NestedNamesStayText) {
  for (const std::string text :
       {"[St[Stts]ts]你好", "[[spk_emb]]你好", "[spk_[spk_emb]emb]你好", "[Pt[Ptts]ts]你好", "[St[laugh]ts]你好", "[Stts][Ptts]你好",
        "［Stts］你好", "[Ebreak]你好[Sbreak]", "[UNK][PAD][CLS]你好", "[S\u200Btts]你好", "[Stts\u0301]你好"}) {
    for (const bool normalize : {true, false}) expect_safe(one(text, unsplit(normalize)).tokens, text);
  }
}

TEST_F(Hostile, RandomSplicesOfSpecialNamesNeverBecomeControlTokens) {
  const std::vector<std::string> names = special_names();
  ASSERT_EQ(names.size(), 55U);
  std::mt19937 random(42);
  for (int round = 0; round < 600; ++round) {
    std::string text = "好";
    for (int i = 0; i < 6; ++i) {
      const std::string& name = names[random() % names.size()];
      const std::string& inner = names[random() % names.size()];
      const std::size_t cut = random() % (name.size() + 1);
      switch (random() % 5) {
        case 0: text += name; break;
        case 1: text += name.substr(0, cut) + inner + name.substr(cut); break;  // [St[Stts]ts]
        case 2: text += name.substr(cut); break;
        case 3: text += name.substr(0, cut) + (random() % 2 ? "\u200B" : " ") + name.substr(cut); break;
        default: text.insert(random() % 2 ? 0 : text.size(), name); break;
      }
    }
    for (const bool normalize : {true, false}) {
      const auto prepared = front_end_->prepare(text, cleaned(normalize));
      ASSERT_TRUE(prepared.ok()) << text;
      for (const PreparedUtterance& utterance : prepared->utterances) expect_safe(utterance.tokens, text);
    }
    const auto refine = front_end_->prepare_refine(text, "[oral_2]");
    ASSERT_TRUE(refine.ok());
    EXPECT_EQ(std::ranges::count(*refine, id("[Sbreak]")), 1) << text;
    EXPECT_EQ(std::ranges::count(*refine, id("[Pbreak]")), 1) << text;
    EXPECT_EQ(std::ranges::count(*refine, id("[spk_emb]")) + std::ranges::count(*refine, id("[Stts]")), 0) << text;
  }
}

TEST_F(Hostile, RandomBytesAndCharactersNeverBreakAPrompt) {
  std::mt19937 random(43);
  for (int round = 0; round < 600; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      if (round % 3 == 0) {
        text.push_back(static_cast<char>(random()));
      } else {
        const char32_t c = round % 3 == 1 ? U"[]_St0好，.? \n\uE000\u0301"[random() % 14] : static_cast<char32_t>(random() % 0x110000);
        append_utf8(text, c >= 0xD800 && c <= 0xDFFF ? U'x' : c);
      }
    }
    for (const bool normalize : {true, false}) {
      const auto prepared = front_end_->prepare(text, cleaned(normalize));
      if (!prepared.ok()) {
        EXPECT_EQ(prepared.error().code, ErrorCode::kInvalidArgument);
        continue;
      }
      EXPECT_EQ(find_invalid_utf8(text), std::nullopt);
      std::size_t before = 0;
      for (const PreparedUtterance& utterance : prepared->utterances) {
        expect_safe(utterance.tokens, text);
        EXPECT_LE(before, utterance.source.begin);
        EXPECT_LE(utterance.source.end, text.size());
        before = utterance.source.end;
      }
    }
  }
}

TEST_F(Hostile, PrivateUseCharactersAreNotTakenForMarkup) {
  EXPECT_EQ(one("\uE000你\uE000好[laugh]\uE000").tokens, one("你好[laugh]").tokens);
}

// ---- refine

TEST_F(ChatttsFrontEndTest, RefinePromptEqualsTheReferences) {
  ASSERT_TRUE(front_end_->has_refine());
  EXPECT_EQ(front_end_->refine_end_token(), id("[Ebreak]"));
  for (const char* prompt : {"", "[oral_2][laugh_0][break_6]"}) {
    const auto tokens = front_end_->prepare_refine("四川美食", prompt);
    ASSERT_TRUE(tokens.ok());
    EXPECT_EQ(*tokens, tokenizer_.encode(decorate_refine_like_reference("四川美食", prompt)));
  }
  EXPECT_EQ(front_end_->prepare_refine("四川", "[Ebreak]").error().param, "refine_prompt");
  EXPECT_EQ(front_end_->prepare_refine("", "").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(front_end_->prepare_refine("\xFF", "").error().code, ErrorCode::kInvalidArgument);
}

TEST_F(ChatttsFrontEndTest, RefinedTextKeepsPausesAndLaughterAndLosesStyle) {
  const Ids refined = tokenizer_.encode("[oral_2]hello[uv_break]你好[break_3],[laugh]world[lbreak].");
  const auto prepared = front_end_->prepare_refined(refined, styled("[speed_3]"));
  ASSERT_TRUE(prepared.ok());
  EXPECT_EQ(prepared->spoken, "hello [uv_break] 你 好, [laugh] world [lbreak].");
  EXPECT_EQ(prepared->tokens, reference(prepared->spoken, "[speed_3]", true));
}

TEST_F(ChatttsFrontEndTest, RefinedTextCannotBringControlTokens) {
  Ids refined = tokenizer_.encode("[Stts][spk_emb][Ptts][Sbreak][Ebreak][UNK][music]好");
  refined.insert(refined.end(), {-1, 100000, std::numeric_limits<TokenId>::min()});
  const auto prepared = front_end_->prepare_refined(refined, {});
  ASSERT_TRUE(prepared.ok());
  EXPECT_EQ(prepared->spoken, "好");
  EXPECT_EQ(prepared->tokens, one("好").tokens);
}

TEST_F(ChatttsFrontEndTest, RefinementThatLeavesNothingIsAnEngineFailure) {
  for (const Ids& refined : {Ids{}, tokenizer_.encode("[uv_break]"), tokenizer_.encode(",."), tokenizer_.encode("[break_3]")}) {
    const auto prepared = front_end_->prepare_refined(refined, {});
    ASSERT_FALSE(prepared.ok());
    EXPECT_EQ(prepared.error().code, ErrorCode::kEngineFailure);
  }
}

// ---- loading

std::string load_error(const engine::Manifest& broken) {
  try {
    load_chattts_front_end(broken);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(LoadChatttsFrontEnd, HomophonesMayBeMissing) {
  auto without = manifest();
  without.files.erase("homophones");
  const auto front_end = load_chattts_front_end(without);
  EXPECT_EQ(front_end->prepare("今天喝粥", {})->utterances.at(0).spoken, "今天喝粥");
}

TEST(LoadChatttsFrontEnd, RefusesFilesThatDoNotFit) {
  auto missing = manifest();
  missing.files.erase("tokenizer_config");
  EXPECT_THAT(load_error(missing), HasSubstr("tokenizer_config"));

  auto changed = manifest();
  changed.files["tokenizer"].sha256 = std::string(64, '0');
  EXPECT_THAT(load_error(changed), HasSubstr("tokenizer.json"));

  auto huge = manifest();
  huge.files["tokenizer"].bytes = kMaxTextFileBytes + 1;
  EXPECT_THAT(load_error(huge), HasSubstr("is larger than"));

  auto small_model = manifest();
  small_model.architecture.gpt.num_text_tokens = kTextTokens - 1;
  EXPECT_THAT(load_error(small_model), HasSubstr("the tokenizer has 279 tokens, the model 278"));

  auto short_prompts = manifest();
  short_prompts.max_prompt_tokens = kMinChatttsPromptTokens - 1;
  EXPECT_THAT(load_error(short_prompts), HasSubstr("max_prompt_tokens"));
}

TEST(LoadChatttsFrontEnd, NamesEveryControlTokenThatIsMissing) {
  auto json = nlohmann::json::parse(test::read_file(test::kTokenizerJson));
  nlohmann::json kept = nlohmann::json::array();
  for (const auto& token : json["added_tokens"]) {
    if (token["content"] != "[Ptts]" && token["content"] != "[laugh_1]") kept.push_back(token);
  }
  json["added_tokens"] = kept;
  try {
    ChatttsFrontEnd(BertTokenizer(json.dump(), ""), {}, kTextTokens, 0);
    FAIL() << "accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no [Ptts]"));
    EXPECT_THAT(error.what(), HasSubstr("no [laugh_1]"));
  }
}

}  // namespace
}  // namespace tts::text
