// What a loaded engine does, through the interface the server drives: a prompt, a step and a decoder call by number of utterances, on any
// device. Prints one JSON object.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tts/engine/manifest.h"
#include "tts/engine/step_engine.h"
#include "tts/model/model.h"

namespace {

using namespace tts;
using Json = nlohmann::json;

constexpr std::uint32_t kChunk = 24;  // steps of a decoder call

struct Arguments {
  std::string model = "models/nano", device = "auto", device_map, weights = "auto", kv = "auto", sound = "auto";
  std::vector<std::uint32_t> batches{1, 4, 8, 16};
  std::uint32_t prompt = 100, steps = 288;
};

model::NumberFormat format_of(const std::string& name) {
  const std::vector<std::pair<std::string, model::NumberFormat>> formats{{"auto", model::NumberFormat::kAuto},
                                                                         {"float32", model::NumberFormat::kFloat32},
                                                                         {"bfloat16", model::NumberFormat::kBfloat16},
                                                                         {"float16", model::NumberFormat::kFloat16},
                                                                         {"int8", model::NumberFormat::kInt8}};
  for (const auto& [known, format] : formats) {
    if (known == name) return format;
  }
  throw std::runtime_error("formats are auto, float32, bfloat16, float16 and int8, not " + name);
}

class Times {
 public:
  template <class Call>
  void measure(Call&& call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    ms_.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  double total() const {
    double sum = 0;
    for (const double ms : ms_) sum += ms;
    return sum;
  }
  Json summary() {
    std::sort(ms_.begin(), ms_.end());
    const auto at = [&](double share) { return ms_[static_cast<std::size_t>(share * static_cast<double>(ms_.size() - 1))]; };
    return {{"p50_ms", at(0.5)}, {"p99_ms", at(0.99)}, {"least_ms", ms_.front()}, {"count", ms_.size()}};
  }

 private:
  std::vector<double> ms_;
};

// `batch` utterances that start together: their prompts, then steps and a decoder call for all after every kChunk steps.
Json measure(engine::StepEngine& engine, const Arguments& arguments, std::uint32_t batch) {
  engine::UtterancePrompt prompt;
  for (std::uint32_t i = 0; i < arguments.prompt; ++i) prompt.tokens.push_back(static_cast<std::int32_t>(1 + i % 50));
  engine::SamplingParams sampling;
  sampling.min_steps = sampling.max_steps = arguments.steps;
  std::vector<engine::StepWork> work(batch);
  std::vector<engine::StepOutcome> outcomes(batch);
  for (std::uint32_t b = 0; b < batch; ++b) {
    sampling.seed = b;
    auto slot = engine.acquire(prompt, sampling);
    if (!slot) throw std::runtime_error(slot.error().message);
    work[b].slot = *slot;
  }
  Times prompts, steps, decodes;
  for (engine::StepWork& item : work) {
    while (const std::uint32_t left = engine.prefill_left(item.slot)) {
      item.prefill_tokens = std::min(left, engine.info().max_rows_per_step);
      prompts.measure([&] { engine.step({&item, 1}, {outcomes.data(), 1}); });
    }
    item.prefill_tokens = 0;
  }
  // The first chunk also has the step that the prompt ended with.
  std::vector<std::vector<float>> pcm(batch, std::vector<float>(engine.max_decode_samples(kChunk + 1, true)));
  std::vector<engine::DecodeWork> decode(batch);
  for (std::uint32_t done = 1; done < arguments.steps;) {
    const std::uint32_t chunk = std::min(kChunk, arguments.steps - done);
    for (std::uint32_t i = 0; i < chunk; ++i) steps.measure([&] { engine.step(work, outcomes); });
    done += chunk;
    for (std::uint32_t b = 0; b < batch; ++b) {
      decode[b] = {.slot = work[b].slot, .steps = engine.pending_steps(work[b].slot), .last = done == arguments.steps, .pcm = pcm[b]};
    }
    decodes.measure([&] { engine.decode(decode); });
  }
  for (const engine::StepWork& item : work) engine.release(item.slot);
  const double audio_ms = 1000.0 * batch * arguments.steps * engine.info().samples_per_step / engine.info().sample_rate;
  Json result{{"streams", batch}, {"audio_x_real_time", audio_ms / (prompts.total() + steps.total() + decodes.total())}};
  result["prompt"] = prompts.summary();
  result["step"] = steps.summary();
  result["decode_24_steps"] = decodes.summary();
  return result;
}

Json run(const Arguments& arguments) {
  model::ModelOptions options;
  options.max_slots = *std::max_element(arguments.batches.begin(), arguments.batches.end());
  options.max_context = arguments.prompt + arguments.steps;
  options.device = arguments.device;
  options.device_map = arguments.device_map;
  options.precision = {.weights = format_of(arguments.weights), .kv = format_of(arguments.kv), .sound = format_of(arguments.sound)};
  options.verify_hashes = false;
  const auto begin = std::chrono::steady_clock::now();
  const model::LoadedModel loaded = model::load_model(engine::read_manifest(arguments.model), options);
  engine::StepEngine& engine = *loaded.engines.front();
  Json report{{"model", engine.info().model},
              {"device", engine.info().device},
              {"precision", engine.info().precision},
              {"prompt_positions", arguments.prompt},
              {"steps", arguments.steps},
              {"load_seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()}};
  for (const model::GpuMemory& gpu : model::gpu_memory()) report["gpu_memory_bytes"][gpu.device] = gpu.used_bytes;
  measure(engine, arguments, 1);  // warms caches and clocks
  for (const std::uint32_t batch : arguments.batches) report["batches"].push_back(measure(engine, arguments, batch));
  return report;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Times of one engine, as JSON."};
  app.add_option("--model", arguments.model, "model folder")->capture_default_str();
  app.add_option("--device", arguments.device, "auto, cpu, cuda, cuda:1, cpu-tensors")->capture_default_str();
  app.add_option("--device-map", arguments.device_map, "as the setting model.device_map");
  app.add_option("--weights", arguments.weights, "auto, float32, bfloat16, float16, int8")->capture_default_str();
  app.add_option("--kv", arguments.kv, "number format of keys and values")->capture_default_str();
  app.add_option("--sound", arguments.sound, "number format of the sound networks")->capture_default_str();
  app.add_option("--batches", arguments.batches, "numbers of utterances")->delimiter(',')->capture_default_str();
  app.add_option("--prompt", arguments.prompt, "positions of the prompt")->capture_default_str();
  app.add_option("--steps", arguments.steps, "steps of each utterance")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << run(arguments).dump(2) << '\n';
  } catch (const std::exception& error) {
    std::cerr << "engine_bench: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
