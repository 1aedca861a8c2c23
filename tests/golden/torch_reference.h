#pragma once
// The sound half computed on a whole utterance with plain ATen operators: independent of our kernels and of streaming.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "tts/engine/manifest.h"

#include "safetensors.h"

namespace tts::model {

class TorchReference {
 public:
  explicit TorchReference(const engine::Manifest& manifest)
      : manifest_(manifest),
        decoder_(manifest.files.at("decoder").path),
        dvae_(manifest.files.at("dvae").path),
        vocos_(manifest.files.at("vocos").path) {
    at::set_num_threads(1);  // the sizes are too small for its threads to pay
  }

  // [steps, hidden_size] -> samples.
  std::vector<float> from_hidden(std::span<const float> hidden) const {
    return vocode(mel(decoder_, manifest_.architecture.decoder, interleave(matrix(hidden, 2 * manifest_.architecture.decoder.idim))));
  }

  // Embedded codes, [steps, dim] -> samples.
  std::vector<float> from_embedded(std::span<const float> embedded) const {
    return vocode(mel(dvae_, manifest_.architecture.dvae_decoder, interleave(matrix(embedded, manifest_.architecture.quantizer.dim))));
  }

 private:
  static at::Tensor matrix(std::span<const float> values, std::int64_t columns) {
    return at::from_blob(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size()) / columns, columns}, at::kFloat)
        .clone();
  }

  static at::Tensor get(const SafetensorsFile& file, const std::string& name) {
    const TensorView& view = file.tensors().at(name);
    std::vector<float> values = widen(view);
    return at::from_blob(values.data(), std::vector<std::int64_t>(view.shape.begin(), view.shape.end()), at::kFloat).clone();
  }

  // [steps, 2c] -> [1, c, 2 * steps]: channel j of frame 2t + k is element k * c + j of step t.
  static at::Tensor interleave(const at::Tensor& steps) {
    return steps.reshape({2 * steps.size(0), steps.size(1) / 2}).t().unsqueeze(0).contiguous();
  }

  static at::Tensor conv(const SafetensorsFile& file, const std::string& name, const at::Tensor& x, std::int64_t pad, bool bias = true) {
    return at::conv1d(x, get(file, name + ".weight"), bias ? get(file, name + ".bias") : at::Tensor(), 1, pad);
  }

  // [1, c, t] -> [1, t, c]
  static at::Tensor norm(const SafetensorsFile& file, const std::string& name, const at::Tensor& rows) {
    return at::layer_norm(rows, {rows.size(2)}, get(file, name + ".weight"), get(file, name + ".bias"), 1e-6);
  }

  static at::Tensor block(const SafetensorsFile& file, const std::string& name, const std::string& scale, std::int64_t dilation,
                          const at::Tensor& x) {
    at::Tensor y =
        at::conv1d(x, get(file, name + ".dwconv.weight"), get(file, name + ".dwconv.bias"), 1, 3 * dilation, dilation, x.size(1));
    y = norm(file, name + ".norm", y.transpose(1, 2));
    y = at::gelu(at::linear(y, get(file, name + ".pwconv1.weight"), get(file, name + ".pwconv1.bias")));
    y = at::linear(y, get(file, name + ".pwconv2.weight"), get(file, name + ".pwconv2.bias")) * get(file, scale);
    return x + y.transpose(1, 2);
  }

  static at::Tensor mel(const SafetensorsFile& file, const engine::ConvStackSizes& sizes, at::Tensor x) {
    x = at::gelu(conv(file, "decoder.conv_in.0", x, 1));
    x = conv(file, "decoder.conv_in.2", x, 1);
    for (std::uint32_t i = 0; i < sizes.n_layer; ++i) {
      const std::string name = "decoder.decoder_block." + std::to_string(i);
      x = block(file, name, name + ".weight", 2, x);
    }
    x = conv(file, "decoder.conv_out", x, 0, false);
    return conv(file, "out_conv", x, 1, false) * get(file, "coef");
  }

  std::vector<float> vocode(const at::Tensor& mel_frames) const {
    at::Tensor x = conv(vocos_, "backbone.embed", mel_frames, 3);
    x = norm(vocos_, "backbone.norm", x.transpose(1, 2)).transpose(1, 2);
    for (std::uint32_t i = 0; i < manifest_.architecture.vocos.num_layers; ++i) {
      const std::string name = "backbone.convnext." + std::to_string(i);
      x = block(vocos_, name, name + ".gamma", 1, x);
    }
    x = norm(vocos_, "backbone.final_layer_norm", x.transpose(1, 2));
    x = at::linear(x, get(vocos_, "head.out.weight"), get(vocos_, "head.out.bias"))[0];
    const std::int64_t n_fft = manifest_.architecture.n_fft, hop = manifest_.architecture.hop, bins = n_fft / 2 + 1, frames = x.size(0);
    const at::Tensor magnitude = x.narrow(1, 0, bins).exp().clamp_max(100), phase = x.narrow(1, bins, bins);
    const at::Tensor window = get(vocos_, "head.istft.window");
    const at::Tensor time = at::fft_irfft(at::polar(magnitude, phase), n_fft, 1) * window;
    at::Tensor sum = at::zeros({hop * (frames - 1) + n_fft}), envelope = at::zeros_like(sum);
    for (std::int64_t f = 0; f < frames; ++f) {
      sum.narrow(0, f * hop, n_fft) += time[f];
      envelope.narrow(0, f * hop, n_fft) += window * window;
    }
    const at::Tensor audio = (sum / envelope).narrow(0, n_fft / 2, hop * (frames - 1)).contiguous();
    return {audio.data_ptr<float>(), audio.data_ptr<float>() + audio.numel()};
  }

  const engine::Manifest& manifest_;
  SafetensorsFile decoder_, dvae_, vocos_;
};

}  // namespace tts::model
