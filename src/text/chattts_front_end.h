#pragma once
// Front end of the official ChatTTS checkpoint: BERT word pieces and control tokens.

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tts/text/front_end.h"

#include "bert_tokenizer.h"
#include "chattts_normalizer.h"

namespace tts::text {

// Estimated tokens of one utterance: a Han character is one, four letters are one. The model loses its way in longer ones.
inline constexpr std::uint32_t kMaxChatttsUtterance = 60;
// Shorter sentences join a neighbour: the model is unsteady on a few words.
inline constexpr std::uint32_t kMinChatttsUtterance = 6;
// Of each file that the manifest names for this front end.
inline constexpr std::uint64_t kMaxTextFileBytes = std::uint64_t{16} << 20;
// Markup tokens in a style or refine prompt.
inline constexpr std::size_t kMaxPromptMarkup = 16;
// Room for the longest utterance (each letter a piece of its own) with its markup and control tokens.
inline constexpr std::uint32_t kMinChatttsPromptTokens = 320;

// Code prompt: [Stts], [spk_emb] or [empty_spk], style markup, text, [Ptts]. Refine prompt: [Sbreak], text, [Pbreak], markup.
//
// Control tokens are put in by id. Text is tokenised without special tokens, except that [uv_break], [lbreak], [laugh], [laugh_N],
// [break_N], [oral_N] and [speed_N], spelled exactly so, become their ids; any other bracket is a bracket.
//
// TextOptions::normalize: look-alikes are folded, numbers read out, then the checkpoint's own clean-up runs (chattts_normalizer.h), with
// question marks as full stops and unknown brackets as pauses. Otherwise the text is tokenised as it is.
class ChatttsFrontEnd final : public FrontEnd {
 public:
  // Throws std::runtime_error when control tokens are missing, the tokenizer has more tokens than `text_tokens`, or max_prompt_tokens
  // (0 = no limit) is below kMinChatttsPromptTokens.
  ChatttsFrontEnd(BertTokenizer tokenizer, Homophones homophones, std::uint32_t text_tokens, std::uint32_t max_prompt_tokens);

  // kTooLarge when the text was not to be split and is too long for one prompt.
  Result<PreparedText> prepare(std::string_view text, const TextOptions& options) const override;
  std::int32_t speaker_token() const noexcept override { return speaker_; }

  bool has_refine() const noexcept override { return true; }
  // `text` is PreparedUtterance::spoken: it is not normalised again.
  Result<std::vector<std::int32_t>> prepare_refine(std::string_view text, std::string_view prompt) const override;
  std::int32_t refine_end_token() const noexcept override { return refine_end_; }
  // `source` of the result is empty: the caller knows what it had refined. kEngineFailure when the model left nothing to say.
  Result<PreparedUtterance> prepare_refined(std::span<const std::int32_t> refined, const TextOptions& options) const override;

 private:
  struct Markup {
    SourceRange source;
    TokenId id = 0;
  };
  struct Analysis;  // a text on its way to utterances

  std::vector<Markup> find_markup(std::string_view text) const;
  Result<std::vector<TokenId>> parse_prompt(std::string_view prompt, const char* param) const;
  void encode_with_markup(std::string_view text, std::vector<TokenId>& out) const;

  Analysis analyse(std::string_view text, const TextOptions& options) const;
  std::vector<std::size_t> group(const Analysis& analysis, bool split) const;
  bool append_utterance(const Analysis& analysis, std::size_t begin, std::size_t end, PreparedUtterance& out) const;
  void append_normalised(const Analysis& analysis, std::u32string_view text, PreparedUtterance& out) const;

  void open_code_prompt(bool has_speaker, std::span<const TokenId> style, PreparedUtterance& out) const;
  bool is_speakable(std::span<const TokenId> tokens) const;
  std::optional<Error> too_long(std::size_t tokens) const;
  bool is_code_prompt(std::span<const TokenId> tokens) const;

  BertTokenizer tokenizer_;
  Homophones homophones_;
  std::uint32_t max_prompt_tokens_;
  TokenId start_, end_, speaker_, no_speaker_, refine_start_, refine_prompt_, refine_end_, first_break_;
  std::unordered_map<std::string_view, TokenId> markup_;  // by spelling; the views are of string constants
  std::vector<bool> is_markup_;                           // by id
};

// Roles: tokenizer, tokenizer_config, homophones (may be missing). Throws std::runtime_error.
std::unique_ptr<FrontEnd> load_chattts_front_end(const engine::Manifest& manifest);

}  // namespace tts::text
