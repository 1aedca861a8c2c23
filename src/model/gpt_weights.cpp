#include "gpt_weights.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "ops/attention.h"
#include "ops/hadamard.h"
#include "ops/kernels.h"

namespace tts::model {
namespace {

constexpr std::size_t kHeadDimUnit = 16;  // attention kernels work on whole groups of 16

GptLayerWeights load_layer(TensorReader& gpt, const GptWeights& weights, std::size_t index, ops::WeightFormat format) {
  const std::size_t hidden = weights.sizes.hidden_size, inner = weights.sizes.intermediate_size, kv = weights.kv_width();
  const std::string prefix = "layers." + std::to_string(index) + ".";
  GptLayerWeights layer;
  layer.input_norm = gpt.get(prefix + "input_layernorm.weight", {hidden});
  layer.post_attention_norm = gpt.get(prefix + "post_attention_layernorm.weight", {hidden});

  std::vector<float> qkv = gpt.get(prefix + "self_attn.q_proj.weight", {hidden, hidden});
  for (const char* name : {"self_attn.k_proj.weight", "self_attn.v_proj.weight"}) {
    const std::vector<float> part = gpt.get(prefix + name, {kv, hidden});
    qkv.insert(qkv.end(), part.begin(), part.end());
  }
  const auto rotated = [&](std::vector<float> weight, std::size_t inputs) { return rotate_inputs(format, std::move(weight), inputs); };
  const auto matrix = [&](const char* name, std::size_t rows, std::size_t columns) {
    return rotated(gpt.get(prefix + name, {rows, columns}), columns);
  };
  layer.qkv = ops::make_linear(format, rotated(std::move(qkv), hidden).data(), hidden + 2 * kv, hidden);
  layer.output = ops::make_linear(format, matrix("self_attn.o_proj.weight", hidden, hidden).data(), hidden, hidden);
  const std::vector<float> gate = matrix("mlp.gate_proj.weight", inner, hidden), up = matrix("mlp.up_proj.weight", inner, hidden);
  layer.gate_up = ops::make_gate_up(format, gate.data(), up.data(), inner, hidden);
  layer.down = ops::make_linear(format, matrix("mlp.down_proj.weight", hidden, inner).data(), hidden, inner);
  return layer;
}

std::vector<float> load_head(TensorReader& embed, const std::string& name, std::size_t rows, std::size_t columns) {
  const std::string prefix = name + ".parametrizations.weight.original";
  const std::vector<float> magnitude = embed.get(prefix + "0", {rows, 1});
  return fold_weight_norm(magnitude, embed.get(prefix + "1", {rows, columns}), columns);
}

}  // namespace

std::vector<std::string> check_gpt_sizes(const engine::GptSizes& sizes) {
  std::vector<std::string> problems;
  if (sizes.num_vq != engine::kCodebooks)
    problems.push_back("num_vq is " + std::to_string(sizes.num_vq) + ", expected " + std::to_string(engine::kCodebooks));
  if (sizes.hidden_size % sizes.num_attention_heads != 0) {
    problems.push_back("hidden_size is not a multiple of num_attention_heads");
  } else if (sizes.hidden_size / sizes.num_attention_heads % kHeadDimUnit != 0) {
    problems.push_back("hidden_size / num_attention_heads is not a multiple of " + std::to_string(kHeadDimUnit));
  } else if (sizes.hidden_size / sizes.num_attention_heads > ops::kMaxHeadDim) {
    problems.push_back("hidden_size / num_attention_heads is above " + std::to_string(ops::kMaxHeadDim));
  }
  if (sizes.num_attention_heads % sizes.num_key_value_heads != 0)
    problems.push_back("num_attention_heads is not a multiple of num_key_value_heads");
  if (sizes.num_audio_tokens < 4 || sizes.num_audio_tokens > 65536) problems.push_back("num_audio_tokens is outside 4..65536");
  if (sizes.num_text_tokens < 4) problems.push_back("num_text_tokens is below 4");
  return problems;
}

std::vector<float> rotate_inputs(ops::WeightFormat format, std::vector<float> weight, std::size_t inputs) {
  if (format != ops::WeightFormat::kInt8) return weight;
  const float factor = 1.0F / static_cast<float>(ops::hadamard_block(inputs));
  for (std::size_t first = 0; first < weight.size(); first += inputs) ops::hadamard(weight.data() + first, inputs);
  ops::scale(factor, weight.size(), weight.data());
  return weight;
}

std::vector<float> fold_weight_norm(const std::vector<float>& magnitude, const std::vector<float>& direction, std::size_t columns) {
  std::vector<float> folded(direction.size());
  for (std::size_t row = 0; row < magnitude.size(); ++row) {
    double squares = 0.0;
    for (std::size_t c = 0; c < columns; ++c) squares += double{direction[row * columns + c]} * direction[row * columns + c];
    const double factor = squares > 0.0 ? magnitude[row] / std::sqrt(squares) : 0.0;
    for (std::size_t c = 0; c < columns; ++c) folded[row * columns + c] = static_cast<float>(factor * direction[row * columns + c]);
  }
  return folded;
}

GptWeights load_gpt_weights(const engine::GptSizes& sizes, const SafetensorsFile& gpt_file, const SafetensorsFile& embed_file,
                            ops::WeightFormat format) {
  const std::size_t hidden = sizes.hidden_size;
  GptWeights weights;
  weights.sizes = sizes;

  TensorReader gpt(gpt_file);
  gpt.ignore("embed_tokens.weight");  // some exports carry it; the model has embeddings of its own
  for (std::size_t i = 0; i < sizes.num_hidden_layers; ++i) weights.layers.push_back(load_layer(gpt, weights, i, format));
  weights.final_norm = gpt.get("norm.weight", {hidden});

  TensorReader embed(embed_file);
  weights.text_embedding = EmbeddingTable(embed.get("emb_text.weight", {sizes.num_text_tokens, hidden}), hidden, format);
  std::vector<float> code_head;
  for (std::size_t q = 0; q < engine::kCodebooks; ++q) {
    weights.code_embedding[q] =
        EmbeddingTable(embed.get("emb_code." + std::to_string(q) + ".weight", {sizes.num_audio_tokens, hidden}), hidden, format);
    const std::vector<float> head = load_head(embed, "head_code." + std::to_string(q), sizes.num_audio_tokens, hidden);
    code_head.insert(code_head.end(), head.begin(), head.end());
  }
  weights.code_head = ops::make_linear(format, code_head.data(), engine::kCodebooks * sizes.num_audio_tokens, hidden);
  if (embed.contains("head_text.parametrizations.weight.original0")) {
    weights.text_head =
        ops::make_linear(format, load_head(embed, "head_text", sizes.num_text_tokens, hidden).data(), sizes.num_text_tokens, hidden);
  }

  std::string problems;
  for (const TensorReader* reader : {&gpt, &embed}) {
    try {
      reader->finish();
    } catch (const std::runtime_error& error) {
      if (!problems.empty()) problems += '\n';
      problems += error.what();
    }
  }
  if (!problems.empty()) throw std::runtime_error(problems);
  return weights;
}

}  // namespace tts::model
