// How far bfloat16 sound and decoding with less lookahead are from the exact float32 waveform, in dB of signal to noise, on utterances
// that the model itself generates: the recorded sentences of the bundled voice, random prompts of any other model.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cpu_step_engine.h"
#include "gpt_weights.h"
#include "safetensors.h"
#include "sound_model.h"
#include "voices.h"

namespace {

using namespace tts;
using namespace tts::model;
using Json = nlohmann::json;

struct Utterance {
  engine::UtterancePrompt prompt;
  engine::SamplingParams sampling;
};

struct Variant {
  std::string name;
  ops::WeightFormat format = ops::WeightFormat::kFloat32;
  std::uint32_t lookahead = engine::kExactLookahead;
};

std::vector<Utterance> recorded_sentences(const engine::Manifest& manifest) {
  std::map<std::string, engine::Voice> voices;
  for (engine::Voice& voice : load_voices(manifest, false)) voices.emplace(voice.id, voice);
  std::vector<Utterance> utterances;
  const Json recorded = Json::parse(std::ifstream(TTS_SOURCE_DIR "/tests/golden/data/nano_greedy.json"));
  for (const Json& sentence : recorded.at("sentences")) {
    for (const std::uint64_t seed : {1U, 2U}) {
      Utterance u{.prompt = {}, .sampling = manifest.sampling};
      u.prompt.tokens = sentence.at("token_ids").get<std::vector<std::int32_t>>();
      u.prompt.speaker = voices.at(sentence.at("voice")).speaker;
      u.prompt.speaker_token = 2;
      u.sampling.seed = seed;
      utterances.push_back(u);
    }
  }
  return utterances;
}

std::vector<Utterance> random_prompts(const engine::Manifest& manifest) {
  std::mt19937 random(1);
  std::vector<Utterance> utterances;
  for (const std::uint64_t seed : {1U, 2U}) {
    Utterance u{.prompt = {}, .sampling = manifest.sampling};
    for (int i = 0; i < 20; ++i) u.prompt.tokens.push_back(static_cast<std::int32_t>(random() % manifest.architecture.gpt.num_text_tokens));
    u.sampling.seed = seed;
    u.sampling.min_steps = u.sampling.max_steps = 96;
    utterances.push_back(u);
  }
  return utterances;
}

// Samples of the utterance, decoded four steps at a time.
std::vector<float> speak(CpuStepEngine& engine, const Utterance& utterance, std::uint32_t lookahead) {
  const engine::SlotId slot = engine.acquire(utterance.prompt, utterance.sampling).value();
  std::vector<float> pcm;
  for (bool stopped = false; !stopped;) {
    const engine::StepWork work{.slot = slot, .prefill_tokens = std::min(engine.prefill_left(slot), 64U)};
    engine::StepOutcome outcome;
    engine.step({&work, 1}, {&outcome, 1});
    stopped = outcome.stop != engine::StopReason::kNone;
    const std::uint32_t steps = engine.pending_steps(slot);
    if (!stopped && steps < 4) continue;
    const std::size_t before = pcm.size();
    pcm.resize(before + engine.max_decode_samples(steps, stopped));
    engine::DecodeWork decode{.slot = slot, .steps = steps, .last = stopped, .lookahead = lookahead, .pcm = std::span(pcm).subspan(before)};
    engine.decode({&decode, 1});
    pcm.resize(before + decode.samples);
  }
  engine.release(slot);
  return pcm;
}

struct Energies {
  double signal = 0, noise = 0;

  void add(const float* exact, const float* other, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const double difference = double{exact[i]} - other[i];
      signal += double{exact[i]} * exact[i];
      noise += difference * difference;
    }
  }
  double decibels() const { return 10 * std::log10(signal / std::max(noise, 1e-30)); }
};

