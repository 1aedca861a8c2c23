#include "bert_tokenizer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "tts/base/utf8.h"

#include "chattts_unicode.h"

namespace tts::text {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kContinues = "##";  // prefix of pieces inside a word

constexpr std::pair<char32_t, char32_t> kHanRanges[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                                        {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};

bool is_han_of_bert(char32_t c) noexcept {
  return std::ranges::any_of(kHanRanges, [c](const auto& range) { return c >= range.first && c <= range.second; });
}

// Categories Cc, Cf and Co; unassigned code points stay, as in the reference's tables.
bool is_dropped(char32_t c) noexcept {
  if (c == 0 || c == 0xFFFD) return true;
  if (c == U'\t' || c == U'\n' || c == U'\r') return false;
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CO;
}

bool is_bert_punctuation(char32_t c) noexcept {
  if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

// Canonical decomposition (UAX 15). Runs of marks are sorted as a whole, because text may hold arbitrarily long ones.
std::u32string decompose(std::u32string_view text) {
  constexpr int kMaxExpansion = 32;
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    utf8proc_int32_t parts[kMaxExpansion];
    int last_class = UTF8PROC_BOUNDCLASS_START;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, kMaxExpansion, UTF8PROC_DECOMPOSE, &last_class);
    if (count < 0 || count > kMaxExpansion) {
      out.push_back(c);
    } else {
      out.insert(out.end(), parts, parts + count);
    }
  }
  const auto order = [](char32_t c) { return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class; };
  for (auto at = out.begin(); at != out.end();) {
    const auto begin = std::find_if(at, out.end(), [&](char32_t c) { return order(c) != 0; });
    at = std::find_if(begin, out.end(), [&](char32_t c) { return order(c) == 0; });
    std::stable_sort(begin, at, [&](char32_t a, char32_t b) { return order(a) < order(b); });
  }
  return out;
}

void append_lower(char32_t c, std::u32string& out) {
  constexpr char32_t kCapitalIWithDot = 0x130;  // the only letter whose small form is two characters
  if (c == kCapitalIWithDot) {
    out.append({U'i', 0x307});
  } else {
    out.push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t hit; (hit = text.find(from, at)) != std::string::npos; at = hit + from.size()) {
    out.append(text, at, hit - at);
    out.append(to);
  }
  text = std::move(out.append(text, at));
}

void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kContractions[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kContractions) replace_all(text, from, to);
}

// Access to JSON that collects problems instead of throwing at the first one.
class Checked {
 public:
  Checked(const char* file, std::string_view text, std::vector<std::string>& problems) : file_(file), problems_(problems) {
    json_ = Json::parse(text, nullptr, false);
    if (!json_.is_object()) problem("is not a JSON object");
  }

  void problem(const std::string& what) const { problems_.push_back(std::string(file_) + ": " + what); }

  // The value at the path, null where there is none.
  const Json& at(std::initializer_list<const char*> path) const {
    static const Json kNone;
    const Json* here = &json_;
    for (const char* key : path) {
      if (!here->is_object()) return kNone;
      const auto found = here->find(key);
      if (found == here->end()) return kNone;
      here = &*found;
    }
    return *here;
  }

  void must_be(std::initializer_list<const char*> path, const Json& wanted) const {
    if (at(path) != wanted) problem(name(path) + " must be " + wanted.dump());
  }

  // Leaves `value` alone where the key is missing or null.
  void flag(std::initializer_list<const char*> path, bool& value) const {
    const Json& found = at(path);
    if (found.is_boolean()) {
      value = found.get<bool>();
    } else if (!found.is_null()) {
      problem(name(path) + " must be true or false");
    }
  }

 private:
  static std::string name(std::initializer_list<const char*> path) {
    std::string out;
    for (const char* key : path) out.append(out.empty() ? "" : ".").append(key);
    return out;
  }

  const char* file_;
  std::vector<std::string>& problems_;
  Json json_;
};

}  // namespace

struct BertTokenizer::Reader {
  explicit Reader(BertTokenizer& tokenizer) : self(tokenizer) {}

  void read(std::string_view tokenizer_json, std::string_view config_json) {
    const Checked tokenizer("tokenizer.json", tokenizer_json, problems);
    if (problems.empty()) {
      read_rules(tokenizer);
      read_vocabulary(tokenizer);
      read_specials(tokenizer);
      read_unknown(tokenizer);
    }
    if (!config_json.empty()) read_config(Checked("tokenizer_config.json", config_json, problems));
    if (problems.empty()) return;
    std::string message = "cannot use the tokenizer:";
    for (const auto& problem : problems) message += "\n  " + problem;
    throw std::runtime_error(message);
  }

