#include "vocos.h"

#include <algorithm>
#include <string>

namespace tts::model {
namespace {

constexpr std::size_t kEmbedKernel = 7;

std::size_t spectrum_width(const engine::Architecture& architecture) { return std::size_t{architecture.n_fft} + 2; }

}  // namespace

Vocos::Vocos(TensorReader& reader, const engine::Architecture& architecture, ops::WeightFormat format)
    : sizes_(architecture.vocos),
      n_mels_(architecture.n_mels),
      hop_(architecture.hop),
      embed_(
          reader,
          WindowConv::Config{.name = "backbone.embed", .inputs = n_mels_, .outputs = sizes_.dim, .kernel = kEmbedKernel, .format = format},
          contexts_),
      norm_(reader, "backbone.norm", sizes_.dim),
      final_norm_(reader, "backbone.final_layer_norm", sizes_.dim),
      head_(format, SoundLinear::Grade::kPrecise, reader.get("head.out.weight", {spectrum_width(architecture), sizes_.dim}),
            spectrum_width(architecture), 1, reader.get("head.out.bias", {spectrum_width(architecture)})) {
  for (std::uint32_t i = 0; i < sizes_.num_layers; ++i) {
    const std::string block = "backbone.convnext." + std::to_string(i);
    blocks_.emplace_back(
        reader,
        ConvNextBlock::Config{.prefix = block,
                              .scale_name = block + ".gamma",
                              .width = sizes_.dim,
                              .inner = sizes_.intermediate_dim,
                              .format = format,
                              .precise = i < kPreciseBlocks},
        contexts_);
  }
  window_ = reader.get("head.istft.window", {architecture.n_fft});
  // The analysis half of the feature extractor travels with the file; synthesis has no use for it.
  reader.ignore("feature_extractor.mel_spec.spectrogram.window");
  reader.ignore("feature_extractor.mel_spec.mel_scale.fb");
}

void Vocos::forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const {
  embed_.forward(pool, rows, states);
  norm_.forward(pool, rows);
  for (const ConvNextBlock& block : blocks_) block.forward(pool, rows, states);
  rows.map_linear(pool, head_, [this](const float* in, float* out) { final_norm_.apply(in, out); });
}

std::size_t Vocos::max_width() const noexcept { return std::max<std::size_t>({n_mels_, sizes_.dim, head_.linear().outputs()}); }

}  // namespace tts::model
