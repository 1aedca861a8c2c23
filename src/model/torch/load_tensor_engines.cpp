#include "torch/load_tensor_engines.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include <c10/core/InferenceMode.h>

#include "torch/runtime.h"
#include "torch/tensor_step_engine.h"

namespace tts::model {
namespace {

std::unique_ptr<SafetensorsFile> open_file(const engine::Manifest& manifest, const std::string& role, bool verify_hash) {
  const auto entry = manifest.files.find(role);
  if (entry == manifest.files.end()) throw std::runtime_error("the manifest names no file for '" + role + "'");
  auto file = std::make_unique<SafetensorsFile>(entry->second.path);
  if (verify_hash) file->require_sha256(entry->second.sha256);
  return file;
}

bool has_text_head(const SafetensorsFile& embed) { return embed.tensors().contains("head_text.parametrizations.weight.original0"); }

struct Resources {
  DeviceAbilities abilities;
  std::vector<DeviceMemory> memory;
};

Resources look_at(std::span<const DeviceName> devices, double fraction) {
  Resources all{.abilities = {.gpu = devices.front().gpu, .bfloat16 = true}, .memory = {}};
  for (const DeviceName device : devices) {
    std::uint64_t bytes = 0;
    if (device.gpu) {
      const Gpu gpu = describe_gpu(device.index);
      all.abilities.bfloat16 &= gpu.major >= 8;
      bytes = std::min(static_cast<std::uint64_t>(fraction * static_cast<double>(gpu.total_bytes)), gpu.free_bytes);
    }
    all.memory.push_back({device, bytes});
  }
  return all;
}

std::vector<c10::Device> devices_of(std::span<const DeviceName> names) {
  std::vector<c10::Device> devices;
  for (const DeviceName name : names) devices.push_back(to_device(name));
  return devices;
}

// The model on `devices`, and its engines.
void load_group(const engine::Manifest& manifest, const ModelOptions& options, std::uint32_t context, std::span<const DeviceName> devices,
                bool verify_hashes, std::vector<std::unique_ptr<engine::StepEngine>>& engines) {
  const auto gpt = open_file(manifest, "gpt", verify_hashes), embed = open_file(manifest, "embed", verify_hashes);
  const Resources resources = look_at(devices, options.gpu_memory_fraction);
  const TensorFormats formats = choose_tensor_formats(options.precision, resources.abilities);
  const ModelBytes bytes =
      estimate_bytes(manifest.architecture, has_text_head(*embed), formats, options.max_slots, context, options.instances);
  std::vector<LayerRange> placement = plan_layers(options.device_map, bytes, resources.memory);
  const c10::Device primary = to_device(devices.front());
  const auto model = std::make_shared<const TensorModel>(
      TensorModel{.name = manifest.name,
                  .sample_rate = manifest.architecture.sample_rate,
                  .speaker_precision = manifest.speaker_precision,
                  .gpt = load_gpt_tensors(manifest.architecture.gpt, *gpt, *embed, formats, std::move(placement), primary),
                  .sound = load_sound_tensors(manifest, formats.sound, primary, verify_hashes)});
  for (std::uint32_t i = 0; i < options.instances; ++i) {
    auto runtime = devices.front().gpu ? make_cuda_runtime(devices_of(devices)) : make_cpu_runtime();
    engines.push_back(std::make_unique<TensorStepEngine>(model, std::move(runtime),
                                                         TensorEngineOptions{.max_slots = options.max_slots,
                                                                             .max_context = context,
                                                                             .max_prefill_rows = options.max_prefill_rows,
                                                                             .max_decode_steps = options.max_decode_steps,
                                                                             .preferred_batch_sizes = options.preferred_batch_sizes,
                                                                             .run_ahead = {}}));
    spdlog::info("engine {}: {}, {}", engines.size() - 1, engines.back()->info().device, engines.back()->info().precision);
  }
}

}  // namespace

TensorFormats choose_tensor_formats(const Precision& precision, const DeviceAbilities& device) {
  const auto require = [](bool good, const char* problem) {
    if (!good) throw std::runtime_error(problem);
  };
  const at::ScalarType half = device.bfloat16 ? at::kBFloat16 : at::kHalf;
  const auto type_of = [&](NumberFormat format, at::ScalarType automatic) {
    switch (format) {
      case NumberFormat::kFloat32: return at::kFloat;
      case NumberFormat::kFloat16: return at::kHalf;
      case NumberFormat::kBfloat16:
        require(!device.gpu || device.bfloat16, "bfloat16 needs a GPU of compute capability 8.0 or above; choose float16");
        return at::kBFloat16;
      default: return automatic;
    }
  };
  require(precision.kv != NumberFormat::kInt8, "on a GPU keys and values are float32, bfloat16 or float16, not int8");
  require(precision.sound != NumberFormat::kInt8, "the sound networks are float32, bfloat16 or float16, not int8");
  TensorFormats formats;
  formats.int8_weights = precision.weights == NumberFormat::kInt8;
  formats.compute = type_of(precision.weights, device.gpu ? half : at::kFloat);
  formats.kv = type_of(precision.kv, formats.compute);
  formats.sound = type_of(precision.sound, device.gpu ? at::kHalf : at::kFloat);
  return formats;
}

std::vector<std::unique_ptr<engine::StepEngine>> load_tensor_engines(const engine::Manifest& manifest, const ModelOptions& options,
                                                                     std::uint32_t context, const DeviceChoice& choice) {
  const c10::InferenceMode inference;
  std::vector<std::unique_ptr<engine::StepEngine>> engines;
  in_plain_words([&] {
    if (choice.devices.front().gpu) limit_gpu_memory(devices_of(choice.devices), options.gpu_memory_fraction);
    if (!options.device_map.empty()) return load_group(manifest, options, context, choice.devices, options.verify_hashes, engines);
    bool verify_hashes = options.verify_hashes;  // once is enough
    for (const DeviceName& device : choice.devices) {
      load_group(manifest, options, context, {&device, 1}, std::exchange(verify_hashes, false), engines);
    }
  });
  return engines;
}

}  // namespace tts::model
