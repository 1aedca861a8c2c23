#pragma once
// The language model's weights (model spec, Embed and gpt files), read, checked, folded and packed for the CPU.

#include <array>
#include <memory>
#include <vector>

#include "tts/engine/manifest.h"

#include "embedding_table.h"
#include "ops/linear.h"
#include "safetensors.h"

namespace tts::model {

// Every linear takes rotated input.
struct GptLayerWeights {
  std::vector<float> input_norm, post_attention_norm;  // [hidden]
  std::unique_ptr<const ops::Linear> qkv;              // hidden -> hidden + 2 * kv_width: queries, keys, values
  std::unique_ptr<const ops::Linear> output;           // hidden -> hidden
  std::unique_ptr<const ops::Linear> gate_up;          // hidden -> intermediate (SwiGLU)
  std::unique_ptr<const ops::Linear> down;             // intermediate -> hidden
};

// Immutable after loading.
struct GptWeights {
  engine::GptSizes sizes;
  std::vector<GptLayerWeights> layers;
  std::vector<float> final_norm;                                  // [hidden]
  EmbeddingTable text_embedding;                                  // [num_text_tokens, hidden]
  std::array<EmbeddingTable, engine::kCodebooks> code_embedding;  // [num_audio_tokens, hidden]
  std::unique_ptr<const ops::Linear> code_head;                   // hidden -> kCodebooks * num_audio_tokens
  std::unique_ptr<const ops::Linear> text_head;  // hidden -> num_text_tokens, in the code head's format; null when the model has none

  ops::WeightFormat format() const noexcept { return layers.front().qkv->format(); }
  ops::WeightFormat head_format() const noexcept { return code_head->format(); }
  std::size_t head_dim() const noexcept { return sizes.hidden_size / sizes.num_attention_heads; }
  std::size_t kv_width() const noexcept { return sizes.num_key_value_heads * head_dim(); }
};

// What our kernels ask of the sizes beyond being positive; empty when they are met.
std::vector<std::string> check_gpt_sizes(const engine::GptSizes& sizes);

// Weights of a linear whose input is rotated (ops::LinearInput): int8 ones are rotated alike, so that products stay what they were; others
// are left alone. `weight` is [outputs, inputs].
std::vector<float> rotate_inputs(ops::WeightFormat format, std::vector<float> weight, std::size_t inputs);

// A weight-normalised matrix made plain: row o = magnitude[o] * direction[o] / |direction[o]|. `direction` is [rows, columns].
std::vector<float> fold_weight_norm(const std::vector<float>& magnitude, const std::vector<float>& direction, std::size_t columns);

// Blocks. Throws std::runtime_error listing everything wrong with either file. `sizes` passed check_gpt_sizes().
GptWeights load_gpt_weights(const engine::GptSizes& sizes, const SafetensorsFile& gpt, const SafetensorsFile& embed,
                            ops::WeightFormat format);

}  // namespace tts::model
