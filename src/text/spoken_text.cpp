#include "spoken_text.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace tts::text {
namespace {

constexpr std::size_t kDigitByDigitFrom = 7;  // phone numbers and the like
constexpr std::size_t kMaxNumberDigits = 15;  // of a number that is spoken as one unbreakable piece
constexpr std::u32string_view kMeasures = U"个份只张本件条天位名周岁小分秒块元人种倍台部家杯瓶辆套千公米斤吨年次间把座颗对双万亿点";

struct Number {
  std::size_t begin = 0, end = 0;         // with sign and percent sign
  char32_t sign = 0;                      // '-', '+' or none
  std::u32string integer;                 // separators removed
  bool grouped = false;                   // 1,234
  std::vector<std::u32string> fractions;  // 3.14 has one, 1.3.2 two
  bool percent = false;
};

class Speller {
 public:
  Speller(std::span<const Unit> units, std::span<const Break> breaks, const SpokenOptions& options)
      : units_(units), breaks_(breaks), options_(options) {
    out_.reserve(units.size());
  }

  std::vector<SpokenChar> run() {
    const Language text_language = dominant(0, units_.size()).value_or(Language::kChinese);
    for (std::size_t begin = 0; begin < units_.size();) {
      std::size_t end = begin + 1;
      while (end < units_.size() && breaks_[end - 1] != Break::kSentence) ++end;
      sentence_language_ = dominant(begin, end).value_or(text_language);
      while (begin < end) begin = spell(begin);
    }
    return std::move(out_);
  }

 private:
  char32_t at(std::size_t index) const { return index < units_.size() ? units_[index].c : 0; }
  char32_t before(std::size_t index) const { return index > 0 ? units_[index - 1].c : 0; }

  std::optional<Language> dominant(std::size_t begin, std::size_t end) const {
    std::size_t han = 0, words = 0;
    for (std::size_t i = begin; i < end; ++i) {
      han += is_han(at(i));
      words += is_latin(at(i)) && !is_latin(before(i));
    }
    if (han == 0 && words == 0) return std::nullopt;
    return han >= words ? Language::kChinese : Language::kEnglish;
  }

  // Language of the number [begin, end): Han characters beside it decide.
  Language language_of(std::size_t begin, std::size_t end) const {
    if (options_.language) return *options_.language;
    while (begin > 0 && at(begin - 1) == U' ') --begin;
    while (at(end) == U' ') ++end;
    return is_han(before(begin)) || is_han(at(end)) ? Language::kChinese : sentence_language_;
  }

  // Speaks what starts at `i`; returns where the next thing starts.
  std::size_t spell(std::size_t i) {
    const char32_t c = at(i);
    if (options_.numbers && starts_number(i)) return spell_number(i);
    if (is_line_end(c)) {
      put(line_end_mark(), i);
    } else if (is_inner_dot(units_, i) || ((c == U',' || c == U':') && is_digit(before(i)) && is_digit(at(i + 1)))) {
      put(U' ', i);
    } else {
      put(c, i);
    }
    if (!is_space(c)) last_visible_ = c;
    return i + 1;
  }

  // A line end is a pause even where no mark was written.
  char32_t line_end_mark() const {
    constexpr std::u32string_view kMarks = U"，。、；：！？,.;:!?…—";
    if (last_visible_ == 0 || kMarks.find(last_visible_) != std::u32string_view::npos) return U' ';
    return is_han(last_visible_) ? U'。' : U'.';
  }

  bool starts_number(std::size_t i) const {
    if (is_digit(at(i))) return true;
    const char32_t previous = before(i);
    const bool sign = (at(i) == U'-' || at(i) == U'+') && is_digit(at(i + 1));
    return sign && !is_latin(previous) && !is_digit(previous) && previous != U'-' && previous != U'+' && previous != U')';
  }

  std::u32string take_digits(std::size_t& i) const {
    std::u32string digits;
    for (; is_digit(at(i)); ++i) digits.push_back(at(i));
    return digits;
  }

  Number parse(std::size_t i) const {
    Number number;
    number.begin = i;
    if (!is_digit(at(i))) number.sign = at(i++);
    number.integer = take_digits(i);
    if (number.integer.size() <= 3 && number.integer.front() != U'0') {
      const auto group_follows = [&] {
        return at(i) == U',' && is_digit(at(i + 1)) && is_digit(at(i + 2)) && is_digit(at(i + 3)) && !is_digit(at(i + 4));
      };
      while (group_follows()) {
        number.grouped = true;
        number.integer += {at(i + 1), at(i + 2), at(i + 3)};
        i += 4;
      }
    }
    while (at(i) == U'.' && is_digit(at(i + 1))) {
      ++i;
      number.fractions.push_back(take_digits(i));
    }
    number.percent = at(i) == U'%';
    number.end = i + number.percent;
    return number;
  }

