#pragma once
// ConvNeXt stacks of the DVAE class (model spec: Decoder, DVAE decode, DVAE encode).

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tts/engine/manifest.h"

#include "conv_layers.h"

namespace tts::model {

// Conv 3 -> GELU -> Conv 3 -> blocks (depthwise 7, dilation 2): rows of `idim` channels to rows of `hidden`.
class ConvStack {
 public:
  // Tensors are named `prefix`.conv_in.0.weight and so on.
  ConvStack(TensorReader& reader, const std::string& prefix, const engine::ConvStackSizes& sizes, ops::WeightFormat format,
            ContextSpecs& contexts);
  void forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const;

  static std::size_t max_width(const engine::ConvStackSizes& sizes) noexcept;
  static std::size_t max_inner(const engine::ConvStackSizes& sizes) noexcept { return std::size_t{4} * sizes.hidden; }

 private:
  std::vector<WindowConv> conv_in_;
  std::vector<ConvNextBlock> blocks_;
};

// ConvStack "decoder" -> pointwise -> Conv 3 "out_conv" -> scale by "coef": rows of `idim` channels to log-mel rows.
class MelNetwork {
 public:
  MelNetwork(TensorReader& reader, const engine::ConvStackSizes& sizes, std::size_t n_mels, ops::WeightFormat format);

  // Input rows: two frames of a step lie one behind the other, so a row of 2 * idim channels is two rows.
  void forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const;

  std::size_t inputs() const noexcept { return sizes_.idim; }
  std::size_t max_width() const noexcept { return std::max(ConvStack::max_width(sizes_), n_mels_); }
  std::size_t max_inner() const noexcept { return ConvStack::max_inner(sizes_); }
  std::span<const ContextSpec> contexts() const noexcept { return contexts_; }
  std::span<const float> coef() const noexcept { return coef_; }  // [n_mels]

 private:
  engine::ConvStackSizes sizes_;
  std::size_t n_mels_;
  ContextSpecs contexts_;
  std::vector<float> coef_;
  ConvStack stack_;
  WindowConv output_;
};

}  // namespace tts::model
