#include "torch/sound_tensors.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include "conv_layers.h"

namespace tts::model {
namespace {

constexpr std::int64_t kTaps = 7, kEmbedKernel = 7, kBlockDilation = 2;
constexpr std::int64_t kOverlap = 4;  // n_fft / hop
constexpr double kMaxMagnitude = 100.0;
constexpr std::uint16_t kZeroCode = 312;  // every digit zero

std::uint64_t size_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

void scale_rows(std::vector<float>& matrix, const std::vector<float>& scale) {
  const std::size_t columns = matrix.size() / scale.size();
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] *= scale[i / columns];
}

at::Tensor vector_of(NetworkBuild& build, const std::string& name, std::int64_t width) {
  return to_tensor(build.reader.get(name, {size_of(width)}), {width}, at::kFloat, build.device);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, kLayerNormEps);
}

// Notes that a layer of `pad` rows on each side remembers rows of `width`.
void remember(NetworkBuild& build, std::int64_t pad, std::int64_t width) {
  build.pad += pad;
  build.values += 2 * pad * width;
}

// [S, before + R, width] -> [S, R, taps, width] without copying: tap t of row r is row r + t * step.
at::Tensor taps_of(const at::Tensor& window, std::int64_t rows, std::int64_t taps, std::int64_t step) {
  const std::int64_t width = window.size(2);
  return window.as_strided({window.size(0), rows, taps, width}, {window.size(1) * width, width, step * width, 1});
}

}  // namespace

SideConvTensors::SideConvTensors(NetworkBuild& build, const std::string& name, std::int64_t inputs, std::int64_t outputs,
                                 std::int64_t kernel, bool with_bias, at::ScalarType type, const std::vector<float>& output_scale)
    : pad(kernel / 2) {
  remember(build, pad, inputs);
  std::vector<float> weight = kernel_major(build.reader.get(name + ".weight", {size_of(outputs), size_of(inputs), size_of(kernel)}),
                                           size_of(outputs), size_of(inputs), size_of(kernel));
  if (!output_scale.empty()) scale_rows(weight, output_scale);
  dense.weight = to_tensor(weight, {outputs, kernel * inputs}, type, build.device);
  if (with_bias) dense.bias = vector_of(build, name + ".bias", outputs).to(type);
}

at::Tensor SideConvTensors::forward(StreamPass& pass, const at::Tensor& x) const {
  const at::Tensor window = pass.look_around(x, pad);
  return dense(taps_of(window, pass.rows(), 2 * pad + 1, 1).flatten(2)).to(at::kFloat);
}

ConvNextTensors::ConvNextTensors(NetworkBuild& build, const std::string& prefix, const std::string& scale_name, std::int64_t width,
                                 std::int64_t inner, std::int64_t layer_dilation)
    : dilation(layer_dilation), pad(layer_dilation * (kTaps / 2)) {
  remember(build, pad, width);
  TensorReader& reader = build.reader;
  taps = to_tensor(reader.get(prefix + ".dwconv.weight", {size_of(width), 1, size_of(kTaps)}), {width, kTaps}, at::kFloat, build.device)
             .t()
             .contiguous();
  bias = vector_of(build, prefix + ".dwconv.bias", width);
  norm_weight = vector_of(build, prefix + ".norm.weight", width);
  norm_bias = vector_of(build, prefix + ".norm.bias", width);
  const auto matrix = [&](const std::vector<float>& values, std::int64_t outputs, std::int64_t inputs) {
    return to_tensor(values, {outputs, inputs}, build.type, build.device);
  };
  wide = {matrix(reader.get(prefix + ".pwconv1.weight", {size_of(inner), size_of(width)}), inner, width),
          vector_of(build, prefix + ".pwconv1.bias", inner).to(build.type)};
  const std::vector<float> scale = reader.get(scale_name, {size_of(width)});
  std::vector<float> weight = reader.get(prefix + ".pwconv2.weight", {size_of(width), size_of(inner)}),
                     narrow_bias = reader.get(prefix + ".pwconv2.bias", {size_of(width)});
  scale_rows(weight, scale);
  scale_rows(narrow_bias, scale);
  narrow = {matrix(weight, width, inner), to_tensor(narrow_bias, {width}, build.type, build.device)};
}

at::Tensor ConvNextTensors::forward(StreamPass& pass, const at::Tensor& x) const {
  const at::Tensor window = pass.look_around(x, pad);
  const at::Tensor mixed = (taps_of(window, pass.rows(), kTaps, dilation) * taps).sum(2).add_(bias);
  const at::Tensor change = narrow(at::gelu(wide(layer_norm(mixed, norm_weight, norm_bias))));
  return window.narrow(1, pad, pass.rows()) + change;
}

