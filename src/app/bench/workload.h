#pragma once
// What the listeners ask for.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tts::bench {

struct Text {
  std::string text;      // UTF-8
  std::string language;  // "zh", "en"; empty = unknown
};

// Sentences of about `length` characters (code points), several variants each, from a built-in stock of everyday and news sentences.
// `language`: "zh" or "en"; throws std::invalid_argument for others.
std::vector<Text> built_in_texts(std::string_view language, std::size_t length);

// One text a line; a line that starts with '{' is JSON with "text" and perhaps "lang". Empty lines are skipped. Throws std::runtime_error.
std::vector<Text> read_texts(const std::filesystem::path& file);

// Every text once, in an order that depends on the seed alone.
void shuffle(std::vector<Text>& texts, std::uint64_t seed);

}  // namespace tts::bench
