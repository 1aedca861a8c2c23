#pragma once
// A text front end without a language: sentences end at . ! ? or a line end, every byte is a token.

#include <cctype>
#include <string>

#include "tts/base/utf8.h"
#include "tts/text/front_end.h"

namespace tts::test {

class FakeFrontEnd final : public text::FrontEnd {
 public:
  static constexpr std::int32_t kSpeakerToken = 300;
  static constexpr std::int32_t kRefineEndToken = 301;
  static constexpr std::int32_t kRefineStartToken = 302;

  explicit FakeFrontEnd(bool has_refine = false) : has_refine_(has_refine) {}

  static std::vector<std::int32_t> tokens_of(std::string_view sentence, bool has_speaker) {
    std::vector<std::int32_t> tokens;
    if (has_speaker) tokens.push_back(kSpeakerToken);
    for (const char c : sentence) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }

  Result<text::PreparedText> prepare(std::string_view input, const text::TextOptions& options) const override {
    if (find_invalid_utf8(input)) return Error{ErrorCode::kInvalidArgument, "the text is not valid UTF-8", "text", {}};
    text::PreparedText prepared;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      const bool end = i + 1 == input.size() || (options.split && std::string_view(".!?\n").find(input[i]) != std::string_view::npos);
      if (!end) continue;
      while (begin <= i && std::isspace(static_cast<unsigned char>(input[begin]))) ++begin;
      const auto sentence = input.substr(begin, i + 1 - begin);
      if (speakable(sentence))
        prepared.utterances.push_back({tokens_of(sentence, options.has_speaker), {begin, i + 1}, std::string(sentence)});
      begin = i + 1;
    }
    if (input.find('#') != std::string_view::npos) prepared.dropped.emplace_back("#");
    if (prepared.utterances.empty()) return Error{ErrorCode::kInvalidArgument, "there is nothing to say in this text", "text", {}};
    return prepared;
  }

  std::int32_t speaker_token() const noexcept override { return kSpeakerToken; }
  bool has_refine() const noexcept override { return has_refine_; }
  std::int32_t refine_end_token() const noexcept override { return kRefineEndToken; }

  Result<std::vector<std::int32_t>> prepare_refine(std::string_view input, std::string_view prompt) const override {
    if (!has_refine_) return Error{ErrorCode::kUnsupported, "this model has no refine pass", "refine", {}};
    auto tokens = tokens_of(std::string(input) + std::string(prompt), false);
    tokens.insert(tokens.begin(), kRefineStartToken);
    return tokens;
  }

  Result<text::PreparedUtterance> prepare_refined(std::span<const std::int32_t> refined, const text::TextOptions& options) const override {
    if (!has_refine_) return Error{ErrorCode::kUnsupported, "this model has no refine pass", "refine", {}};
    text::PreparedUtterance utterance;
    utterance.tokens.assign(refined.begin(), refined.end());
    if (options.has_speaker) utterance.tokens.insert(utterance.tokens.begin(), kSpeakerToken);
    return utterance;
  }

 private:
  static bool speakable(std::string_view sentence) {
    for (const char c : sentence) {
      if (std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 0x80) return true;
    }
    return false;
  }

  bool has_refine_;
};

}  // namespace tts::test
