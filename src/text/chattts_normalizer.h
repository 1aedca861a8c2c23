#pragma once
// The text clean-up that ChatTTS was used with, reproduced exactly: it keeps basic Han, ASCII letters and six marks, maps other punctuation
// to those marks and deletes the rest, digits included. Run number reading and the like before it.

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tts::text {

// Characters to replace by others that sound the same and that the model reads better. Within the Basic Multilingual Plane.
using Homophones = std::unordered_map<char32_t, char32_t>;

// From a JSON object of single characters. Throws std::runtime_error.
Homophones parse_homophones(std::string_view json);

enum class ChatttsLanguage { kChinese, kEnglish };

// Chinese when there are more basic Han characters than English words; a word is a run of ASCII letters that touches no other letter,
// digit or underscore of any script.
ChatttsLanguage detect_chattts_language(std::u32string_view text);

struct ChatttsNormalizerOptions {
  // Run first, on what stands outside of tags; empty = none. The reference lets its users register one for each language.
  std::function<std::u32string(std::u32string)> spoken_forms = {};
  bool marks = true;                       // in Chinese, ASCII punctuation becomes full-width first
  const Homophones* homophones = nullptr;  // not owned; nullptr = leave as it is
};

// Linear. [tags] of word characters pass unchanged; brackets that do not pair lose text, as they do in the reference, so a caller that
// wants all text spoken gives none.
std::u32string normalize_chattts(std::u32string_view text, ChatttsLanguage language, const ChatttsNormalizerOptions& options);

// What the normaliser lets pass.
bool passes_chattts_normalizer(char32_t c) noexcept;

}  // namespace tts::text