MelNetworkTensors::MelNetworkTensors(TensorReader& reader, const engine::ConvStackSizes& sizes, std::int64_t n_mels, at::ScalarType type,
                                     c10::Device device)
    : inputs_(sizes.idim), coef_(reader.get("coef", {1, size_of(n_mels), 1})) {
  NetworkBuild build{.reader = reader, .type = type, .device = device};
  conv_in_.emplace_back(build, "decoder.conv_in.0", sizes.idim, sizes.bn_dim, 3, true, type);
  conv_in_.emplace_back(build, "decoder.conv_in.2", sizes.bn_dim, sizes.hidden, 3, true, type);
  for (std::uint32_t i = 0; i < sizes.n_layer; ++i) {
    const std::string block = "decoder.decoder_block." + std::to_string(i);
    blocks_.emplace_back(build, block, block + ".weight", sizes.hidden, std::int64_t{4} * sizes.hidden, kBlockDilation);
  }
  conv_out_.weight =
      to_tensor(reader.get("decoder.conv_out.weight", {sizes.odim, sizes.hidden, 1}), {sizes.odim, sizes.hidden}, at::kFloat, device);
  out_conv_ = std::make_unique<const SideConvTensors>(build, "out_conv", sizes.odim, n_mels, 3, false, at::kFloat, coef_);
  pad_ = build.pad;
  state_values_ = build.values;
}

at::Tensor MelNetworkTensors::forward(StreamPass& pass, const at::Tensor& x) const {
  at::Tensor y = at::gelu(conv_in_[0].forward(pass, x));
  y = conv_in_[1].forward(pass, y);
  for (const ConvNextTensors& block : blocks_) y = block.forward(pass, y);
  return out_conv_->forward(pass, conv_out_(y));
}

VocosTensors::VocosTensors(TensorReader& reader, const engine::Architecture& architecture, at::ScalarType type, c10::Device device)
    : hop_(architecture.hop) {
  const std::int64_t width = architecture.vocos.dim;
  NetworkBuild build{.reader = reader, .type = type, .device = device};
  embed_ = std::make_unique<const SideConvTensors>(build, "backbone.embed", architecture.n_mels, width, kEmbedKernel, true, at::kFloat);
  norm_weight_ = vector_of(build, "backbone.norm.weight", width);
  norm_bias_ = vector_of(build, "backbone.norm.bias", width);
  for (std::uint32_t i = 0; i < architecture.vocos.num_layers; ++i) {
    const std::string block = "backbone.convnext." + std::to_string(i);
    blocks_.emplace_back(build, block, block + ".gamma", width, architecture.vocos.intermediate_dim, 1);
  }
  final_weight_ = vector_of(build, "backbone.final_layer_norm.weight", width);
  final_bias_ = vector_of(build, "backbone.final_layer_norm.bias", width);
  const std::int64_t n_fft = architecture.n_fft, bins = n_fft / 2 + 1;
  head_ = {to_tensor(reader.get("head.out.weight", {size_of(2 * bins), size_of(width)}), {2 * bins, width}, at::kFloat, device),
           vector_of(build, "head.out.bias", 2 * bins)};
  const std::vector<float> window = reader.get("head.istft.window", {size_of(n_fft)});
  // The analysis half of the feature extractor travels with the file; synthesis has no use for it.
  reader.ignore("feature_extractor.mel_spec.spectrogram.window");
  reader.ignore("feature_extractor.mel_spec.mel_scale.fb");

  std::vector<float> to_time(size_of(2 * bins * n_fft)), squared(window);
  for (std::int64_t k = 0; k < bins; ++k) {
    const double weight = (k == 0 || k == bins - 1 ? 1.0 : 2.0) / static_cast<double>(n_fft);
    for (std::int64_t n = 0; n < n_fft; ++n) {
      const double angle = 2.0 * std::numbers::pi * static_cast<double>(k * n % n_fft) / static_cast<double>(n_fft);
      const double scale = weight * window[size_of(n)];
      to_time[size_of(k * n_fft + n)] = static_cast<float>(scale * std::cos(angle));
      to_time[size_of((bins + k) * n_fft + n)] = static_cast<float>(-scale * std::sin(angle));
    }
  }
  for (float& value : squared) value *= value;
  to_time_ = to_tensor(to_time, {2 * bins, n_fft}, at::kFloat, device);
  window_squared_ = to_tensor(squared, {kOverlap, hop_}, at::kFloat, device);
  pad_ = build.pad;
  state_values_ = build.values + (kOverlap - 1) * n_fft;
}

at::Tensor VocosTensors::forward(StreamPass& pass, const at::Tensor& mel) const {
  at::Tensor y = layer_norm(embed_->forward(pass, mel), norm_weight_, norm_bias_);
  for (const ConvNextTensors& block : blocks_) y = block.forward(pass, y);
  y = head_(layer_norm(y, final_weight_, final_bias_));
  const std::int64_t bins = y.size(2) / 2;
  const at::Tensor magnitude = y.narrow(2, 0, bins).exp().clamp_max_(kMaxMagnitude), phase = y.narrow(2, bins, bins);
  return overlap_add(pass, at::matmul(at::cat({magnitude * phase.cos(), magnitude * phase.sin()}, 2), to_time_));
}

