#pragma once
// Small language models with random weights, and the same model written plainly in double precision.

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "gpt_weights.h"
#include "random_floats.h"

namespace tts::model {

inline engine::GptSizes small_gpt_sizes(std::uint32_t heads, std::uint32_t kv_heads, std::uint32_t layers = 2) {
  engine::GptSizes sizes;
  sizes.hidden_size = heads * 16;
  sizes.intermediate_size = 72;
  sizes.num_hidden_layers = layers;
  sizes.num_attention_heads = heads;
  sizes.num_key_value_heads = kv_heads;
  sizes.max_position_embeddings = 512;
  sizes.num_text_tokens = 40;
  sizes.num_audio_tokens = 30;
  sizes.num_vq = 4;
  return sizes;
}

// Matrices by name, [outputs, inputs].
struct RandomGpt {
  engine::GptSizes sizes;
  std::map<std::string, std::vector<float>> tensors;

  explicit RandomGpt(const engine::GptSizes& of, std::uint32_t seed = 1) : sizes(of) {
    const std::size_t hidden = sizes.hidden_size, inner = sizes.intermediate_size,
                      kv = hidden / sizes.num_attention_heads * sizes.num_key_value_heads;
    const auto matrix = [&](const std::string& name, std::size_t rows, std::size_t columns) {
      tensors[name] = ops::random_floats(rows * columns, seed++, 1.5F / std::sqrt(static_cast<float>(columns)));
    };
    for (std::size_t i = 0; i < sizes.num_hidden_layers; ++i) {
      const std::string l = std::to_string(i) + ".";
      matrix(l + "q", hidden, hidden);
      matrix(l + "k", kv, hidden);
      matrix(l + "v", kv, hidden);
      matrix(l + "o", hidden, hidden);
      matrix(l + "gate", inner, hidden);
      matrix(l + "up", inner, hidden);
      matrix(l + "down", hidden, inner);
      matrix(l + "norm1", 1, hidden);
      matrix(l + "norm2", 1, hidden);
    }
    matrix("norm", 1, hidden);
    matrix("text", sizes.num_text_tokens, hidden);
    for (std::size_t q = 0; q < engine::kCodebooks; ++q) matrix("code" + std::to_string(q), sizes.num_audio_tokens, hidden);
    matrix("code_head", engine::kCodebooks * sizes.num_audio_tokens, hidden);
    matrix("text_head", sizes.num_text_tokens, hidden);
  }

  GptWeights weights(ops::WeightFormat format = ops::WeightFormat::kFloat32) const {
    const std::size_t hidden = sizes.hidden_size, inner = sizes.intermediate_size;
    const auto plain = [&](const std::vector<float>& values, std::size_t inputs) {
      return ops::make_linear(format, values.data(), values.size() / inputs, inputs);
    };
    const auto linear = [&](std::vector<float> values, std::size_t inputs) {
      return plain(rotate_inputs(format, std::move(values), inputs), inputs);
    };
    GptWeights result;
    result.sizes = sizes;
    for (std::size_t i = 0; i < sizes.num_hidden_layers; ++i) {
      const std::string l = std::to_string(i) + ".";
      std::vector<float> qkv = tensors.at(l + "q");
      for (const char* part : {"k", "v"}) qkv.insert(qkv.end(), tensors.at(l + part).begin(), tensors.at(l + part).end());
      const std::vector<float> gate = rotate_inputs(format, tensors.at(l + "gate"), hidden),
                               up = rotate_inputs(format, tensors.at(l + "up"), hidden);
      result.layers.push_back({.input_norm = tensors.at(l + "norm1"),
                               .post_attention_norm = tensors.at(l + "norm2"),
                               .qkv = linear(qkv, hidden),
                               .output = linear(tensors.at(l + "o"), hidden),
                               .gate_up = ops::make_gate_up(format, gate.data(), up.data(), inner, hidden),
                               .down = linear(tensors.at(l + "down"), inner)});
    }
    result.final_norm = tensors.at("norm");
    result.text_embedding = EmbeddingTable(tensors.at("text"), hidden, format);
    for (std::size_t q = 0; q < engine::kCodebooks; ++q)
      result.code_embedding[q] = EmbeddingTable(tensors.at("code" + std::to_string(q)), hidden, format);
    result.code_head = plain(tensors.at("code_head"), hidden);
    result.text_head = plain(tensors.at("text_head"), hidden);
    return result;
  }

