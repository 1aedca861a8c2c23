#pragma once
// The one door to libtorch: loads a model folder and hands out an engine behind a torch-free interface.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tts/base/result.h"
#include "tts/engine/manifest.h"
#include "tts/engine/step_engine.h"
#include "tts/engine/voice.h"

namespace tts::model {

// How numbers are held. kAuto: what is fastest on this processor within the quality that src/docs/decisions/precision.md states.
enum class NumberFormat : std::uint8_t { kAuto, kFloat32, kBfloat16, kInt8 };

struct Precision {
  NumberFormat weights = NumberFormat::kAuto;  // of the language model
  NumberFormat kv = NumberFormat::kAuto;       // cached keys and values
  NumberFormat sound = NumberFormat::kAuto;    // Decoder, DVAE and Vocos; no int8
};

struct ModelOptions {
  std::uint32_t max_slots = 16;          // concurrent utterances, 1..256; KV memory is reserved for all, touched as used
  std::uint32_t max_context = 0;         // positions per slot; 0 = max_prompt_tokens + sampling.max_steps of the manifest
  std::uint32_t max_prefill_rows = 64;   // prompt positions that may ride on one step, beside the decode rows
  std::uint32_t max_decode_steps = 32;   // largest chunk one decode() may take per slot
  std::uint32_t compute_threads = 0;     // 0 = one per core, at most 8
  Precision precision{};
  std::uint32_t prefix_cache_mb = 64;    // keys and values of shared prompt prefixes kept for reuse; 0 = none
  bool verify_hashes = true;             // SHA-256 of every file against the manifest before use
};

struct LoadedModel {
  std::unique_ptr<engine::StepEngine> engine;
  std::vector<engine::Voice> voices;     // in manifest order
};

// Blocks for the whole load. Throws std::runtime_error listing what is wrong with which file (offsets, dtype, shape, hash).
LoadedModel load_model(const engine::Manifest& manifest, const ModelOptions& options);

// ChatTTS speaker string (spec: base16384 over raw LZMA2 of float16) to a vector of exactly `hidden_size` finite values.
Result<engine::SpeakerVector> parse_speaker_string(std::string_view utf8, std::uint32_t hidden_size);

}  // namespace tts::model
