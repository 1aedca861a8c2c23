#include "chattts_normalizer.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>

#include "tts/base/utf8.h"

#include "chattts_unicode.h"

namespace tts::text {
namespace {

constexpr std::size_t kMaxHomophones = 0x10000;

constexpr std::u32string_view kHalfWidth = U"!\"'#$%&(),-*+./:;<=>?@\\^`{|}~";
constexpr std::u32string_view kFullWidth = U"！“‘＃＄％＆（），－＊＋。／：；＜＝＞？＠＼＾｀｛｜｝～";
static_assert(kHalfWidth.size() == kFullWidth.size());

constexpr std::u32string_view kPauses = U"：；（）【】『』「」《》－";
constexpr std::u32string_view kAsciiPauses = U":;()><-";

bool contains(std::u32string_view set, char32_t c) noexcept { return set.find(c) != std::u32string_view::npos; }

char32_t widen(char32_t c) noexcept {
  const auto at = kHalfWidth.find(c);
  return at == std::u32string_view::npos ? c : kFullWidth[at];
}

char32_t simplify(char32_t c) noexcept {
  if (c == U'！') return U'。';
  if (c == U'!') return U'.';
  if (contains(kPauses, c)) return U'，';
  if (contains(kAsciiPauses, c)) return U',';
  return c;
}

template <class Map>
void replace_each(std::u32string& text, Map map) {
  std::ranges::transform(text, text.begin(), map);
}

// Whether anything outside [tags] would have to go.
bool has_foreign(std::u32string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == U'[') {
      std::size_t end = at + 1;
      while (end < text.size() && is_word_character(text[end])) ++end;
      if (end > at + 1 && end < text.size() && text[end] == U']') {
        at = end + 1;
        continue;
      }
    }
    if (!passes_chattts_normalizer(text[at])) return true;
    ++at;
  }
  return false;
}

// Rewrites what stands outside of tags. Text and tags are collected apart and then interleaved, which moves or loses some where
// brackets do not pair; the reference does the same.
template <class Rewrite>
std::u32string rewrite_outside_tags(std::u32string_view text, Rewrite rewrite) {
  std::vector<std::u32string> parts, tags;
  std::u32string part, tag;
  for (const char32_t c : text) {
    if (c == U'[') {
      parts.push_back(std::move(part));
      part.clear();
      tag = c;
    } else if (!tag.empty()) {
      tag += c;
    } else {
      part += c;
    }
    if (c == U']') {
      tags.push_back(std::move(tag));
      tag.clear();
    }
  }
  if (!part.empty()) parts.push_back(std::move(part));
  if (tags.empty() && parts.size() > 1) parts.resize(1);
  std::u32string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += rewrite(std::move(parts[i]));
    if (i < tags.size()) out += tags[i];
  }
  return out;
}

}  // namespace

bool passes_chattts_normalizer(char32_t c) noexcept { return is_basic_han(c) || is_ascii_letter(c) || contains(U"，。、,. ", c); }

Homophones parse_homophones(std::string_view json) {
  const auto table = nlohmann::json::parse(json, nullptr, false);
  if (!table.is_object() || table.size() > kMaxHomophones) {
    throw std::runtime_error("the homophone table must be a JSON object of at most " + std::to_string(kMaxHomophones) + " entries");
  }
  Homophones out;
  const auto single = [](const std::string& text) {
    const std::u32string characters = decode_utf8(text);
    return characters.size() == 1 && characters[0] <= 0xFFFF ? characters[0] : char32_t{0};
  };
  for (const auto& [from, to] : table.items()) {
    const char32_t a = single(from);
    const char32_t b = to.is_string() ? single(to.get<std::string>()) : char32_t{0};
    if (a == 0 || b == 0)
      throw std::runtime_error("the homophone table must map single characters to single characters, see \"" + from + '"');
    out.emplace(a, b);
  }
  return out;
}

ChatttsLanguage detect_chattts_language(std::u32string_view text) {
  const auto han = std::ranges::count_if(text, is_basic_han);
  std::ptrdiff_t words = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    bool letters = true;
    for (; end < text.size() && is_word_character(text[end]); ++end) letters = letters && is_ascii_letter(text[end]);
    words += letters && end > at;
    at = std::max(end, at + 1);
  }
  return han > words ? ChatttsLanguage::kChinese : ChatttsLanguage::kEnglish;
}

std::u32string normalize_chattts(std::u32string_view text, ChatttsLanguage language, const ChatttsNormalizerOptions& options) {
  std::u32string out = options.spoken_forms ? rewrite_outside_tags(text, options.spoken_forms) : std::u32string(text);
  if (options.marks && language == ChatttsLanguage::kChinese) replace_each(out, widen);
  const bool foreign = has_foreign(out);
  if (foreign) replace_each(out, simplify);
  if (options.homophones) {
    replace_each(out, [&](char32_t c) {
      const auto found = options.homophones->find(c);
      return found == options.homophones->end() ? c : found->second;
    });
  }
  if (!foreign) return out;
  return rewrite_outside_tags(out, [](std::u32string part) {
    std::erase_if(part, [](char32_t c) { return !passes_chattts_normalizer(c); });
    return part;
  });
}

}  // namespace tts::text
