#pragma once
// The small language model of the goldens, optionally with one weight changed as some recordings were made.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include "golden_data.h"
#include "gpt_weights.h"
#include "speaker_norm.h"

namespace tts::model {

struct ChangedWeight {
  std::string tensor;
  std::size_t element;
  float value;
};

inline engine::GptSizes golden_gpt_sizes() {
  const nlohmann::json config = golden_json("model/asset/gpt/config.json");
  engine::GptSizes sizes;
  sizes.hidden_size = config.at("hidden_size");
  sizes.intermediate_size = config.at("intermediate_size");
  sizes.num_hidden_layers = config.at("num_hidden_layers");
  sizes.num_attention_heads = config.at("num_attention_heads");
  sizes.num_key_value_heads = config.at("num_key_value_heads");
  sizes.max_position_embeddings = config.at("max_position_embeddings");
  sizes.num_text_tokens = config.at("num_text_tokens");
  sizes.num_audio_tokens = config.at("num_audio_tokens");
  sizes.num_vq = config.at("num_vq");
  sizes.rms_norm_eps = config.at("rms_norm_eps");
  sizes.rope_theta = config.at("rope_theta");
  return sizes;
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
      std::filesystem::path(testing::TempDir()) / ("golden_embed_" + std::to_string(::getpid()) + ".safetensors");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

inline GptWeights load_golden_gpt(const std::optional<ChangedWeight>& change = std::nullopt) {
  std::filesystem::path embed = golden_path("model/asset/Embed.safetensors");
  if (change) embed = write_changed(embed, *change);
  GptWeights weights = load_gpt_weights(golden_gpt_sizes(), SafetensorsFile(golden_path("model/asset/gpt/model.safetensors")),
                                        SafetensorsFile(embed), ops::WeightFormat::kFloat32);
  if (change) std::filesystem::remove(embed);
  return weights;
}

// As it stands at [spk_emb] positions.
inline std::vector<float> golden_speaker(int index) {
  return normalise_speaker(GoldenTensors("speaker").floats("spk_emb_" + std::to_string(index)), engine::SpeakerPrecision::kFloat16);
}

}  // namespace tts::model
