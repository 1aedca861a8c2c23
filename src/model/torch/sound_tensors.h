#pragma once
// The sound half of the model on tensors: Decoder and DVAE decoder to log-mel, Vocos to samples, both streaming (stream_pass.h).
//
// Frames stay float32 between layers. The blocks' products run in `type`; what is sensitive to rounding (mel in and out, phases, the
// inverse transform) always in float32.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tts/engine/manifest.h"

#include "gfsq.h"
#include "reference_encoder.h"
#include "safetensors.h"
#include "torch/stream_pass.h"
#include "torch/tensor_load.h"

namespace tts::model {

// How a network's tensors are made. `pad` and `values` grow with each layer that looks sideways.
struct NetworkBuild {
  TensorReader& reader;
  at::ScalarType type;
  c10::Device device;
  std::int64_t pad = 0;     // rows of lookahead so far
  std::int64_t values = 0;  // that a stream remembers so far
};

// Conv1d of odd width without dilation.
struct SideConvTensors {
  DenseTensors dense;  // [outputs, kernel * inputs]
  std::int64_t pad = 0;

  SideConvTensors(NetworkBuild& build, const std::string& name, std::int64_t inputs, std::int64_t outputs, std::int64_t kernel, bool bias,
                  at::ScalarType type, const std::vector<float>& output_scale = {});
  at::Tensor forward(StreamPass& pass, const at::Tensor& x) const;
};

// x + scale * (Linear(GELU(Linear(LayerNorm(depthwise7(x)))))).
struct ConvNextTensors {
  at::Tensor taps, bias;              // [7, width], [width]
  at::Tensor norm_weight, norm_bias;  // [width]
  DenseTensors wide, narrow;          // the layer scale is folded into narrow
  std::int64_t dilation = 1, pad = 3;

  ConvNextTensors(NetworkBuild& build, const std::string& prefix, const std::string& scale_name, std::int64_t width, std::int64_t inner,
                  std::int64_t dilation);
  at::Tensor forward(StreamPass& pass, const at::Tensor& x) const;
};

// [streams, rows, idim] -> log-mel [streams, rows, n_mels].
class MelNetworkTensors {
 public:
  MelNetworkTensors(TensorReader& reader, const engine::ConvStackSizes& sizes, std::int64_t n_mels, at::ScalarType type,
                    c10::Device device);

  at::Tensor forward(StreamPass& pass, const at::Tensor& x) const;

  std::int64_t inputs() const { return inputs_; }
  std::int64_t pad() const { return pad_; }                    // rows of lookahead
  std::int64_t state_values() const { return state_values_; }  // that a stream remembers
  const std::vector<float>& coef() const { return coef_; }     // [n_mels]

 private:
  std::int64_t inputs_, pad_, state_values_;
  std::vector<float> coef_;
  std::vector<SideConvTensors> conv_in_;
  std::vector<ConvNextTensors> blocks_;
  DenseTensors conv_out_;
  std::unique_ptr<const SideConvTensors> out_conv_;
};

// Log-mel [streams, rows, n_mels] -> blocks of samples [streams, rows, hop]. Block b of the uncut signal sums frames b - 3 .. b;
// F frames give blocks 2 .. F, (F - 1) * hop samples.
class VocosTensors {
 public:
  VocosTensors(TensorReader& reader, const engine::Architecture& architecture, at::ScalarType type, c10::Device device);

  at::Tensor forward(StreamPass& pass, const at::Tensor& mel) const;

  std::int64_t hop() const { return hop_; }
  std::int64_t pad() const { return pad_; }
  std::int64_t state_values() const { return state_values_; }

 private:
  at::Tensor overlap_add(StreamPass& pass, const at::Tensor& frames) const;

  std::int64_t hop_, pad_, state_values_;
  std::unique_ptr<const SideConvTensors> embed_;
  at::Tensor norm_weight_, norm_bias_, final_weight_, final_bias_;
  std::vector<ConvNextTensors> blocks_;
  DenseTensors head_;
  at::Tensor to_time_;         // [n_fft + 2, n_fft]: real then imaginary parts to windowed samples
  at::Tensor window_squared_;  // [4, hop]
};

// Embedded codes as one gather and sum.
struct CodeTable {
  at::Tensor rows;  // [codebooks * codes, dim]; the row of a code that is no sound is zero
  at::Tensor bias;  // [dim]
  std::int64_t codes = 0;

  // [n, codebooks] -> [n, dim]
  at::Tensor embed(const at::Tensor& frames) const;
};

// Immutable after loading; engines on one device share it.
struct SoundTensors {
  MelNetworkTensors decoder, dvae_decoder;
  VocosTensors vocos;
  CodeTable code_table;  // for dvae_decoder
  Gfsq quantizer;        // on the host, for encode_reference()
  ReferenceEncoder encoder;
};

// Blocks. Throws std::runtime_error listing everything wrong with the three files.
SoundTensors load_sound_tensors(const engine::Manifest& manifest, at::ScalarType type, c10::Device device, bool verify_hashes);

}  // namespace tts::model
