#pragma once
// The small language model of the goldens, optionally with one weight changed as some recordings were made.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "gpt_weights.h"
#include "speaker_norm.h"
#include "support/golden_data.h"

namespace tts::model {

struct ChangedWeight {
  std::string tensor;
  std::size_t element;
  float value;
};

inline nlohmann::json golden_json(const std::string& name) {
  std::ifstream file(testing::golden_path(name));
  if (!file) throw std::runtime_error("cannot read " + testing::golden_path(name).string());
  return nlohmann::json::parse(file);
}

inline void expect_close(std::span<const float> actual, std::span<const float> expected, float tolerance, const std::string& what) {
  EXPECT_LE(testing::max_difference(actual, expected), tolerance) << what;
}

inline std::filesystem::path write_changed(const std::filesystem::path& original, const ChangedWeight& change) {
  std::ifstream file(original, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const nlohmann::json entries = nlohmann::json::parse(bytes.substr(sizeof(header), header));
  const std::size_t offset =
      sizeof(header) + header + entries.at(change.tensor).at("data_offsets").at(0).get<std::size_t>() + change.element * sizeof(float);
  std::memcpy(bytes.data() + offset, &change.value, sizeof(float));
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("golden_embed_" + std::to_string(::getpid()) + ".safetensors");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline GptWeights load_golden_gpt(const std::optional<ChangedWeight>& change = std::nullopt,
                                  ops::WeightFormat format = ops::WeightFormat::kFloat32) {
  std::filesystem::path embed = testing::golden_path("model/asset/Embed.safetensors");
  if (change) embed = write_changed(embed, *change);
  GptWeights weights =
      load_gpt_weights(testing::golden_manifest().architecture.gpt,
                       SafetensorsFile(testing::golden_path("model/asset/gpt/model.safetensors")), SafetensorsFile(embed), format);
  if (change) std::filesystem::remove(embed);
  return weights;
}

// As it stands at [spk_emb] positions.
inline std::vector<float> golden_speaker(int index) {
  return normalise_speaker(testing::GoldenFile("speaker").floats("spk_emb_" + std::to_string(index)), engine::SpeakerPrecision::kFloat16);
}

}  // namespace tts::model
