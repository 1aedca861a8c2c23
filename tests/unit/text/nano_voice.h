#pragma once
// The bundled voice's front end, opened once for all tests, and its symbols by name.

#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "phones_front_end.h"

namespace tts::text::testing {

inline std::filesystem::path nano_directory() { return std::filesystem::path(TTS_SOURCE_DIR) / "models" / "nano"; }

inline engine::Manifest nano_manifest() { return engine::read_manifest(nano_directory()); }

inline const FrontEnd& nano_front_end() {
  static const std::unique_ptr<FrontEnd> front_end = load_phones_front_end(nano_manifest());
  return *front_end;
}

inline std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline const ZhLexicon& nano_lexicon() {
  static const ZhLexicon lexicon(read_bytes(nano_directory() / "zh_lexicon.bin"));
  return lexicon;
}

inline const std::vector<std::string>& symbol_names() {
  static const auto names = [] {
    std::ifstream file(nano_directory() / "symbols.json");
    return nlohmann::json::parse(file).at("symbols").get<std::vector<std::string>>();
  }();
  return names;
}

inline std::string names_of(std::span<const std::int32_t> tokens) {
  std::string out;
  for (const std::int32_t token : tokens) {
    if (!out.empty()) out += ' ';
    out += symbol_names().at(static_cast<std::size_t>(token));
  }
  return out;
}

// The symbols of the text as one utterance, without the control tokens around them.
inline std::string symbols_of(std::string_view text, TextOptions options = {}) {
  options.split = false;
  const auto prepared = nano_front_end().prepare(text, options);
  if (!prepared) return "error: " + prepared.error().message;
  const auto& tokens = prepared->utterances.front().tokens;
  return names_of(std::span(tokens).subspan(2, tokens.size() - 3));
}

inline std::string spoken_of(std::string_view text, TextOptions options = {}) {
  options.split = false;
  const auto prepared = nano_front_end().prepare(text, options);
  return prepared ? prepared->utterances.front().spoken : "error: " + prepared.error().message;
}

}  // namespace tts::text::testing
