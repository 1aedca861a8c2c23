#include "characters.h"

#include <algorithm>
#include <array>
#include <cassert>

#include <utf8proc.h>

#include "tts/base/utf8.h"

namespace tts::text {
namespace {

struct Replacement {
  char32_t from;
  std::u32string_view to;
};

// What Unicode does not decompose, sorted by `from`.
constexpr Replacement kReplacements[] = {
    {U'Æ', U"AE"}, {U'Ø', U"O"}, {U'ß', U"ss"}, {U'æ', U"ae"}, {U'ø', U"o"},  {U'Đ', U"D"},  {U'đ', U"d"},
    {U'ı', U"i"},  {U'Ł', U"L"}, {U'ł', U"l"},  {U'Œ', U"OE"}, {U'œ', U"oe"}, {U'‐', U"-"},  {U'‑', U"-"},
    {U'―', U"—"},  {U'‥', U"…"}, {U'⁄', U"/"},  {U'−', U"-"},  {U'⋯', U"…"},  {U'｡', U"。"}, {U'､', U"、"},
};
static_assert(std::ranges::is_sorted(kReplacements, {}, &Replacement::from));

// The widest compatibility decomposition in Unicode has 18 code points.
constexpr std::size_t kMaxDecomposition = 32;

constexpr char32_t kFractionSlash = U'⁄';  // ½ is 1⁄2

bool is_mark(utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
}

bool is_invisible(utf8proc_category_t category) {
  return is_mark(category) || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CC;
}

bool is_readable(char32_t c) { return is_han(c) || (c > 0x20 && c < 0x7F); }

// Full-width forms of ASCII except the punctuation that also has a meaning of its own in Chinese text.
char32_t narrow(char32_t c) {
  if (c < 0xFF01 || c > 0xFF5E) return c;
  constexpr std::u32string_view kKept = U"，！？：；（）～";
  return kKept.find(c) == std::u32string_view::npos ? c - 0xFEE0 : c;
}

void fold_one(char32_t original, const SourceRange& source, std::vector<Unit>& out) {
  if ((original >= 0x20 && original < 0x7F) || (original >= 0x4E00 && original <= 0x9FFF) || is_space(original)) {
    out.push_back({original, source});
    return;
  }
  const char32_t c = narrow(original);
  const auto* replacement = std::ranges::lower_bound(kReplacements, c, {}, &Replacement::from);
  if (replacement != std::end(kReplacements) && replacement->from == c) {
    for (const char32_t to : replacement->to) out.push_back({to, source});
    return;
  }
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (is_invisible(category)) return;
  const bool letter_or_number = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
  const bool radical = c >= 0x2E80 && c <= 0x2FD5;  // Unicode calls them symbols
  if (c != original || !(letter_or_number || radical)) {
    out.push_back({c, source});
    return;
  }
  std::array<utf8proc_int32_t, kMaxDecomposition> parts{};
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                                             static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT), &boundary);
  if (count <= 0 || static_cast<std::size_t>(count) > parts.size()) {
    out.push_back({c, source});
    return;
  }
  // ② and ² must not become a digit of the number beside them.
  const bool apart = category == UTF8PROC_CATEGORY_NO;
  const std::size_t before = out.size();
  if (apart) out.push_back({U' ', source});
  const std::size_t first = out.size();
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const auto part = static_cast<char32_t>(parts[static_cast<std::size_t>(i)]);
    if (is_mark(utf8proc_category(parts[static_cast<std::size_t>(i)]))) continue;
    if (part != kFractionSlash && !is_readable(part)) {  // a script we do not read: keep the character as it was written
      out.resize(first);
      break;
    }
    out.push_back({part == kFractionSlash ? U' ' : part, source});
  }
  if (out.size() == first) {
    out.resize(before);
    out.push_back({c, source});
  } else if (apart) {
    out.push_back({U' ', source});
  }
}

}  // namespace

bool is_han(char32_t c) noexcept {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || c == 0x3007 || (c >= 0x20000 && c <= 0x323AF);
}

bool is_latin(char32_t c) noexcept { return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z'); }

bool is_digit(char32_t c) noexcept { return c >= U'0' && c <= U'9'; }

bool is_line_end(char32_t c) noexcept { return (c >= U'\n' && c <= U'\r') || c == 0x85 || c == 0x2028 || c == 0x2029; }

bool is_space(char32_t c) noexcept {
  return c == U' ' || c == U'\t' || is_line_end(c) || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool carries_meaning(char32_t c) noexcept {
  constexpr std::u32string_view kSpokenPunctuation = U"#%&*/@\\";  // Unicode calls them punctuation
  constexpr std::u32string_view kOrnaments = U"^`|~～";            // and these signs
  if (kOrnaments.find(c) != std::u32string_view::npos) return false;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  const bool letter_or_number = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO && !is_mark(category);
  const bool sign = category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO;
  return letter_or_number || sign || category == UTF8PROC_CATEGORY_CO || kSpokenPunctuation.find(c) != std::u32string_view::npos;
}

std::vector<Unit> fold_text(std::string_view text) {
  std::vector<Unit> units;
  units.reserve(text.size());
  std::size_t begin = 0;
  for (const char32_t c : decode_utf8(text)) {
    const std::size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    fold_one(c, {begin, begin + length}, units);
    begin += length;
  }
  return units;
}

}  // namespace tts::text
