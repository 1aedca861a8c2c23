#pragma once
// The recorded reference numbers under tests/golden/data and the small random model that made them.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tts/engine/manifest.h"
#include "tts/engine/utterance.h"

#include "safetensors.h"

namespace tts::testing {

inline std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(TTS_SOURCE_DIR "/tests/golden/data") / name;
}

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name) : file_(golden_path(name + ".safetensors")) {}

  bool has(std::string_view tensor) const { return file_.tensors().contains(tensor); }
  const model::Shape& shape(std::string_view tensor) const { return at(tensor).shape; }
  std::vector<float> floats(std::string_view tensor) const { return model::widen(at(tensor)); }

  std::vector<std::int32_t> ints(std::string_view tensor) const {
    const model::TensorView& view = at(tensor);
    if (view.dtype != "I32") throw std::runtime_error("not an I32 tensor: " + std::string(tensor));
    std::vector<std::int32_t> values(view.bytes.size() / sizeof(std::int32_t));
    if (!values.empty()) std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
    return values;
  }

 private:
  const model::TensorView& at(std::string_view tensor) const {
    const auto found = file_.tensors().find(tensor);
    if (found == file_.tensors().end()) throw std::runtime_error("no golden tensor " + std::string(tensor));
    return found->second;
  }

  model::SafetensorsFile file_;
};

// Item `batch` of a [batch, rows, columns] tensor as [columns, rows]: the reference keeps channels first, we keep time first.
inline std::vector<float> time_first(std::span<const float> values, std::size_t batch, std::size_t rows, std::size_t columns) {
  std::vector<float> out(rows * columns);
  const std::span<const float> item = values.subspan(batch * rows * columns, rows * columns);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) out[c * rows + r] = item[r * columns + c];
  }
  return out;
}

// Item `batch` of [batch, 4, frames] ids.
inline std::vector<engine::CodeFrame> code_frames(std::span<const std::int32_t> ids, std::size_t batch, std::size_t frames) {
  std::vector<engine::CodeFrame> out(frames);
  for (std::size_t q = 0; q < engine::kCodebooks; ++q) {
    for (std::size_t t = 0; t < frames; ++t) out[t][q] = static_cast<std::uint16_t>(ids[(batch * engine::kCodebooks + q) * frames + t]);
  }
  return out;
}

// The largest absolute difference; infinite when the sizes differ or a value is not a number.
inline float max_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

// Of the whole signal, in dB; infinite when nothing differs.
inline double signal_to_noise(std::span<const float> signal, std::span<const float> approximation) {
  if (signal.size() != approximation.size()) return -INFINITY;
  double power = 0, noise = 0;
  for (std::size_t i = 0; i < signal.size(); ++i) {
    const double difference = double{signal[i]} - approximation[i];
    power += double{signal[i]} * signal[i];
    noise += difference * difference;
  }
  return 10 * std::log10(power / noise);
}

// The model the reference numbers were recorded with. It has one voice, without a speaker vector.
inline engine::Manifest golden_manifest() {
  engine::Manifest manifest;
  manifest.directory = golden_path("model");
  manifest.name = "golden";
  manifest.front_end = engine::TextFrontEndKind::kChattts;
  manifest.speaker_precision = engine::SpeakerPrecision::kFloat16;
  engine::Architecture& a = manifest.architecture;
  a.gpt.hidden_size = 64;
  a.gpt.intermediate_size = 128;
  a.gpt.num_hidden_layers = 3;
  a.gpt.num_attention_heads = 4;
  a.gpt.num_key_value_heads = 4;
  a.gpt.max_position_embeddings = 4096;
  a.gpt.num_text_tokens = 279;
  a.gpt.num_audio_tokens = 626;
  a.gpt.num_vq = 4;
  a.decoder = {.idim = 32, .odim = 32, .hidden = 48, .n_layer = 2, .bn_dim = 24};
  a.dvae_encoder = {.idim = 24, .odim = 48, .hidden = 40, .n_layer = 2, .bn_dim = 16};
  a.dvae_decoder = {.idim = 24, .odim = 24, .hidden = 40, .n_layer = 2, .bn_dim = 16};
  a.quantizer = {.dim = 48, .groups = 2, .residuals = 2, .levels = {5, 5, 5, 5}};
  a.vocos = {.dim = 48, .intermediate_dim = 96, .num_layers = 2};
  for (const auto& [role, file] :
       {std::pair{"gpt", "gpt/model"}, {"embed", "Embed"}, {"decoder", "Decoder"}, {"dvae", "DVAE"}, {"vocos", "Vocos"}}) {
    const std::filesystem::path path = golden_path("model/asset/" + std::string(file) + ".safetensors");
    manifest.files[role] = {path, "", std::filesystem::file_size(path)};
  }
  engine::ManifestVoice voice;
  voice.id = "default";
  manifest.voices.push_back(voice);
  manifest.default_voice = voice.id;
  manifest.max_prompt_tokens = 512;
  return manifest;
}

}  // namespace tts::testing
