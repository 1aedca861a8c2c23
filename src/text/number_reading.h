#pragma once
// Digits in words. Every function takes ASCII digits as code points.

#include <cstddef>
#include <string>
#include <string_view>

namespace tts::text {

enum class Language { kChinese, kEnglish };

// Longer numbers are read digit by digit.
inline constexpr std::size_t kMaxCardinalDigits = 15;

// "1203" -> 一千二百零三, "one thousand two hundred three". Precondition: 1 to kMaxCardinalDigits digits.
std::u32string read_cardinal(std::u32string_view digits, Language language);

// "8" -> 八, "eight".
std::u32string_view read_digit(char32_t digit, Language language);

// "108" -> 一零八, "one zero eight".
std::u32string read_digits(std::u32string_view digits, Language language);

}  // namespace tts::text
