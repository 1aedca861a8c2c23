#pragma once
// A random language model as the two weight files that loaders read.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "random_gpt.h"
#include "safetensors.h"

namespace tts::model {

// Gone with the object.
class RandomGptFiles {
 public:
  explicit RandomGptFiles(const RandomGpt& gpt)
      : folder_(std::filesystem::temp_directory_path() / ("tts-gpt-" + std::to_string(getpid()) + "-" + std::to_string(next_++))) {
    std::filesystem::create_directories(folder_);
    const std::size_t hidden = gpt.sizes.hidden_size;
    Tensors layers, embed;
    const auto put = [&](Tensors& file, const std::string& name, const std::vector<float>& values, std::size_t columns) {
      file[name] = {values,
                    columns == 0 ? std::vector<std::size_t>{values.size()} : std::vector<std::size_t>{values.size() / columns, columns}};
    };
    for (std::size_t i = 0; i < gpt.sizes.num_hidden_layers; ++i) {
      const std::string from = std::to_string(i) + ".", to = "layers." + from;
      for (const auto& [part, name] : {std::pair{"q", "self_attn.q_proj"},
                                       {"k", "self_attn.k_proj"},
                                       {"v", "self_attn.v_proj"},
                                       {"o", "self_attn.o_proj"},
                                       {"gate", "mlp.gate_proj"},
                                       {"up", "mlp.up_proj"}}) {
        put(layers, to + name + ".weight", gpt.tensors.at(from + part), hidden);
      }
      put(layers, to + "mlp.down_proj.weight", gpt.tensors.at(from + "down"), gpt.sizes.intermediate_size);
      put(layers, to + "input_layernorm.weight", gpt.tensors.at(from + "norm1"), 0);
      put(layers, to + "post_attention_layernorm.weight", gpt.tensors.at(from + "norm2"), 0);
    }
    put(layers, "norm.weight", gpt.tensors.at("norm"), 0);
    put(embed, "emb_text.weight", gpt.tensors.at("text"), hidden);
    const std::size_t head = std::size_t{gpt.sizes.num_audio_tokens} * hidden;
    for (std::size_t q = 0; q < engine::kCodebooks; ++q) {
      put(embed, "emb_code." + std::to_string(q) + ".weight", gpt.tensors.at("code" + std::to_string(q)), hidden);
      const float* const rows = gpt.tensors.at("code_head").data() + q * head;
      put_head(embed, "head_code." + std::to_string(q), {rows, rows + head}, hidden);
    }
    put_head(embed, "head_text", gpt.tensors.at("text_head"), hidden);
    write(folder_ / "gpt.safetensors", layers);
    write(folder_ / "embed.safetensors", embed);
  }
  ~RandomGptFiles() { std::filesystem::remove_all(folder_); }
  RandomGptFiles(const RandomGptFiles&) = delete;
  RandomGptFiles& operator=(const RandomGptFiles&) = delete;

  SafetensorsFile gpt() const { return SafetensorsFile(folder_ / "gpt.safetensors"); }
  SafetensorsFile embed() const { return SafetensorsFile(folder_ / "embed.safetensors"); }

 private:
  struct Tensor {
    std::vector<float> values;
    std::vector<std::size_t> shape;
  };
  using Tensors = std::map<std::string, Tensor>;

  // Weight-normalised, with a magnitude that gives the same matrix back.
  static void put_head(Tensors& file, const std::string& name, const std::vector<float>& rows, std::size_t hidden) {
    const std::string prefix = name + ".parametrizations.weight.original";
    std::vector<float> magnitude;
    for (std::size_t r = 0; r < rows.size() / hidden; ++r) {
      double squares = 0;
      for (std::size_t c = 0; c < hidden; ++c) squares += double{rows[r * hidden + c]} * rows[r * hidden + c];
      magnitude.push_back(static_cast<float>(std::sqrt(squares)));
    }
    file[prefix + "0"] = {magnitude, {magnitude.size(), 1}};
    file[prefix + "1"] = {rows, {rows.size() / hidden, hidden}};
  }

  static void write(const std::filesystem::path& path, const Tensors& tensors) {
    nlohmann::json header;
    std::size_t offset = 0;
    for (const auto& [name, tensor] : tensors) {
      const std::size_t bytes = tensor.values.size() * sizeof(float);
      header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
      offset += bytes;
    }
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof(length));
    file << text;
    for (const auto& [name, tensor] : tensors) {
      file.write(reinterpret_cast<const char*>(tensor.values.data()), static_cast<std::streamsize>(tensor.values.size() * sizeof(float)));
    }
  }

  static inline int next_ = 0;
  std::filesystem::path folder_;
};

}  // namespace tts::model
