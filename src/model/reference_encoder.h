#pragma once
// DVAE encoder (model spec, DVAE encode): a reference recording to the codes of a zero-shot prompt.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tts/base/result.h"
#include "tts/engine/manifest.h"
#include "tts/engine/utterance.h"

#include "conv_layers.h"
#include "gfsq.h"
#include "mel_network.h"

namespace tts::model {

inline constexpr double kMaxReferenceSeconds = 30.0;

// Immutable after loading. Not a hot path: encode() allocates.
class ReferenceEncoder {
 public:
  // Reads the encoder's part of the dvae file; `coef` is the file's, [n_mels].
  ReferenceEncoder(TensorReader& reader, const engine::Architecture& architecture, std::span<const float> coef);

  // Mono samples at the model's rate -> one frame per 2 * hop samples. Blocks for the computation. kInvalidArgument when the recording
  // is shorter than one STFT window or holds NaN or infinity, kTooLarge beyond kMaxReferenceSeconds, kEngineFailure when the
  // network's output is not finite.
  Result<std::vector<engine::CodeFrame>> encode(ops::ComputePool& pool, const Gfsq& quantizer, std::span<const float> pcm) const;

  // [frames, n_mels], natural logarithm divided by coef; 1 + floor(N / hop) frames. Precondition: pcm.size() > n_fft / 2.
  std::vector<float> log_mel(ops::ComputePool& pool, std::span<const float> pcm) const;

  // [floor(frames / 2), dim] vectors before quantisation.
  std::vector<float> encode_mel(ops::ComputePool& pool, std::span<const float> mel) const;

 private:
  engine::ConvStackSizes sizes_;
  std::uint32_t sample_rate_;
  std::size_t hop_, n_mels_;
  std::vector<float> coef_, window_;
  std::unique_ptr<const ops::Linear> filter_bank_;  // n_fft / 2 + 1 magnitudes -> n_mels
  ContextSpecs first_context_, stack_context_;
  WindowConv first_conv_;
  std::unique_ptr<const ops::Linear> halving_conv_;  // kernel 4, stride 2
  ConvStack stack_;
  SoundLinear output_;
};

}  // namespace tts::model
