#include "load_model.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <malloc.h>
#include <spdlog/spdlog.h>

#include "tts/base/processors.h"

#include "cpu_step_engine.h"
#include "gpt_weights.h"
#include "precision.h"
#include "safetensors.h"
#include "sound_model.h"
#include "torch/device_plan.h"
#include "voices.h"

namespace tts::model {
namespace {

constexpr std::uint32_t kMaxSlots = 256, kMaxPrefillRows = 4096, kMaxDecodeSteps = 1024, kMaxComputeThreads = 256, kMaxInstances = 8;
constexpr std::uint32_t kMaxDefaultThreads = 8;

// Everything wrong with a model comes out in one message.
class Problems {
 public:
  void add(std::string problem) { problems_.push_back(std::move(problem)); }

  // Runs one part of the load; nullopt when it threw.
  template <class Part>
  auto attempt(Part&& part) -> std::optional<decltype(part())> {
    try {
      return part();
    } catch (const std::bad_alloc&) {
      add("not enough memory; fewer max_slots or a smaller max_context need less");
    } catch (const std::exception& error) {
      add(error.what());
    }
    return std::nullopt;
  }

  bool none() const { return problems_.empty(); }

  void throw_if_any(const std::string& model) const {
    if (problems_.empty()) return;
    std::string message = "model " + model + " cannot be loaded:";
    for (const std::string& problem : problems_) message += "\n  " + problem;
    throw std::runtime_error(message);
  }

 private:
  std::vector<std::string> problems_;
};

void require_range(Problems& problems, const char* name, std::uint32_t value, std::uint32_t low, std::uint32_t high) {
  if (value < low || value > high) {
    problems.add(std::string(name) + " is " + std::to_string(value) + ", expected " + std::to_string(low) + ".." + std::to_string(high));
  }
}

std::uint32_t context_of(const engine::Manifest& manifest, const ModelOptions& options) {
  if (options.max_context != 0) return options.max_context;
  const std::uint64_t wanted = std::uint64_t{manifest.max_prompt_tokens} + manifest.sampling.max_steps;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, manifest.architecture.gpt.max_position_embeddings));
}

GptWeights load_gpt(const engine::Manifest& manifest, bool verify_hashes, ops::WeightFormat format) {
  const auto open = [&](const char* role) {
    const auto entry = manifest.files.find(role);
    if (entry == manifest.files.end()) throw std::runtime_error(std::string("the manifest names no ") + role + " file");
    auto file = std::make_unique<SafetensorsFile>(entry->second.path);
    if (verify_hashes) file->require_sha256(entry->second.sha256);
    return file;
  };
  const auto gpt = open("gpt"), embed = open("embed");
  return load_gpt_weights(manifest.architecture.gpt, *gpt, *embed, format);
}

using Engines = std::vector<std::unique_ptr<engine::StepEngine>>;

Engines load_cpu_engine(const engine::Manifest& manifest, const ModelOptions& options, std::uint32_t context, Problems& problems) {
  const std::optional<Formats> formats = problems.attempt([&] { return choose_formats(options.precision); });
  if (!formats) return {};
  std::optional<GptWeights> gpt = problems.attempt([&] { return load_gpt(manifest, options.verify_hashes, formats->weights); });
  std::optional<SoundModel> sound = problems.attempt([&] { return load_sound_model(manifest, options.verify_hashes, formats->sound); });
  if (!problems.none()) return {};
  const std::uint32_t cores = std::min(usable_processors(), kMaxDefaultThreads);
  auto engine = problems.attempt([&] {
    return std::make_unique<CpuStepEngine>(
        *std::move(gpt), *std::move(sound),
        CpuEngineOptions{.model = manifest.name,
                         .precision = describe(*formats),
                         .sample_rate = manifest.architecture.sample_rate,
                         .max_slots = options.max_slots,
                         .max_context = context,
                         .max_prefill_rows = options.max_prefill_rows,
                         .max_decode_steps = options.max_decode_steps,
                         .compute_threads = options.compute_threads == 0 ? cores : options.compute_threads,
                         .kv = formats->kv,
                         .prefix_cache_bytes = std::size_t{options.prefix_cache_mb} << 20,
                         .speaker_precision = manifest.speaker_precision});
  });
  if (!engine) return {};
  spdlog::info("model {}: {}; {} threads; {}", manifest.name, describe(*formats), (*engine)->threads(), instruction_set());
  Engines engines;
  engines.push_back(*std::move(engine));
  return engines;
}

