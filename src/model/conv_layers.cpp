#include "conv_layers.h"

#include <algorithm>

#include "ops/depthwise_norm.h"
#include "ops/kernels.h"

namespace tts::model {
namespace {

constexpr std::size_t kDepthwiseKernel = 7;

std::size_t add_context(ContextSpecs& contexts, std::size_t pad, std::size_t width) {
  contexts.push_back({pad, width});
  return contexts.size() - 1;
}

void scale_rows(std::vector<float>& matrix, std::span<const float> scale) {
  const std::size_t columns = matrix.size() / scale.size();
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] *= scale[i / columns];
}

}  // namespace

std::size_t total_pad(std::span<const ContextSpec> layers) noexcept {
  std::size_t sum = 0;
  for (const ContextSpec& layer : layers) sum += layer.pad;
  return sum;
}

std::size_t max_pad(std::span<const ContextSpec> layers) noexcept {
  std::size_t pad = 0;
  for (const ContextSpec& layer : layers) pad = std::max(pad, layer.pad);
  return pad;
}

std::vector<float> kernel_major(std::span<const float> weight, std::size_t outputs, std::size_t inputs, std::size_t kernel) {
  std::vector<float> out(weight.size());
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t i = 0; i < inputs; ++i) {
      for (std::size_t k = 0; k < kernel; ++k) out[(o * kernel + k) * inputs + i] = weight[(o * inputs + i) * kernel + k];
    }
  }
  return out;
}

WindowConv::WindowConv(TensorReader& reader, const Config& config, ContextSpecs& contexts)
    : layer_(add_context(contexts, config.kernel / 2, config.inputs)),
      activation_(config.activation),
      linear_(config.format, SoundLinear::Grade::kPrecise,
              kernel_major(reader.get(config.name + ".weight", {config.outputs, config.inputs, config.kernel}), config.outputs,
                           config.inputs, config.kernel),
              config.outputs, config.kernel, reader.get(config.name + ".bias", {config.outputs})) {}

WindowConv::WindowConv(std::span<const float> weight, std::size_t outputs, std::size_t kernel, ops::WeightFormat format,
                       ContextSpecs& contexts)
    : layer_(add_context(contexts, kernel / 2, weight.size() / outputs / kernel)),
      activation_(ops::Activation::kNone),
      linear_(format, SoundLinear::Grade::kPrecise, weight, outputs, kernel) {}

void WindowConv::forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const {
  rows.window_linear(pool, states, layer_, linear_, activation_);
}

ConvNextBlock::ConvNextBlock(TensorReader& reader, const Config& config, ContextSpecs& contexts)
    : layer_(add_context(contexts, config.dilation * (kDepthwiseKernel / 2), config.width)),
      width_(config.width),
      dilation_(config.dilation),
      wide_(config.format, config.precise ? SoundLinear::Grade::kPrecise : SoundLinear::Grade::kRounded,
            reader.get(config.prefix + ".pwconv1.weight", {config.inner, width_}), config.inner, 1,
            reader.get(config.prefix + ".pwconv1.bias", {config.inner})) {
  const std::vector<float> depthwise = reader.get(config.prefix + ".dwconv.weight", {width_, 1, kDepthwiseKernel});
  depthwise_weight_.resize(depthwise.size());
  for (std::size_t c = 0; c < width_; ++c) {
    for (std::size_t k = 0; k < kDepthwiseKernel; ++k) depthwise_weight_[k * width_ + c] = depthwise[c * kDepthwiseKernel + k];
  }
  depthwise_bias_ = reader.get(config.prefix + ".dwconv.bias", {width_});
  norm_weight_ = reader.get(config.prefix + ".norm.weight", {width_});
  norm_bias_ = reader.get(config.prefix + ".norm.bias", {width_});

  std::vector<float> narrow = reader.get(config.prefix + ".pwconv2.weight", {width_, config.inner});
  std::vector<float> narrow_bias = reader.get(config.prefix + ".pwconv2.bias", {width_});
  const std::vector<float> scale = reader.get(config.scale_name, {width_});
  scale_rows(narrow, scale);
  scale_rows(narrow_bias, scale);
  narrow_ = ops::make_linear(config.format, narrow.data(), width_, config.inner, narrow_bias.data());
}

void ConvNextBlock::forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const {
  const ops::DepthwiseNorm layer{.weight = depthwise_weight_.data(),
                                 .bias = depthwise_bias_.data(),
                                 .norm_weight = norm_weight_.data(),
                                 .norm_bias = norm_bias_.data(),
                                 .channels = width_,
                                 .dilation = dilation_,
                                 .eps = kLayerNormEps};
  rows.residual_block(pool, states, layer_, wide_, *narrow_,
                      [&](const float* const* around, std::size_t count, ops::LinearInput& input, std::size_t first) {
                        const bool round = input.format() == ops::WeightFormat::kBfloat16 && wide_.terms() == 1;
                        ops::depthwise_norm(layer, around, count, input.row(first), input.width(), round ? input.bfloats(first) : nullptr);
                        for (std::size_t r = first; !round && r < first + count; ++r) wide_.commit_row(input, r, input.row(r));
                      });
}

ChannelNorm::ChannelNorm(TensorReader& reader, const std::string& prefix, std::size_t width)
    : weight_(reader.get(prefix + ".weight", {width})), bias_(reader.get(prefix + ".bias", {width})) {}

void ChannelNorm::apply(const float* in, float* out) const {
  ops::layer_norm(in, weight_.data(), bias_.data(), kLayerNormEps, weight_.size(), out);
}

void ChannelNorm::forward(ops::ComputePool& pool, StreamRows& rows) const {
  rows.map_rows(pool, weight_.size(), [this](const float* in, float* out, std::uint32_t) { apply(in, out); });
}

}  // namespace tts::model
