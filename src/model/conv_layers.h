#pragma once
// The layers that Decoder, DVAE and Vocos are made of, on [frame, channel] rows, for several streams at once.
// All convolutions are centred and zero-padded at both ends of an utterance. Weights are immutable after loading.
//
// In bfloat16 the matrices of the ConvNeXt blocks are rounded. What leads into and out of them is precise (SoundLinear), and so is the first
// matrix of the blocks next to the log-mel: a tenth of the weights, and most of what rounding would cost
// (src/docs/decisions/streaming_decode.md).

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/linear.h"
#include "safetensors.h"
#include "sound_linear.h"
#include "stream_rows.h"

namespace tts::model {

inline constexpr float kLayerNormEps = 1e-6F;

// Blocks on either side of the log-mel that are `precise`.
inline constexpr std::uint32_t kPreciseBlocks = 2;

// Collects, while a network is loaded, what each of its layers keeps for a stream.
using ContextSpecs = std::vector<ContextSpec>;

// Sum of the layers' padding: rows of lookahead, and rows that a flush adds.
std::size_t total_pad(std::span<const ContextSpec> layers) noexcept;
// The largest.
std::size_t max_pad(std::span<const ContextSpec> layers) noexcept;

// Conv1d of odd width without dilation.
class WindowConv {
 public:
  struct Config {
    std::string name;  // "<name>.weight" [outputs, inputs, kernel] and "<name>.bias"
    std::size_t inputs = 0, outputs = 0, kernel = 3;
    ops::Activation activation = ops::Activation::kNone;
    ops::WeightFormat format = ops::WeightFormat::kFloat32;
  };

  WindowConv(TensorReader& reader, const Config& config, ContextSpecs& contexts);
  // `weight` is [outputs, kernel, inputs]; no bias.
  WindowConv(std::span<const float> weight, std::size_t outputs, std::size_t kernel, ops::WeightFormat format, ContextSpecs& contexts);

  void forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const;

 private:
  std::size_t layer_;
  ops::Activation activation_;
  SoundLinear linear_;
};

// x + scale * (Linear(GELU(Linear(LayerNorm(depthwise7(x)))))).
class ConvNextBlock {
 public:
  struct Config {
    std::string prefix;      // "<prefix>.dwconv.weight", ...
    std::string scale_name;  // full name of the layer scale
    std::size_t width = 0, inner = 0, dilation = 1;
    ops::WeightFormat format = ops::WeightFormat::kFloat32;
    bool precise = false;  // the first matrix too
  };

  ConvNextBlock(TensorReader& reader, const Config& config, ContextSpecs& contexts);
  void forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const;

 private:
  std::size_t layer_, width_, dilation_;
  std::vector<float> depthwise_weight_, depthwise_bias_;  // [7][width], [width]
  std::vector<float> norm_weight_, norm_bias_;
  SoundLinear wide_;
  std::unique_ptr<const ops::Linear> narrow_;  // with the layer scale
};

// LayerNorm over channels.
class ChannelNorm {
 public:
  ChannelNorm(TensorReader& reader, const std::string& prefix, std::size_t width);
  void forward(ops::ComputePool& pool, StreamRows& rows) const;
  void apply(const float* in, float* out) const;  // to one row

 private:
  std::vector<float> weight_, bias_;
};

// Weight [outputs, inputs, kernel] of a Conv1d as [outputs, kernel * inputs]: the order of contiguous [frame, channel] rows.
std::vector<float> kernel_major(std::span<const float> weight, std::size_t outputs, std::size_t inputs, std::size_t kernel);

}  // namespace tts::model
