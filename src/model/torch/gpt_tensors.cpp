#include "torch/gpt_tensors.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>

#include "gpt_weights.h"

namespace tts::model {
namespace {

constexpr float kMaxInt8 = 127.0F;

std::uint64_t size_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// Rows of each head from (first half, second half) to pairs.
std::vector<float> pair_rows(const std::vector<float>& matrix, std::size_t inputs, std::size_t dim) {
  std::vector<float> out(matrix.size());
  const std::size_t half = dim / 2;
  for (std::size_t row = 0; row < matrix.size() / inputs; ++row) {
    const std::size_t in_head = row % dim, paired = row - in_head + (in_head % 2) * half + in_head / 2;
    std::copy_n(matrix.begin() + static_cast<std::ptrdiff_t>(paired * inputs), inputs,
                out.begin() + static_cast<std::ptrdiff_t>(row * inputs));
  }
  return out;
}

void append(std::vector<float>& to, const std::vector<float>& part) { to.insert(to.end(), part.begin(), part.end()); }

class Loader {
 public:
  Loader(const engine::GptSizes& sizes, const SafetensorsFile& gpt, const SafetensorsFile& embed, const TensorFormats& formats)
      : sizes_(sizes), formats_(formats), gpt_(gpt), embed_(embed), hidden_(sizes.hidden_size), inner_(sizes.intermediate_size) {
    gpt_.ignore("embed_tokens.weight");  // some exports carry it; the model has embeddings of its own
  }

  GptLayerTensors layer(std::uint32_t index, c10::Device device) {
    const std::uint64_t hidden = size_of(hidden_), inner = size_of(inner_), dim = hidden / sizes_.num_attention_heads,
                        kv = dim * sizes_.num_key_value_heads;
    const std::string prefix = "layers." + std::to_string(index) + ".";
    const auto linear = [&](const std::vector<float>& weight, std::int64_t inputs) {
      return TensorLinear(weight, static_cast<std::int64_t>(weight.size()) / inputs, inputs, formats_, device);
    };
    const auto get = [&](const char* name, std::uint64_t outputs, std::uint64_t inputs) {
      return gpt_.get(prefix + name, {outputs, inputs});
    };

    std::vector<float> qkv = pair_rows(get("self_attn.q_proj.weight", hidden, hidden), hidden, dim);
    append(qkv, pair_rows(get("self_attn.k_proj.weight", kv, hidden), hidden, dim));
    append(qkv, get("self_attn.v_proj.weight", kv, hidden));
    std::vector<float> gate_up = get("mlp.gate_proj.weight", inner, hidden);
    append(gate_up, get("mlp.up_proj.weight", inner, hidden));
    return {.input_norm = to_tensor(gpt_.get(prefix + "input_layernorm.weight", {hidden}), {hidden_}, at::kFloat, device),
            .post_attention_norm = to_tensor(gpt_.get(prefix + "post_attention_layernorm.weight", {hidden}), {hidden_}, at::kFloat, device),
            .qkv = linear(qkv, hidden_),
            .output = linear(get("self_attn.o_proj.weight", hidden, hidden), hidden_),
            .gate_up = linear(gate_up, hidden_),
            .down = linear(get("mlp.down_proj.weight", hidden, inner), inner_)};
  }

  void rest(GptTensors& model) {
    const std::uint64_t hidden = size_of(hidden_);
    const std::int64_t codes = sizes_.num_audio_tokens, texts = sizes_.num_text_tokens;
    model.final_norm = to_tensor(gpt_.get("norm.weight", {hidden}), {hidden_}, at::kFloat, model.primary);
    std::vector<float> code_embedding, code_head;
    for (std::size_t q = 0; q < engine::kCodebooks; ++q) {
      std::vector<float> rows = embed_.get("emb_code." + std::to_string(q) + ".weight", {size_of(codes), hidden});
      append(code_embedding, rows);
      append(code_head, head("head_code." + std::to_string(q), codes));
      model.code_rows.emplace_back(std::move(rows), hidden, ops::WeightFormat::kFloat32);
    }
    const auto rows_of = [](std::int64_t count) { return static_cast<std::int64_t>(engine::kCodebooks) * count; };
    model.code_embedding = to_tensor(code_embedding, {rows_of(codes), hidden_}, at::kFloat, model.primary);
    model.code_head.weight = to_tensor(code_head, {rows_of(codes), hidden_}, at::kFloat, model.primary);

    std::vector<float> text_embedding = embed_.get("emb_text.weight", {size_of(texts), hidden});
    model.has_text_head = embed_.contains("head_text.parametrizations.weight.original0");
    if (model.has_text_head) {
      model.text_head.weight = to_tensor(head("head_text", texts), {texts, hidden_}, at::kFloat, model.primary);
      model.text_embedding = to_tensor(text_embedding, {texts, hidden_}, at::kFloat, model.primary);
    }
    model.text_rows = EmbeddingTable(std::move(text_embedding), hidden, ops::WeightFormat::kFloat32);
  }

  void finish() const {
    std::string problems;
    for (const TensorReader* reader : {&gpt_, &embed_}) {
      try {
        reader->finish();
      } catch (const std::runtime_error& error) {
        if (!problems.empty()) problems += '\n';
        problems += error.what();
      }
    }
    if (!problems.empty()) throw std::runtime_error(problems);
  }

