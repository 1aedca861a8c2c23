#include "mel_network.h"

#include <algorithm>

namespace tts::model {
namespace {

constexpr std::size_t kBlockDilation = 2;

}  // namespace

std::size_t ConvStack::max_width(const engine::ConvStackSizes& sizes) noexcept {
  return std::max({sizes.idim, sizes.bn_dim, sizes.hidden, sizes.odim});
}

ConvStack::ConvStack(TensorReader& reader, const std::string& prefix, const engine::ConvStackSizes& sizes, ops::WeightFormat format,
                     ContextSpecs& contexts) {
  conv_in_.emplace_back(reader,
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
                                               .format = format},
                         contexts);
  }
  const std::vector<float> out = reader.get(prefix + ".conv_out.weight", {sizes.odim, sizes.hidden, 1});
  conv_out_ = ops::make_linear(format, out.data(), sizes.odim, sizes.hidden);
}

void ConvStack::forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const {
  for (const WindowConv& conv : conv_in_) conv.forward(pool, rows, states);
  for (const ConvNextBlock& block : blocks_) block.forward(pool, rows, states);
  rows.linear(pool, *conv_out_, ops::Activation::kNone);
}

MelNetwork::MelNetwork(TensorReader& reader, const engine::ConvStackSizes& sizes, std::size_t n_mels, ops::WeightFormat format)
    : sizes_(sizes),
      n_mels_(n_mels),
      coef_(reader.get("coef", {1, n_mels, 1})),
      stack_(reader, "decoder", sizes, format, contexts_),
      out_conv_(reader,
                WindowConv::Config{
                    .name = "out_conv", .inputs = sizes.odim, .outputs = n_mels, .bias = false, .format = format, .output_scale = coef_},
                contexts_) {}

void MelNetwork::forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const {
  stack_.forward(pool, rows, states);
  out_conv_.forward(pool, rows, states);
}

}  // namespace tts::model