  void read_rules(const Checked& json) {
    json.must_be({"model", "type"}, "WordPiece");
    json.must_be({"model", "continuing_subword_prefix"}, kContinues);
    json.must_be({"normalizer", "type"}, "BertNormalizer");
    json.must_be({"pre_tokenizer", "type"}, "BertPreTokenizer");
    json.must_be({"decoder", "type"}, "WordPiece");
    json.must_be({"decoder", "prefix"}, kContinues);
    json.flag({"normalizer", "clean_text"}, self.clean_text_);
    json.flag({"normalizer", "handle_chinese_chars"}, self.chinese_);
    json.flag({"normalizer", "lowercase"}, self.lowercase_);
    self.strip_accents_ = self.lowercase_;
    json.flag({"normalizer", "strip_accents"}, self.strip_accents_);
    strip_accents_given_ = !json.at({"normalizer", "strip_accents"}).is_null();
    json.flag({"decoder", "cleanup"}, self.decoder_cleanup_);
    const Json& length = json.at({"model", "max_input_chars_per_word"});
    if (length.is_number_unsigned() && length.get<std::uint64_t>() >= 1 && length.get<std::uint64_t>() <= kMaxWordLengthLimit) {
      self.max_word_length_ = length.get<std::size_t>();
    } else if (!length.is_null()) {
      json.problem("model.max_input_chars_per_word must be 1 to " + std::to_string(kMaxWordLengthLimit));
    }
  }

  // transformers sets these three from the config where it names them; strip_accents null means "as lowercase".
  void read_config(const Checked& json) {
    const bool lowercase_before = self.lowercase_;
    json.flag({"do_lower_case"}, self.lowercase_);
    json.flag({"tokenize_chinese_chars"}, self.chinese_);
    json.flag({"clean_up_tokenization_spaces"}, self.config_cleanup_);
    if (!strip_accents_given_ && self.lowercase_ != lowercase_before) self.strip_accents_ = self.lowercase_;
    json.flag({"strip_accents"}, self.strip_accents_);
  }

  void read_vocabulary(const Checked& json) {
    const Json& vocabulary = json.at({"model", "vocab"});
    if (!vocabulary.is_object() || vocabulary.empty()) return json.problem("model.vocab must be an object with at least one token");
    for (const auto& [token, id] : vocabulary.items()) {
      if (problems.size() > kMostProblems) return;
      put(json, token, id);
    }
  }

  void put(const Checked& json, const std::string& token, const Json& id) {
    if (token.empty() || token.size() > kMaxTokenBytes) return json.problem("a token of " + std::to_string(token.size()) + " bytes");
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= kMaxVocabulary) return json.problem("no valid id for token " + token);
    const auto index = id.get<std::size_t>();
    if (index >= self.tokens_.size()) {
      self.tokens_.resize(index + 1);
      self.special_.resize(index + 1);
    }
    auto& place = self.tokens_[index];
    if (!place.empty() && place != token) return json.problem("id " + std::to_string(index) + " belongs to " + place + " and to " + token);
    place = token;
  }

  void read_specials(const Checked& json) {
    const Json& added = json.at({"added_tokens"});
    if (!added.is_array()) return json.problem("added_tokens must be an array");
    for (const Json& entry : added) {
      if (problems.size() > kMostProblems) return;
      if (!entry.is_object() || !entry.contains("content") || !entry["content"].is_string() || !entry.contains("id")) {
        json.problem("an entry of added_tokens without content or id");
        continue;
      }
      const auto token = entry["content"].get<std::string>();
      for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
        if (entry.value(flag, Json(false)) != Json(false)) json.problem("added token " + token + ": " + flag + " is not supported");
      }
      const std::size_t before = problems.size();
      put(json, token, entry["id"]);
      if (problems.size() != before) continue;
      const auto id = entry["id"].get<TokenId>();
      self.special_[static_cast<std::size_t>(id)] = true;
      self.special_ids_.emplace(token, id);
    }
  }

  void read_unknown(const Checked& json) {
    const Json& name = json.at({"model", "unk_token"});
    const auto at = name.is_string() ? std::ranges::find(self.tokens_, name.get<std::string>()) : self.tokens_.end();
    if (at == self.tokens_.end()) return json.problem("model.unk_token must name a token of the vocabulary");
    self.unknown_ = static_cast<TokenId>(at - self.tokens_.begin());
  }

 private:
  static constexpr std::size_t kMostProblems = 20;

  BertTokenizer& self;
  std::vector<std::string> problems;
  bool strip_accents_given_ = false;
};

