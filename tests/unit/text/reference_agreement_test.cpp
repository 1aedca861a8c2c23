// Symbols against those of the code the bundled voice was trained with.

#include <cstdio>
#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

#include "nano_voice.h"

namespace tts::text::testing {
namespace {

// What a pair of different symbol sequences has in common, coarse enough to count.
std::string kind_of(const std::string& want, const std::string& got) {
  const auto body = [](const std::string& symbols) { return symbols.substr(0, symbols.find_last_of(' ')); };
  if (body(want) == body(got)) return "closing mark";
  const auto letters_only = [](std::string symbols) {
    std::erase_if(symbols, [](char c) { return (c >= '0' && c <= '9') || c == '_' || c == ' '; });
    return symbols;
  };
  return letters_only(want) == letters_only(got) ? "tones or word borders" : "readings";
}

TEST(ReferenceAgreement, SymbolsEqualThoseOfTheTrainingCode) {
  const char* other = std::getenv("TTS_PHONE_REFERENCE");  // a larger file of the same form
  std::ifstream file(other != nullptr ? std::filesystem::path(other)
                                      : std::filesystem::path(TTS_SOURCE_DIR) / "tests" / "data" / "phone_reference.jsonl");
  std::size_t sentences = 0, equal = 0;
  std::map<std::string, std::vector<std::string>> differences;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    const std::string text = row.at("text"), want = row.at("symbols"), got = symbols_of(text);
    ++sentences;
    if (got == want) {
      ++equal;
    } else {
      differences[kind_of(want, got)].push_back(text + "\n    want " + want + "\n    got  " + got);
    }
  }
  for (const auto& [kind, cases] : differences) {
    std::printf("%zu sentences differ in: %s, for example\n  %s\n", cases.size(), kind.c_str(), cases.front().c_str());
  }
  std::printf("%zu of %zu sentences agree\n", equal, sentences);
  ASSERT_GE(sentences, 2000U);
  EXPECT_GE(static_cast<double>(equal), 0.99 * static_cast<double>(sentences));
}

}  // namespace
}  // namespace tts::text::testing
