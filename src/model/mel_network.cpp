#include "mel_network.h"

#include <algorithm>

namespace tts::model {
namespace {

constexpr std::size_t kBlockDilation = 2, kOutputKernel = 3;

// out_conv(conv_out(x)) as one convolution, [n_mels, kernel, hidden]: nothing stands between the two, and neither has a bias that would
// tell padding apart from silence.
std::vector<float> fold_output(TensorReader& reader, const engine::ConvStackSizes& sizes, std::size_t n_mels, std::span<const float> coef) {
  const std::vector<float> inner = reader.get("decoder.conv_out.weight", {sizes.odim, sizes.hidden, 1});
  const std::vector<float> outer =
      kernel_major(reader.get("out_conv.weight", {n_mels, sizes.odim, kOutputKernel}), n_mels, sizes.odim, kOutputKernel);
  std::vector<float> folded;
  std::vector<double> row(sizes.hidden);
  for (std::size_t tap = 0; tap < n_mels * kOutputKernel; ++tap) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t o = 0; o < sizes.odim; ++o) {
      const double factor = outer[tap * sizes.odim + o];
      for (std::size_t i = 0; i < sizes.hidden; ++i) row[i] += factor * inner[o * sizes.hidden + i];
    }
    for (const double value : row) folded.push_back(static_cast<float>(value * coef[tap / kOutputKernel]));
  }
  return folded;
}

}  // namespace

std::size_t ConvStack::max_width(const engine::ConvStackSizes& sizes) noexcept {
  return std::max({sizes.idim, sizes.bn_dim, sizes.hidden});
}

ConvStack::ConvStack(TensorReader& reader, const std::string& prefix, const engine::ConvStackSizes& sizes, ops::WeightFormat format,
                     ContextSpecs& contexts) {
  conv_in_.emplace_back(
      reader,
      WindowConv::Config{.name = prefix + ".conv_in.0",
                         .inputs = sizes.idim,
                         .outputs = sizes.bn_dim,
                         .activation = ops::Activation::kGelu,
                         .format = format},
      contexts);
  conv_in_.emplace_back(
      reader, WindowConv::Config{.name = prefix + ".conv_in.2", .inputs = sizes.bn_dim, .outputs = sizes.hidden, .format = format},
      contexts);
  for (std::uint32_t i = 0; i < sizes.n_layer; ++i) {
    const std::string block = prefix + ".decoder_block." + std::to_string(i);
    blocks_.emplace_back(reader,
                         ConvNextBlock::Config{.prefix = block,
                                               .scale_name = block + ".weight",
                                               .width = sizes.hidden,
                                               .inner = max_inner(sizes),
                                               .dilation = kBlockDilation,
                                               .format = format,
                                               .precise = i + kPreciseBlocks >= sizes.n_layer},
                         contexts);
  }
}

void ConvStack::forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const {
  for (const WindowConv& conv : conv_in_) conv.forward(pool, rows, states);
  for (const ConvNextBlock& block : blocks_) block.forward(pool, rows, states);
}

MelNetwork::MelNetwork(TensorReader& reader, const engine::ConvStackSizes& sizes, std::size_t n_mels, ops::WeightFormat format)
    : sizes_(sizes),
      n_mels_(n_mels),
      coef_(reader.get("coef", {1, n_mels, 1})),
      stack_(reader, "decoder", sizes, format, contexts_),
      output_(fold_output(reader, sizes, n_mels, coef_), n_mels, kOutputKernel, format, contexts_) {}

void MelNetwork::forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const {
  stack_.forward(pool, rows, states);
  output_.forward(pool, rows, states);
}

}  // namespace tts::model
