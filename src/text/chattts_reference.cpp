#include "chattts_reference.h"

#include <utility>

#include "tts/base/utf8.h"

#include "chattts_unicode.h"

namespace tts::text {
namespace {

void remove_all(std::u32string& text, std::u32string_view what) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::u32string::npos;) text.erase(at, what.size());
}

std::u32string_view strip(std::u32string_view text) {
  while (!text.empty() && is_python_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_python_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<std::string> split_like_reference(std::string_view text) {
  std::vector<std::string> parts;
  if (text.find('\n') != std::string_view::npos) {
    for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
      parts.emplace_back(text.substr(0, end));
    parts.emplace_back(text);
    return parts;
  }
  char32_t before = 0;
  std::string part;
  for (const char32_t c : decode_utf8(text)) {
    append_utf8(part, c);
    if (c == U'。' || (before == U'.' && is_python_space(c))) parts.push_back(std::exchange(part, {}));
    before = c;
  }
  if (!part.empty()) parts.push_back(std::move(part));
  return parts;
}

std::string decorate_code_like_reference(std::string_view text, const CodeDecoration& decoration) {
  std::u32string clean = decode_utf8(text);
  for (const std::u32string_view slot : {U"[Stts]", U"[spk_emb]", U"[empty_spk]"}) remove_all(clean, slot);
  std::string out = decoration.has_speaker ? "[Stts][spk_emb]" : "[Stts][empty_spk]";
  out.append(decoration.transcript).append(decoration.prompt).append(encode_utf8(strip(clean))).append("[Ptts]");
  return out;
}

std::string decorate_refine_like_reference(std::string_view text, std::string_view prompt) {
  return std::string("[Sbreak]").append(text).append("[Pbreak]").append(prompt);
}

}  // namespace tts::text
