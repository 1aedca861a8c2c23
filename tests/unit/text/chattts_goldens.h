#pragma once
// The recorded results of the reference and the small tokenizer they were made with.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

#include "bert_tokenizer.h"

namespace tts::text::test {

inline const std::filesystem::path kGoldens = std::filesystem::path(TTS_SOURCE_DIR) / "tests/golden/data";

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline nlohmann::json golden(const char* name) { return nlohmann::json::parse(read_file(kGoldens / name)); }

inline const std::filesystem::path kTokenizerJson = kGoldens / "model/asset/tokenizer/tokenizer.json";
inline const std::filesystem::path kTokenizerConfig = kGoldens / "model/asset/tokenizer/tokenizer_config.json";

inline BertTokenizer golden_tokenizer() { return {read_file(kTokenizerJson), read_file(kTokenizerConfig)}; }

}  // namespace tts::text::test