Json compare(const std::vector<std::vector<float>>& exact, const std::vector<std::vector<float>>& other, std::size_t segment) {
  Energies all;
  std::vector<double> utterances, segments;
  for (std::size_t u = 0; u < exact.size(); ++u) {
    if (exact[u].size() != other[u].size()) throw std::runtime_error("the utterances differ in length");
    Energies one;
    one.add(exact[u].data(), other[u].data(), exact[u].size());
    utterances.push_back(one.decibels());
    all.signal += one.signal, all.noise += one.noise;
    const double loud = 1e-3 * one.signal / static_cast<double>(exact[u].size()) * static_cast<double>(segment);  // 30 dB below the mean
    for (std::size_t at = 0; at + segment <= exact[u].size(); at += segment) {
      Energies piece;
      piece.add(exact[u].data() + at, other[u].data() + at, segment);
      if (piece.signal > loud) segments.push_back(piece.decibels());
    }
  }
  std::sort(utterances.begin(), utterances.end());
  std::sort(segments.begin(), segments.end());
  return {{"snr_db", all.decibels()},
          {"worst_utterance_db", utterances.front()},
          {"median_segment_db", segments[segments.size() / 2]},
          {"p5_segment_db", segments[segments.size() / 20]}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Distance of the sound from exact float32 decoding, by number format and lookahead.");
  std::vector<std::string> models{TTS_SOURCE_DIR "/models/nano"};
  std::vector<std::uint32_t> lookaheads{2, 4, 6, 8, 10, 12, 16, 24};
  std::uint32_t threads = 2;
  std::string output;
  app.add_option("--model", models, "model folders")->capture_default_str();
  app.add_option("--lookahead", lookaheads, "steps")->capture_default_str();
  app.add_option("--threads", threads, "compute threads")->capture_default_str();
  app.add_option("--output", output, "JSON file for the results");
  CLI11_PARSE(app, argc, argv);

  Json results = Json::array();
  for (const std::string& folder : models) {
    const engine::Manifest manifest = engine::read_manifest(folder);
    const std::vector<Utterance> utterances = manifest.name == "nano" ? recorded_sentences(manifest) : random_prompts(manifest);
    std::vector<Variant> variants{{.name = "exact"}, {.name = "exact", .format = ops::WeightFormat::kBfloat16}};
    for (const std::uint32_t lookahead : lookaheads) variants.push_back({.name = "lookahead " + std::to_string(lookahead), .lookahead = lookahead});
    std::vector<std::vector<float>> exact;
    std::printf("%s, %zu utterances: dB of all, worst utterance, median and 5th percentile of loud 21 ms\n", manifest.name.c_str(),
                utterances.size());
    std::unique_ptr<CpuStepEngine> engine;
    ops::WeightFormat loaded = ops::WeightFormat::kInt8;
    std::stable_sort(variants.begin() + 1, variants.end(), [](const Variant& a, const Variant& b) { return a.format < b.format; });
    for (const Variant& variant : variants) {
      if (engine == nullptr || loaded != variant.format) {
        engine.reset();
        engine = std::make_unique<CpuStepEngine>(
            load_gpt_weights(manifest.architecture.gpt, SafetensorsFile(manifest.files.at("gpt").path),
                             SafetensorsFile(manifest.files.at("embed").path), ops::WeightFormat::kFloat32),
            load_sound_model(manifest, false, variant.format),
            CpuEngineOptions{.model = manifest.name,
                             .precision = {},
                             .max_slots = 1,
                             .max_context = 1500,
                             .max_decode_steps = 8,
                             .compute_threads = threads,
                             .speaker_precision = manifest.speaker_precision});
        loaded = variant.format;
      }
      std::vector<std::vector<float>> pcm;
      for (const Utterance& utterance : utterances) pcm.push_back(speak(*engine, utterance, variant.lookahead));
      if (exact.empty()) {
        exact = std::move(pcm);
        continue;
      }
      Json row = compare(exact, pcm, engine->info().samples_per_step);
      row["model"] = manifest.name;
      row["format"] = variant.format == ops::WeightFormat::kFloat32 ? "float32" : "bfloat16";
      row["decoding"] = variant.name;
      std::printf("  %-9s %-13s %6.1f %6.1f %6.1f %6.1f\n", row["format"].get<std::string>().c_str(), variant.name.c_str(),
                  row["snr_db"].get<double>(), row["worst_utterance_db"].get<double>(), row["median_segment_db"].get<double>(),
                  row["p5_segment_db"].get<double>());
      std::fflush(stdout);
      results.push_back(row);
    }
  }
  if (!output.empty()) {
    std::ofstream file(output);
    file << results.dump(1) << '\n';
    if (!file) {
      std::fprintf(stderr, "cannot write %s\n", output.c_str());
      return 1;
    }
  }
  return 0;
}
