#pragma once
// Loads a model folder and hands out its engines. Shows nothing of libtorch, which is loaded when a device needs it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tts/base/result.h"
#include "tts/engine/manifest.h"
#include "tts/engine/step_engine.h"
#include "tts/engine/voice.h"

namespace tts::model {

// How numbers are held. kAuto: what is fastest on this processor within the quality that src/docs/decisions/precision.md states.
enum class NumberFormat : std::uint8_t { kAuto, kFloat32, kBfloat16, kFloat16, kInt8 };  // kFloat16: GPUs only

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
  std::uint32_t compute_threads = 0;     // 0 = one per core that the process may keep busy, at most 8
  Precision precision{};
  std::uint32_t prefix_cache_mb = 64;    // keys and values of shared prompt prefixes kept for reuse; 0 = none
  bool verify_hashes = true;             // SHA-256 of every file against the manifest before use

  // "auto" = every GPU, or the CPU where there is none or they do not work; "cpu"; "cuda" = every GPU; or some of them, "cuda:0,cuda:1".
  // Each GPU gets engines of its own, unless device_map is set. "cpu-tensors" runs what GPUs run on the CPU, for tests.
  std::string device = "auto";
  // One model over several devices: "auto" = as few as it takes, then the CPU; "balanced" = all by memory; or layers by name,
  // "0-9:cuda:0,10-18:cuda:1,19:cpu". Empty = the whole model on each GPU.
  std::string device_map{};
  std::uint32_t instances = 1;                       // engines per GPU (or device_map), which share the weights, 1..8
  double gpu_memory_fraction = 0.9;                  // of each GPU that this process may take, (0, 1]
  std::vector<std::uint32_t> preferred_batch_sizes{};  // sizes a GPU's work is padded to; empty = powers of two
};

struct LoadedModel {
  std::vector<std::unique_ptr<engine::StepEngine>> engines;  // at least one
  std::vector<engine::Voice> voices;     // in manifest order
};

// Blocks for the whole load. Throws std::runtime_error listing what is wrong with which file (offsets, dtype, shape, hash), or with the
// devices asked for.
LoadedModel load_model(const engine::Manifest& manifest, const ModelOptions& options);

// Memory that this process occupies on each GPU it uses. Empty before load_model() and without GPUs. Thread-safe.
struct GpuMemory {
  std::string device;  // "cuda:0"
  std::uint64_t used_bytes = 0;
};
std::vector<GpuMemory> gpu_memory();

// ChatTTS speaker string (spec: base16384 over raw LZMA2 of float16) to a vector of exactly `hidden_size` finite values.
Result<engine::SpeakerVector> parse_speaker_string(std::string_view utf8, std::uint32_t hidden_size);

}  // namespace tts::model