  // Final hidden states of a whole sequence of input rows.
  std::vector<std::vector<double>> hidden_states(std::vector<std::vector<double>> x) const {
    const std::size_t hidden = sizes.hidden_size, dim = hidden / sizes.num_attention_heads, half = dim / 2;
    const auto times = [](const std::vector<float>& w, const std::vector<double>& v) {
      std::vector<double> y(w.size() / v.size());
      for (std::size_t o = 0; o < y.size(); ++o) {
        for (std::size_t i = 0; i < v.size(); ++i) y[o] += w[o * v.size() + i] * v[i];
      }
      return y;
    };
    const auto norm = [&](const std::vector<double>& v, const std::vector<float>& w) {
      double squares = 0.0;
      for (const double value : v) squares += value * value;
      std::vector<double> y(v);
      for (std::size_t i = 0; i < y.size(); ++i) y[i] *= w[i] / std::sqrt(squares / static_cast<double>(v.size()) + sizes.rms_norm_eps);
      return y;
    };
    const auto rotate = [&](double* head, std::size_t position) {
      for (std::size_t j = 0; j < half; ++j) {
        const double angle =
            static_cast<double>(position) * std::pow(sizes.rope_theta, -2.0 * static_cast<double>(j) / static_cast<double>(dim));
        const double a = head[j], b = head[j + half];
        head[j] = a * std::cos(angle) - b * std::sin(angle);
        head[j + half] = b * std::cos(angle) + a * std::sin(angle);
      }
    };
    for (std::size_t i = 0; i < sizes.num_hidden_layers; ++i) {
      const std::string l = std::to_string(i) + ".";
      std::vector<std::vector<double>> keys, values;
      for (std::size_t p = 0; p < x.size(); ++p) {
        const std::vector<double> r = norm(x[p], tensors.at(l + "norm1"));
        std::vector<double> q = times(tensors.at(l + "q"), r), attended(hidden);
        keys.push_back(times(tensors.at(l + "k"), r));
        values.push_back(times(tensors.at(l + "v"), r));
        for (std::size_t h = 0; h < sizes.num_key_value_heads; ++h) rotate(keys[p].data() + h * dim, p);
        for (std::size_t h = 0; h < sizes.num_attention_heads; ++h) {
          rotate(q.data() + h * dim, p);
          const std::size_t kv = h / (sizes.num_attention_heads / sizes.num_key_value_heads) * dim;
          std::vector<double> weight(p + 1);
          double total = 0.0;
          for (std::size_t t = 0; t <= p; ++t) {
            for (std::size_t d = 0; d < dim; ++d) weight[t] += q[h * dim + d] * keys[t][kv + d] / std::sqrt(static_cast<double>(dim));
            total += weight[t] = std::exp(weight[t]);
          }
          for (std::size_t t = 0; t <= p; ++t) {
            for (std::size_t d = 0; d < dim; ++d) attended[h * dim + d] += weight[t] / total * values[t][kv + d];
          }
        }
        const std::vector<double> out = times(tensors.at(l + "o"), attended);
        for (std::size_t d = 0; d < hidden; ++d) x[p][d] += out[d];
      }
      for (std::vector<double>& row : x) {
        const std::vector<double> r = norm(row, tensors.at(l + "norm2"));
        std::vector<double> gate = times(tensors.at(l + "gate"), r);
        const std::vector<double> up = times(tensors.at(l + "up"), r);
        for (std::size_t d = 0; d < gate.size(); ++d) gate[d] *= up[d] / (1.0 + std::exp(-gate[d]));
        const std::vector<double> out = times(tensors.at(l + "down"), gate);
        for (std::size_t d = 0; d < hidden; ++d) row[d] += out[d];
      }
    }
    for (std::vector<double>& row : x) row = norm(row, tensors.at("norm"));
    return x;
  }
};

}  // namespace tts::model
