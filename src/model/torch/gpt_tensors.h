#pragma once
// The language model's weights as tensors on the devices that a plan names.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tts/engine/manifest.h"

#include "embedding_table.h"
#include "safetensors.h"
#include "torch/device_plan.h"
#include "torch/tensor_load.h"

namespace tts::model {

inline constexpr std::int64_t kPositionUnit = 64;  // lanes of the cache are whole units long: attention kernels like aligned lengths

struct TensorFormats {
  at::ScalarType compute = at::kFloat;  // of the layers' products; the heads are float32: tokens are told apart by small differences
  bool int8_weights = false;            // the layers' matrices, symmetric per output channel; products stay in `compute`
  at::ScalarType kv = at::kFloat;       // of keys, values and attention
  at::ScalarType sound = at::kFloat;    // see sound_tensors.h
};

c10::Device to_device(DeviceName name);

// y = x Wt. int8 weights enter the product as whole numbers (times a power of two that keeps half precision in range), so nothing is
// rounded twice; the rest of the scale is applied to the result.
class TensorLinear {
 public:
  TensorLinear() = default;
  TensorLinear(std::span<const float> weight, std::int64_t outputs, std::int64_t inputs, const TensorFormats& formats, c10::Device device);

  at::Tensor operator()(const at::Tensor& x) const;  // in the compute type, or float32 with int8 weights

 private:
  at::Tensor weight_;  // [outputs, inputs]; compute type or int8
  at::Tensor power_;   // [outputs, 1], compute type; int8 only
  at::Tensor scale_;   // [outputs], float32; int8 only
  at::ScalarType compute_ = at::kFloat;
};

// Queries and keys have their pairs (x[j], x[j + dim / 2]) side by side, which changes no product of the two and makes the rotary code
// a product of complex numbers.
struct GptLayerTensors {
  at::Tensor input_norm, post_attention_norm;  // [hidden], float32
  TensorLinear qkv;                            // hidden -> hidden + 2 * kv_width: queries, keys, values
  TensorLinear output;                         // hidden -> hidden
  TensorLinear gate_up;                        // hidden -> 2 * intermediate: gate, up
  TensorLinear down;                           // intermediate -> hidden
};

// Immutable after loading; engines on the same devices share it.
struct GptTensors {
  engine::GptSizes sizes;
  TensorFormats formats;
  std::vector<LayerRange> placement;
  c10::Device primary = c10::kCPU;  // where everything but the layers is
  std::vector<GptLayerTensors> layers;
  at::Tensor final_norm;   // [hidden]
  DenseTensors code_head;  // hidden -> codebooks * num_audio_tokens
  DenseTensors text_head;  // hidden -> num_text_tokens
  bool has_text_head = false;
  at::Tensor code_embedding;  // [codebooks * num_audio_tokens, hidden], float32
  at::Tensor text_embedding;  // [num_text_tokens, hidden], float32; only with a text head
  EmbeddingTable text_rows;   // the same on the host, for prompts
  std::vector<EmbeddingTable> code_rows;

  std::int64_t hidden() const { return sizes.hidden_size; }
  std::int64_t head_dim() const { return sizes.hidden_size / sizes.num_attention_heads; }
  std::int64_t kv_width() const { return sizes.num_key_value_heads * head_dim(); }
};

// For the planner, of one engine with `slots` utterances of `positions`; `engines` share the weights.
ModelBytes estimate_bytes(const engine::Architecture& architecture, bool text_head, const TensorFormats& formats, std::uint64_t slots,
                          std::uint64_t positions, std::uint64_t engines);

// Blocks. Throws std::runtime_error listing everything wrong with either file. `sizes` passed check_gpt_sizes().
GptTensors load_gpt_tensors(const engine::GptSizes& sizes, const SafetensorsFile& gpt, const SafetensorsFile& embed,
                            const TensorFormats& formats, std::vector<LayerRange> placement, c10::Device primary);

}  // namespace tts::model
