#include "number_reading.h"

#include <array>
#include <cassert>
#include <cstdint>

namespace tts::text {
namespace {

constexpr std::array<std::u32string_view, 10> kChineseDigits{U"零", U"一", U"二", U"三", U"四", U"五", U"六", U"七", U"八", U"九"};

constexpr std::array<std::u32string_view, 20> kEnglishSmall{
    U"zero", U"one",    U"two",    U"three",    U"four",     U"five",    U"six",     U"seven",     U"eight",    U"nine",
    U"ten",  U"eleven", U"twelve", U"thirteen", U"fourteen", U"fifteen", U"sixteen", U"seventeen", U"eighteen", U"nineteen"};

constexpr std::array<std::u32string_view, 10> kEnglishTens{U"",      U"",      U"twenty",  U"thirty", U"forty",
                                                           U"fifty", U"sixty", U"seventy", U"eighty", U"ninety"};

struct Scale {
  std::uint64_t value;
  std::u32string_view name;
};
constexpr Scale kChineseScales[] = {{100'000'000, U"亿"}, {10'000, U"万"}, {1'000, U"千"}, {100, U"百"}, {10, U"十"}};
constexpr Scale kEnglishScales[] = {
    {1'000'000'000'000, U"trillion"}, {1'000'000'000, U"billion"}, {1'000'000, U"million"}, {1'000, U"thousand"}, {100, U"hundred"}};

void append_chinese(std::uint64_t value, std::u32string& out) {
  if (value < kChineseDigits.size()) {
    out += kChineseDigits[value];
    return;
  }
  const Scale* scale = kChineseScales;
  while (value < scale->value) ++scale;
  append_chinese(value / scale->value, out);
  out += scale->name;
  const std::uint64_t rest = value % scale->value;
  if (rest == 0) return;
  if (rest < scale->value / 10) out += kChineseDigits[0];  // 一百零三
  append_chinese(rest, out);
}

void append_english(std::uint64_t value, std::u32string& out) {
  std::uint64_t rest = 0;
  if (value < kEnglishSmall.size()) {
    out += kEnglishSmall[value];
  } else if (value < 100) {
    out += kEnglishTens[value / 10];
    rest = value % 10;
  } else {
    const Scale* scale = kEnglishScales;
    while (value < scale->value) ++scale;
    append_english(value / scale->value, out);
    out += U' ';
    out += scale->name;
    rest = value % scale->value;
  }
  if (rest == 0) return;
  out += U' ';
  append_english(rest, out);
}

}  // namespace

std::u32string read_cardinal(std::u32string_view digits, Language language) {
  assert(!digits.empty() && digits.size() <= kMaxCardinalDigits);
  std::uint64_t value = 0;
  for (const char32_t digit : digits) value = value * 10 + (digit - U'0');
  std::u32string out;
  if (language == Language::kEnglish) {
    append_english(value, out);
    return out;
  }
  append_chinese(value, out);
  if (out.starts_with(U"一十")) out.erase(0, 1);  // 十二, but 一百一十二
  return out;
}

std::u32string_view read_digit(char32_t digit, Language language) {
  return language == Language::kChinese ? kChineseDigits[digit - U'0'] : kEnglishSmall[digit - U'0'];
}

std::u32string read_digits(std::u32string_view digits, Language language) {
  std::u32string out;
  for (const char32_t digit : digits) {
    if (language == Language::kEnglish && !out.empty()) out += U' ';
    out += read_digit(digit, language);
  }
  return out;
}

}  // namespace tts::text