  std::size_t spell_number(std::size_t begin) {
    const Number number = parse(begin);
    last_visible_ = U'0';
    std::size_t digits = number.integer.size();
    for (const auto& fraction : number.fractions) digits += fraction.size();
    const Language language = language_of(begin, number.end);
    if (digits > kMaxNumberDigits) return spell_long_number(number, language);
    std::u32string words = in_words(number, language);
    const SourceRange source{units_[begin].source.begin, units_[number.end - 1].source.end};
    if (language == Language::kEnglish) separate(source);
    for (const char32_t c : words) out_.push_back({c, source, Break::kNone, false});
    if (language == Language::kEnglish && is_latin(at(number.end))) out_.push_back({U' ', source, Break::kNone, false});
    out_.back().after = breaks_[number.end - 1];
    return number.end;
  }

  // Digit by digit, each with its own source, so that it can be cut anywhere.
  std::size_t spell_long_number(const Number& number, Language language) {
    const std::size_t end = number.end - number.percent;
    for (std::size_t i = number.begin; i < end; ++i) {
      const SourceRange source = units_[i].source;
      const std::u32string_view word = is_digit(at(i))                  ? read_digit(at(i), language)
                                       : at(i) != U'.'                  ? U" "
                                       : language == Language::kChinese ? U"点"
                                                                        : U"point";
      if (language == Language::kEnglish) separate(source);
      for (const char32_t c : word) out_.push_back({c, source, Break::kNone, false});
      out_.back().after = i + 1 < end ? Break::kWord : breaks_[i];
    }
    if (language == Language::kEnglish && is_latin(at(end))) out_.push_back({U' ', units_[end - 1].source, out_.back().after, false});
    return end;
  }

  std::u32string in_words(const Number& number, Language language) const {
    const bool chinese = language == Language::kChinese;
    const std::u32string_view gap = chinese ? U"" : U" ";
    std::u32string out;
    if (chinese && number.percent) out += U"百分之";
    if (number.sign == U'-') out += chinese ? U"负" : U"minus ";
    if (number.sign == U'+') out += chinese ? U"加" : U"plus ";
    out += integer_in_words(number, language);
    for (const auto& fraction : number.fractions) {
      out += gap;
      out += chinese ? U"点" : U"point";
      out += gap;
      const bool version = number.fractions.size() > 1 && fraction.size() < kDigitByDigitFrom && fraction.front() != U'0';
      out += version ? read_cardinal(fraction, language) : read_digits(fraction, language);
    }
    if (!chinese && number.percent) out += U" percent";
    return out;
  }

  std::u32string integer_in_words(const Number& number, Language language) const {
    const std::u32string& digits = number.integer;
    const char32_t next = at(number.end);
    const bool whole = number.fractions.empty() && !number.percent;
    const bool year = language == Language::kChinese && whole && digits.size() == 4 && digits.front() <= U'2' && next == U'年';
    const bool code = !number.grouped && digits.size() >= kDigitByDigitFrom;
    if (year || code || (digits.size() > 1 && digits.front() == U'0')) return read_digits(digits, language);
    const bool counts_two = language == Language::kChinese && whole && digits == U"2" &&
                            kMeasures.find(next) != std::u32string_view::npos && at(number.end + 1) != U'级';  // 二年级
    if (counts_two) return U"两";
    return read_cardinal(digits, language);
  }

  void put(char32_t c, std::size_t i) { out_.push_back({c, units_[i].source, breaks_[i], is_space(units_[i].c)}); }

  // English number words must not run into a word before them.
  void separate(const SourceRange& source) {
    if (!out_.empty() && is_latin(out_.back().c)) out_.push_back({U' ', source, Break::kNone, false});
  }

  std::span<const Unit> units_;
  std::span<const Break> breaks_;
  const SpokenOptions& options_;
  Language sentence_language_ = Language::kChinese;
  char32_t last_visible_ = 0;
  std::vector<SpokenChar> out_;
};

}  // namespace

std::vector<SpokenChar> spell_out(std::span<const Unit> units, std::span<const Break> breaks, const SpokenOptions& options) {
  assert(units.size() == breaks.size());
  return Speller(units, breaks, options).run();
}

}  // namespace tts::text