at::Tensor VocosTensors::overlap_add(StreamPass& pass, const at::Tensor& frames) const {
  const std::int64_t streams = pass.streams(), rows = pass.rows(), earlier = kOverlap - 1;
  const at::Tensor window = pass.look_back(frames, earlier).view({streams, earlier + rows, kOverlap, hop_});
  at::Tensor sum = window.select(2, 0).narrow(1, earlier, rows);
  for (std::int64_t age = 1; age < kOverlap; ++age) sum = sum + window.select(2, age).narrow(1, earlier - age, rows);
  const at::Tensor frame = pass.frame().unsqueeze(2) - at::arange(kOverlap, pass.frame().options());
  const at::Tensor envelope = at::matmul(pass.exists(frame.flatten(1)).view_as(frame).to(at::kFloat), window_squared_);
  return sum / envelope;
}

at::Tensor CodeTable::embed(const at::Tensor& frames) const {
  const at::Tensor row = frames + at::arange(frames.size(1), frames.options()) * codes;
  return rows.index_select(0, row.flatten()).view({frames.size(0), frames.size(1), -1}).sum(1) + bias;
}

namespace {

CodeTable make_code_table(const Gfsq& quantizer, c10::Device device) {
  // The embedding is linear in the codes' digits, so a code's row is what it adds to that of the code with every digit zero.
  constexpr std::size_t kRows = Gfsq::kCodes + 1;
  const std::size_t dim = quantizer.dim();
  engine::CodeFrame zero;
  zero.fill(kZeroCode);
  std::vector<float> bias(dim), rows(engine::kCodebooks * kRows * dim);
  quantizer.embed(zero, bias.data());
  for (std::size_t q = 0; q < engine::kCodebooks; ++q) {
    for (std::size_t code = 0; code < Gfsq::kCodes; ++code) {
      engine::CodeFrame frame = zero;
      frame[q] = static_cast<std::uint16_t>(code);
      float* const row = rows.data() + (q * kRows + code) * dim;
      quantizer.embed(frame, row);
      for (std::size_t d = 0; d < dim; ++d) row[d] -= bias[d];
    }
  }
  const auto columns = static_cast<std::int64_t>(dim);
  return {.rows = to_tensor(rows, {static_cast<std::int64_t>(engine::kCodebooks * kRows), columns}, at::kFloat, device),
          .bias = to_tensor(bias, {columns}, at::kFloat, device),
          .codes = kRows};
}

// Runs `load` on one file and notes what is wrong with it, so that all files can be reported together.
template <class Load>
void load_file(const engine::Manifest& manifest, const std::string& role, bool verify_hash, std::string& problems, Load&& load) {
  try {
    const auto entry = manifest.files.find(role);
    if (entry == manifest.files.end()) throw std::runtime_error("the manifest names no file for '" + role + "'");
    const SafetensorsFile file(entry->second.path);
    if (verify_hash) file.require_sha256(entry->second.sha256);
    TensorReader reader(file);
    load(reader);
    reader.finish();
  } catch (const std::runtime_error& error) {
    problems.append("\n  ").append(error.what());
  }
}

}  // namespace

SoundTensors load_sound_tensors(const engine::Manifest& manifest, at::ScalarType type, c10::Device device, bool verify_hashes) {
  const engine::Architecture& sizes = manifest.architecture;
  std::string problems;
  std::optional<MelNetworkTensors> decoder, dvae_decoder;
  std::optional<VocosTensors> vocos;
  std::optional<Gfsq> quantizer;
  std::optional<ReferenceEncoder> encoder;
  load_file(manifest, "decoder", verify_hashes, problems,
            [&](TensorReader& reader) { decoder.emplace(reader, sizes.decoder, sizes.n_mels, type, device); });
  load_file(manifest, "dvae", verify_hashes, problems, [&](TensorReader& reader) {
    dvae_decoder.emplace(reader, sizes.dvae_decoder, sizes.n_mels, type, device);
    quantizer.emplace(reader, sizes.quantizer);
    encoder.emplace(reader, sizes, dvae_decoder->coef());
  });
  load_file(manifest, "vocos", verify_hashes, problems, [&](TensorReader& reader) { vocos.emplace(reader, sizes, type, device); });
  if (!problems.empty()) throw std::runtime_error("cannot load the sound model:" + problems);
  CodeTable table = make_code_table(*quantizer, device);
  return {*std::move(decoder), *std::move(dvae_decoder), *std::move(vocos), std::move(table), *std::move(quantizer), *std::move(encoder)};
}

}  // namespace tts::model
