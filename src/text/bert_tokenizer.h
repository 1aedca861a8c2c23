#pragma once
// BERT WordPiece as Hugging Face's `tokenizers` computes it from a tokenizer.json (Devlin et al. 2018, appendix of the released code).

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tts::text {

using TokenId = std::int32_t;

// Immutable after construction, so every call is thread-safe. Encoding is linear in the length of the text.
class BertTokenizer {
 public:
  static constexpr std::size_t kMaxVocabulary = std::size_t{1} << 20;
  static constexpr std::size_t kMaxTokenBytes = 1024;
  static constexpr std::size_t kMaxWordLengthLimit = 1000;  // what max_input_chars_per_word may be

  // Contents of tokenizer.json and tokenizer_config.json (empty = none); the latter's normaliser flags win, as they do in transformers.
  // Throws std::runtime_error listing everything that is wrong or that this implementation cannot reproduce exactly.
  BertTokenizer(std::string_view tokenizer_json, std::string_view tokenizer_config_json);

  BertTokenizer(BertTokenizer&&) = default;  // no copies: views into a map's keys are held

  // Special tokens that stand in the text become their ids. Only for text that we wrote; what a user wrote goes to encode_ordinary.
  // Precondition of both: valid UTF-8.
  std::vector<TokenId> encode(std::string_view text) const;

  // Appends ids; no id of a special token except [UNK] ever comes out, whatever the text is.
  void encode_ordinary(std::string_view text, std::vector<TokenId>& out) const;

  // Tokens joined with spaces, pieces glued, no space before . ? ! and , (and the English contractions where the config says so).
  // Special tokens appear by name; ids outside the vocabulary leave nothing.
  std::string decode(std::span<const TokenId> ids) const;

  std::optional<TokenId> special(std::string_view name) const;
  bool is_special(TokenId id) const noexcept { return known(id) && special_[static_cast<std::size_t>(id)]; }
  // Holds a letter or a digit, so that there is something to say. False for special tokens.
  bool is_speakable(TokenId id) const noexcept { return known(id) && speakable_[static_cast<std::size_t>(id)]; }
  TokenId unknown() const noexcept { return unknown_; }
  std::size_t size() const noexcept { return tokens_.size(); }  // one past the largest id

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  using Pieces = std::unordered_map<std::string, TokenId, Hash, std::equal_to<>>;

  struct Reader;  // fills the members from JSON

  bool known(TokenId id) const noexcept { return id >= 0 && static_cast<std::size_t>(id) < tokens_.size(); }
  std::u32string normalise(std::string_view text) const;
  void encode_word(std::u32string_view word, std::vector<TokenId>& out) const;

  bool clean_text_ = true, chinese_ = true, strip_accents_ = true, lowercase_ = true;
  bool decoder_cleanup_ = true, config_cleanup_ = false;
  std::size_t max_word_length_ = 100;
  TokenId unknown_ = 0;
  std::string prefix_ = "##";
  Pieces first_, next_;              // pieces that begin a word, and those that continue it (without their prefix)
  std::size_t longest_piece_ = 0;    // bytes
  std::vector<std::string> tokens_;  // by id
  std::vector<bool> special_, speakable_;
  Pieces special_ids_;
  std::array<std::vector<std::string_view>, 256> special_by_first_byte_;  // longest first; views into special_ids_
};

}  // namespace tts::text
