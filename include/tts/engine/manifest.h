#pragma once
// models/<name>/manifest.json as plain data: sizes, files with hashes, voices, defaults. Read once at start.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tts/engine/utterance.h"

namespace tts::engine {

struct GptSizes {
  std::uint32_t hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0, num_attention_heads = 0, num_key_value_heads = 0;
  std::uint32_t max_position_embeddings = 0, num_text_tokens = 0, num_audio_tokens = 0, num_vq = 0;
  double rms_norm_eps = 1e-6, rope_theta = 10000.0;
};

// One ConvNeXt stack (spec names: idim, odim, hidden, n_layer, bn_dim).
struct ConvStackSizes {
  std::uint32_t idim = 0, odim = 0, hidden = 0, n_layer = 0, bn_dim = 0;
};

struct QuantizerSizes {
  std::uint32_t dim = 0, groups = 0, residuals = 0;
  std::vector<std::uint32_t> levels;
};

struct VocosSizes {
  std::uint32_t dim = 0, intermediate_dim = 0, num_layers = 0;
};

struct Architecture {
  std::uint32_t sample_rate = 24000, n_fft = 1024, hop = 256, n_mels = 100;
  GptSizes gpt;
  ConvStackSizes decoder;
  ConvStackSizes dvae_encoder, dvae_decoder;
  QuantizerSizes quantizer;
  VocosSizes vocos;
};

struct ManifestFile {
  std::filesystem::path path;  // absolute, proven to stay inside the model's folder
  std::string sha256;
  std::uint64_t bytes = 0;
};

enum class SpeakerKind { kNone, kTensor, kString, kSeed };

struct ManifestVoice {
  std::string id, title, gender;
  std::vector<std::string> languages;
  SpeakerKind speaker_kind = SpeakerKind::kNone;
  std::string speaker_value;  // tensor name, ChatTTS speaker string, or decimal seed
};

enum class TextFrontEndKind { kPhones, kChattts };
enum class SpeakerPrecision { kFloat16, kFloat32 };

struct Manifest {
  std::filesystem::path directory;
  std::string name, title, license;
  TextFrontEndKind front_end = TextFrontEndKind::kPhones;
  SpeakerPrecision speaker_precision = SpeakerPrecision::kFloat16;
  Architecture architecture;
  std::map<std::string, ManifestFile> files;  // by role: gpt, embed, decoder, dvae, vocos, speakers, symbols, ...
  std::vector<ManifestVoice> voices;          // never empty
  std::string default_voice;                  // an id of `voices`
  SamplingParams sampling;                    // defaults of the model
  std::uint32_t max_prompt_tokens = 0;
};

// Throws std::runtime_error listing every problem found: unreadable or malformed JSON, missing or non-positive sizes, paths
// that leave the folder, missing files, sizes that differ from `bytes`. Does not hash the files (the loaders do).
Manifest read_manifest(const std::filesystem::path& directory);

}  // namespace tts::engine