BertTokenizer::BertTokenizer(std::string_view tokenizer_json, std::string_view tokenizer_config_json) {
  Reader(*this).read(tokenizer_json, tokenizer_config_json);
  speakable_.resize(tokens_.size());
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    const std::string& token = tokens_[id];
    // Special tokens are no pieces: ordinary text must not reach their ids by spelling them.
    if (token.empty() || special_[id] || static_cast<TokenId>(id) == unknown_) continue;
    const bool continues = token.starts_with(kContinues) && token.size() > kContinues.size();
    const std::string piece = continues ? token.substr(kContinues.size()) : token;
    longest_piece_ = std::max(longest_piece_, piece.size());
    speakable_[id] = std::ranges::any_of(decode_utf8(piece), is_letter_or_number);
    (continues ? next_ : first_).emplace(piece, static_cast<TokenId>(id));
  }
  for (const auto& [token, id] : special_ids_) special_by_first_byte_[static_cast<unsigned char>(token[0])].push_back(token);
  for (auto& bucket : special_by_first_byte_) std::ranges::sort(bucket, std::ranges::greater{}, &std::string_view::size);
}

std::vector<TokenId> BertTokenizer::encode(std::string_view text) const {
  std::vector<TokenId> out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto& bucket = special_by_first_byte_[static_cast<unsigned char>(text[at])];
    const auto hit = std::ranges::find_if(bucket, [&](std::string_view token) { return text.substr(at).starts_with(token); });
    if (hit == bucket.end()) {
      ++at;
      continue;
    }
    encode_ordinary(text.substr(begin, at - begin), out);
    out.push_back(special_ids_.find(*hit)->second);
    at += hit->size();
    begin = at;
  }
  encode_ordinary(text.substr(begin), out);
  return out;
}

void BertTokenizer::encode_ordinary(std::string_view text, std::vector<TokenId>& out) const {
  const std::u32string normal = normalise(text);
  std::size_t begin = 0;
  const auto end_word = [&](std::size_t end) {
    if (end > begin) encode_word(std::u32string_view(normal).substr(begin, end - begin), out);
  };
  for (std::size_t at = 0; at < normal.size(); ++at) {
    const bool space = is_white_space(normal[at]);
    if (!space && !is_bert_punctuation(normal[at])) continue;
    end_word(at);
    begin = at;
    if (!space) end_word(at + 1);
    begin = at + 1;
  }
  end_word(normal.size());
}

std::u32string BertTokenizer::normalise(std::string_view text) const {
  std::u32string now = decode_utf8(text);
  std::u32string next;
  const auto step = [&](auto&& append) {
    next.clear();
    next.reserve(now.size());
    for (const char32_t c : now) append(c);
    now.swap(next);
  };
  if (clean_text_) {
    step([&](char32_t c) {
      if (!is_dropped(c)) next.push_back(is_white_space(c) ? U' ' : c);
    });
  }
  if (chinese_) {
    step([&](char32_t c) {
      if (is_han_of_bert(c)) {
        next.append({U' ', c, U' '});
      } else {
        next.push_back(c);
      }
    });
  }
  if (strip_accents_) {
    now = decompose(now);
    step([&](char32_t c) {
      if (category(c) != UTF8PROC_CATEGORY_MN) next.push_back(c);
    });
  }
  if (lowercase_) step([&](char32_t c) { append_lower(c, next); });
  return now;
}

void BertTokenizer::encode_word(std::u32string_view word, std::vector<TokenId>& out) const {
  if (word.size() > max_word_length_) return out.push_back(unknown_);
  const std::string bytes = encode_utf8(word);
  const std::size_t before = out.size();
  for (std::size_t at = 0; at < bytes.size();) {
    const Pieces& pieces = at == 0 ? first_ : next_;
    std::size_t length = std::min(bytes.size() - at, longest_piece_);
    auto found = pieces.end();
    for (; length > 0 && found == pieces.end(); --length) found = pieces.find(std::string_view(bytes).substr(at, length));
    if (found == pieces.end()) {
      out.resize(before);
      return out.push_back(unknown_);
    }
    out.push_back(found->second);
    at += found->first.size();
  }
}

std::string BertTokenizer::decode(std::span<const TokenId> ids) const {
  std::string out;
  bool first = true;
  for (const TokenId id : ids) {
    if (!known(id) || tokens_[static_cast<std::size_t>(id)].empty()) continue;
    const std::string& token = tokens_[static_cast<std::size_t>(id)];
    std::string piece = first ? token : token.starts_with(kContinues) ? token.substr(kContinues.size()) : " " + token;
    if (decoder_cleanup_) clean_up(piece);
    out += piece;
    first = false;
  }
  if (config_cleanup_) clean_up(out);
  return out;
}

std::optional<TokenId> BertTokenizer::special(std::string_view name) const {
  const auto found = special_ids_.find(name);
  if (found == special_ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace tts::text
