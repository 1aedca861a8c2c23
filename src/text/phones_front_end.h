#pragma once
// Front end of voices that were trained on pinyin and ARPAbet symbols.

#include "tts/text/front_end.h"

#include "english.h"
#include "pinyin.h"
#include "spoken_text.h"
#include "symbol_table.h"
#include "zh_lexicon.h"

namespace tts::text {

// Symbols of one utterance, its closing mark and the separators included; control tokens not. The voice speaks longer ones less well.
inline constexpr std::uint32_t kMaxUtteranceSymbols = 120;
// Shorter sentences join a neighbour: the voice is unsteady on single syllables.
inline constexpr std::uint32_t kMinUtteranceSymbols = 12;
// The longest word or number that is never cut fits in a prompt of this size.
inline constexpr std::uint32_t kMinPromptTokens = 256;

// Prompt: [Stts], [spk_emb] or [empty_spk], the symbols, [Ptts]. Symbols are looked up one by one from tables, never parsed from the text.
class PhonesFrontEnd final : public FrontEnd {
 public:
  // Throws std::runtime_error when the files do not fit together or max_prompt_tokens (0 = no limit) is below kMinPromptTokens.
  PhonesFrontEnd(SymbolTable symbols, std::vector<std::byte> zh_lexicon, std::uint32_t max_prompt_tokens);

  // kTooLarge when the text was not to be split and is too long for one prompt.
  Result<PreparedText> prepare(std::string_view text, const TextOptions& options) const override;
  std::int32_t speaker_token() const noexcept override { return speaker_; }

  bool has_refine() const noexcept override { return false; }
  Result<std::vector<std::int32_t>> prepare_refine(std::string_view text, std::string_view prompt) const override;
  std::int32_t refine_end_token() const noexcept override { return -1; }
  Result<PreparedUtterance> prepare_refined(std::span<const std::int32_t> refined, const TextOptions& options) const override;

 private:
  struct Piece;     // a word or a mark with its symbols
  struct Sentence;  // what becomes one utterance
  struct Analysis;

  Analysis analyse(std::string_view text, const TextOptions& options) const;
  void read_han(Analysis& analysis, std::size_t begin, std::size_t end) const;
  void read_latin(Analysis& analysis, std::size_t begin, std::size_t end) const;
  std::vector<Sentence> group(const Analysis& analysis, bool split) const;
  SymbolId closing_mark(const Analysis& analysis, const Sentence& sentence) const;
  PreparedUtterance assemble(const Analysis& analysis, const Sentence& sentence, bool has_speaker) const;

  struct Final {
    SymbolId tones[5];
  };

  SymbolTable symbols_;
  ZhLexicon lexicon_;
  std::uint32_t max_prompt_tokens_;
  SymbolId start_, speaker_, no_speaker_, end_, separator_, full_stop_, question_, exclamation_;
  std::vector<SymbolId> initials_;  // by Syllable::initial - 1
  std::vector<Final> finals_;       // by Syllable::final
};

// Throws std::runtime_error.
std::unique_ptr<FrontEnd> load_phones_front_end(const engine::Manifest& manifest);

}  // namespace tts::text