 private:
  std::vector<float> head(const std::string& name, std::int64_t rows) {
    const std::string prefix = name + ".parametrizations.weight.original";
    const std::vector<float> magnitude = embed_.get(prefix + "0", {size_of(rows), 1});
    return fold_weight_norm(magnitude, embed_.get(prefix + "1", {size_of(rows), size_of(hidden_)}), size_of(hidden_));
  }

  const engine::GptSizes& sizes_;
  const TensorFormats& formats_;
  TensorReader gpt_, embed_;
  std::int64_t hidden_, inner_;
};

}  // namespace

c10::Device to_device(DeviceName name) {
  return name.gpu ? c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(name.index)) : c10::Device(c10::kCPU);
}

TensorLinear::TensorLinear(std::span<const float> weight, std::int64_t outputs, std::int64_t inputs, const TensorFormats& formats,
                           c10::Device device)
    : compute_(formats.compute) {
  if (!formats.int8_weights) {
    weight_ = to_tensor(weight, {outputs, inputs}, compute_, device);
    return;
  }
  std::vector<std::int8_t> quantised(weight.size());
  std::vector<float> power(size_of(outputs)), scale(size_of(outputs));
  for (std::size_t o = 0; o < power.size(); ++o) {
    const std::span<const float> row = weight.subspan(o * size_of(inputs), size_of(inputs));
    float largest = 0;
    for (const float value : row) largest = std::max(largest, std::abs(value));
    const float step = largest > 0 ? largest / kMaxInt8 : 1.0F;
    for (std::size_t i = 0; i < row.size(); ++i) quantised[o * row.size() + i] = static_cast<std::int8_t>(std::lround(row[i] / step));
    int exponent = 0;
    scale[o] = std::frexp(step, &exponent);
    power[o] = std::ldexp(1.0F, exponent);
  }
  weight_ =
      at::from_blob(quantised.data(), {outputs, inputs}, at::kChar).to(at::TensorOptions().device(device).dtype(at::kChar), false, true);
  power_ = to_tensor(power, {outputs, 1}, compute_, device);
  scale_ = to_tensor(scale, {outputs}, at::kFloat, device);
}

at::Tensor TensorLinear::operator()(const at::Tensor& x) const {
  const at::Tensor input = x.to(compute_);
  if (!scale_.defined()) return at::linear(input, weight_);
  return at::linear(input, at::mul(weight_, power_)) * scale_;
}

ModelBytes estimate_bytes(const engine::Architecture& architecture, bool text_head, const TensorFormats& formats, std::uint64_t slots,
                          std::uint64_t positions, std::uint64_t engines) {
  constexpr std::uint64_t kFloat = 4;
  const engine::GptSizes& gpt = architecture.gpt;
  const std::uint64_t hidden = gpt.hidden_size, inner = gpt.intermediate_size,
                      kv = hidden / gpt.num_attention_heads * gpt.num_key_value_heads;
  const std::uint64_t weight = formats.int8_weights ? 1 : c10::elementSize(formats.compute), sound = c10::elementSize(formats.sound);
  const std::uint64_t layer = hidden * (2 * hidden + 2 * kv) + 3 * hidden * inner;
  const std::uint64_t lane = (positions + kPositionUnit - 1) / kPositionUnit * kPositionUnit + 1;

  const auto stack = [](const engine::ConvStackSizes& sizes) {
    return sizes.n_layer * std::uint64_t{8} * sizes.hidden * sizes.hidden + std::uint64_t{3} * sizes.bn_dim * (sizes.idim + sizes.hidden);
  };
  const engine::VocosSizes& vocos = architecture.vocos;
  const std::uint64_t blocks = stack(architecture.decoder) + stack(architecture.dvae_decoder) +
                               vocos.num_layers * std::uint64_t{2} * vocos.dim * vocos.intermediate_dim;
  const std::uint64_t transform = std::uint64_t{architecture.n_fft + 2} * (architecture.n_fft + vocos.dim);
  const std::uint64_t codes = engine::kCodebooks * std::uint64_t{gpt.num_audio_tokens} * hidden,
                      texts = text_head ? std::uint64_t{gpt.num_text_tokens} * hidden : 0;

  // One step's activations of every slot, generously, and the largest layer's weights widened for a product.
  const std::uint64_t scratch = slots * (16 * (hidden + inner) + 64 * std::uint64_t{gpt.num_audio_tokens} * engine::kCodebooks) * kFloat +
                                (formats.int8_weights ? 2 * hidden * inner * c10::elementSize(formats.compute) : 0) +
                                (std::uint64_t{64} << 20);
  const std::uint64_t stream_state = 24 * std::uint64_t{architecture.decoder.hidden + vocos.dim} * 12 * kFloat;
  return {.layers = gpt.num_hidden_layers,
          .layer = layer * weight + engines * slots * lane * 2 * kv * c10::elementSize(formats.kv),
          .common = (codes + texts) * 2 * kFloat + blocks * sound + transform * kFloat + engines * (scratch + slots * stream_state),
          .scratch = engines * scratch};
}

GptTensors load_gpt_tensors(const engine::GptSizes& sizes, const SafetensorsFile& gpt, const SafetensorsFile& embed,
                            const TensorFormats& formats, std::vector<LayerRange> placement, c10::Device primary) {
  GptTensors model;
  model.sizes = sizes;
  model.formats = formats;
  model.placement = std::move(placement);
  model.primary = primary;
  Loader loader(model.sizes, gpt, embed, model.formats);
  for (const LayerRange& range : model.placement) {
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i)
      model.layers.push_back(loader.layer(i, to_device(range.device)));
  }
  loader.rest(model);
  loader.finish();
  return model;
}

}  // namespace tts::model
