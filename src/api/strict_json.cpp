#include "strict_json.h"

#include <algorithm>
#include <set>
#include <vector>

#include "tts/base/utf8.h"

namespace tts::api {
namespace {

using nlohmann::json;

Error invalid(std::string message) {
  return {.code = ErrorCode::kInvalidArgument, .message = std::move(message), .param = {}, .retry_after = {}};
}

std::string position_text(std::string_view body, std::size_t offset) {
  offset = std::min(offset, body.size());
  const auto before = body.substr(0, offset);
  const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const auto last_break = before.rfind('\n');
  const auto column = last_break == std::string_view::npos ? offset + 1 : offset - last_break;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Walks the text without building anything, so the limits hold before memory is spent.
class LimitChecker final : public nlohmann::json_sax<json> {
 public:
  LimitChecker(std::string_view body, const JsonLimits& limits, std::string_view noun) : body_(body), limits_(limits), noun_(noun) {}

  bool null() override { return element(); }
  bool boolean(bool) override { return element(); }
  bool number_integer(number_integer_t) override { return element(); }
  bool number_unsigned(number_unsigned_t) override { return element(); }
  bool number_float(number_float_t, const string_t&) override { return element(); }
  bool string(string_t& value) override { return element() && no_nul(value); }
  bool binary(binary_t&) override { return fail("binary values are not JSON"); }

  bool start_object(std::size_t) override {
    if (scopes_.empty()) top_is_object_ = true;
    return element() && open(true);
  }
  bool start_array(std::size_t) override { return element() && open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (!no_nul(name)) return false;
    if (++keys_ > limits_.max_keys) return fail("the JSON has more than " + std::to_string(limits_.max_keys) + " keys");
    if (!scopes_.back().keys.insert(name).second) return fail("the key " + in_quotes(name) + " appears twice");
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const json::exception& cause) override {
    // 406: a number that no double can hold.
    const bool overflow = cause.id == 406;
    const auto offset = position == 0 ? 0 : position - 1;
    return fail((overflow ? "a number is out of range at " : "the " + std::string(noun_) + " is not valid JSON at ") +
                position_text(body_, overflow ? number_offset(token) : offset));
  }

  const std::string& problem() const { return problem_; }
  bool top_is_object() const { return top_is_object_; }

 private:
  struct Scope {
    bool object;
    std::set<std::string> keys;
  };

  bool fail(std::string message) {
    problem_ = std::move(message);
    return false;
  }
  bool no_nul(const std::string& text) {
    return text.find('\0') == std::string::npos || fail("strings may not contain the character U+0000");
  }
  bool element() {
    if (scopes_.empty() || scopes_.back().object) return true;
    return ++elements_ <= limits_.max_elements ||
           fail("the JSON has more than " + std::to_string(limits_.max_elements) + " array elements");
  }
  bool open(bool object) {
    if (scopes_.size() == limits_.max_depth) return fail("the JSON is nested deeper than " + std::to_string(limits_.max_depth) + " levels");
    scopes_.push_back({object, {}});
    return true;
  }
  bool close() {
    scopes_.pop_back();
    return true;
  }
  // The library gives the offset of overflows as that of the token's end in some versions and as 0 in others.
  std::size_t number_offset(const std::string& token) const {
    const auto found = body_.find(token);
    return found == std::string_view::npos ? 0 : found;
  }

  std::string_view body_;
  const JsonLimits& limits_;
  std::string_view noun_;
  std::vector<Scope> scopes_;
  std::size_t keys_ = 0, elements_ = 0;
  bool top_is_object_ = false;
  std::string problem_;
};

}  // namespace

std::string in_quotes(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  std::size_t cut = std::min(name.size(), kLongest);
  while (cut > 0 && cut < name.size() && (static_cast<unsigned char>(name[cut]) & 0xC0U) == 0x80U) --cut;  // never inside a character
  std::string text;
  text.push_back('\'');
  text.append(name.substr(0, cut));
  if (cut < name.size()) text.append("…");
  text.push_back('\'');
  return text;
}

Result<json> parse_strict_json_object(std::string_view text, const JsonLimits& limits, std::string_view noun) {
  const std::string subject = "the " + std::string(noun);
  if (text.empty()) return invalid(subject + " is empty; send a JSON object");
  if (const auto bad = find_invalid_utf8(text)) return invalid(subject + " is not valid UTF-8 at byte " + std::to_string(*bad));
  LimitChecker checker(text, limits, noun);
  if (!json::sax_parse(text, &checker)) return invalid(checker.problem());
  if (!checker.top_is_object()) return invalid(subject + " must be a JSON object");
  return json::parse(text);
}

}  // namespace tts::api