// "auto" is what works here: GPUs that do not are a reason to say so and to use the CPU, unless something else was asked for that only they
// can give.
bool may_do_without_gpus(const ModelOptions& options) {
  return options.device == "auto" && options.device_map.empty() && options.instances == 1;
}

void say_that_the_cpu_is_used(const std::exception& reason) { spdlog::warn("the GPUs cannot be used, so the CPU is: {}", reason.what()); }

std::uint32_t gpus_to_choose_from(const GpuSupport& gpus, const ModelOptions& options) {
  if (!gpus.built || !gpus.driver || options.device == "cpu") return 0;
  try {
    return gpus.backend().count_gpus();
  } catch (const std::exception& error) {
    if (!may_do_without_gpus(options)) throw;
    say_that_the_cpu_is_used(error);
    return 0;
  }
}

// Nothing when it fails; a problem unless the CPU may be used instead.
std::optional<Engines> load_on_tensors(const engine::Manifest& manifest, const ModelOptions& options, std::uint32_t context,
                                       const DeviceChoice& devices, const GpuSupport& gpus, Problems& problems) {
  const auto load = [&] { return gpus.backend().load_engines(manifest, options, context, devices); };
  if (!may_do_without_gpus(options)) return problems.attempt(load);
  try {
    return load();
  } catch (const std::exception& error) {
    say_that_the_cpu_is_used(error);
    return std::nullopt;
  }
}

}  // namespace

LoadedModel load_model(const engine::Manifest& manifest, const ModelOptions& options) {
  return load_model(manifest, options, {.built = built_for_gpus(), .driver = has_gpu_driver(), .backend = tensor_backend});
}

LoadedModel load_model(const engine::Manifest& manifest, const ModelOptions& options, const GpuSupport& gpus) {
  const engine::Architecture& architecture = manifest.architecture;
  const std::uint32_t context = context_of(manifest, options);
  Problems problems;
  require_range(problems, "max_slots", options.max_slots, 1, kMaxSlots);
  require_range(problems, "max_context", context, 2, architecture.gpt.max_position_embeddings);
  require_range(problems, "max_prefill_rows", options.max_prefill_rows, 1, kMaxPrefillRows);
  require_range(problems, "max_decode_steps", options.max_decode_steps, 1, kMaxDecodeSteps);
  require_range(problems, "compute_threads", options.compute_threads, 0, kMaxComputeThreads);
  require_range(problems, "instances", options.instances, 1, kMaxInstances);
  if (!(options.gpu_memory_fraction > 0 && options.gpu_memory_fraction <= 1))
    problems.add("gpu_memory_fraction must be above 0 and at most 1");
  const std::vector<std::string> size_problems = check_gpt_sizes(architecture.gpt);
  for (const std::string& problem : size_problems) problems.add(problem);
  const auto devices = problems.attempt([&] { return choose_devices(options.device, {gpus.built, gpus_to_choose_from(gpus, options)}); });
  if (devices && !devices->tensors && (!options.device_map.empty() || options.instances != 1))
    problems.add("device_map and instances are for GPUs; the CPU has one engine, which uses all of it");

  std::optional<std::vector<engine::Voice>> voices = problems.attempt([&] { return load_voices(manifest, options.verify_hashes); });
  Engines engines;
  if (devices && size_problems.empty()) {
    std::optional<Engines> on_tensors;
    if (devices->tensors && problems.none()) on_tensors = load_on_tensors(manifest, options, context, *devices, gpus, problems);
    if (on_tensors) {
      engines = *std::move(on_tensors);
    } else if (!devices->tensors || problems.none()) {
      engines = load_cpu_engine(manifest, options, context, problems);
    }
  }
  problems.throw_if_any(manifest.name);
  ::malloc_trim(0);  // loading took and freed far more than is kept
  return {.engines = std::move(engines), .voices = *std::move(voices)};
}

std::vector<GpuMemory> gpu_memory() {
  std::vector<GpuMemory> memory;
  const TensorBackend* const backend = loaded_tensor_backend();
  if (backend == nullptr) return memory;
  const std::vector<std::uint64_t> bytes = backend->gpu_bytes_in_use();
  for (std::uint32_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != 0) memory.push_back({to_string({.gpu = true, .index = i}), bytes[i]});
  }
  return memory;
}

}  // namespace tts::model
