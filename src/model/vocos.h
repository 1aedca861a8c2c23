#pragma once
// Vocos backbone and head: log-mel rows to one row of log-magnitudes and phases a frame (model spec, Vocos).

#include <cstddef>
#include <span>
#include <vector>

#include "tts/engine/manifest.h"

#include "conv_layers.h"

namespace tts::model {

class Vocos {
 public:
  Vocos(TensorReader& reader, const engine::Architecture& architecture, ops::WeightFormat format);

  // n_mels channels in; n_fft + 2 out: n_fft / 2 + 1 log-magnitudes, then as many phases.
  void forward(ops::ComputePool& pool, StreamRows& rows, std::span<StreamState> states) const;

  std::size_t max_width() const noexcept;
  std::size_t max_inner() const noexcept { return sizes_.intermediate_dim; }
  std::size_t inputs() const noexcept { return n_mels_; }
  std::size_t hop() const noexcept { return hop_; }
  std::span<const ContextSpec> contexts() const noexcept { return contexts_; }
  std::span<const float> window() const noexcept { return window_; }  // [n_fft], of the inverse STFT

 private:
  engine::VocosSizes sizes_;
  std::size_t n_mels_, hop_;
  ContextSpecs contexts_;
  WindowConv embed_;
  ChannelNorm norm_;
  std::vector<ConvNextBlock> blocks_;
  ChannelNorm final_norm_;
  SoundLinear head_;
  std::vector<float> window_;
};

}  // namespace tts::model
