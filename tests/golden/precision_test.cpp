// What the smaller number formats cost: hidden states and greedy codes against float32, on the bundled voice and on the goldens' model.
// The bounds are a little above what was measured (src/docs/decisions/precision.md), so that a format that got worse is noticed.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "golden_gpt.h"
#include "gpt.h"
#include "speaker_norm.h"

namespace tts::model {
namespace {

struct Case {
  const char* name;
  ops::WeightFormat weights;
  ops::KvFormat kv;
  double hidden_error;  // root mean square, over that of the hidden states
  double disagreement;  // share of greedy codes that differ
};

// One prompt and the codes that follow it.
struct Passage {
  std::vector<std::vector<float>> input;  // of every position
  std::size_t first = 0;                  // position that predicts the first code
};

struct Outcome {
  std::vector<float> hidden;         // of every predicting position
  std::vector<std::uint32_t> codes;  // the most probable ones
};

Outcome run(const GptWeights& weights, ops::KvFormat kv, const std::vector<Passage>& passages) {
  ops::ComputePool pool(2);
  std::size_t longest = 0;
  for (const Passage& passage : passages) longest = std::max(longest, passage.input.size());
  const auto positions = static_cast<std::uint32_t>(longest);
  Gpt gpt(weights, pool, {.slots = positions, .positions = positions, .rows = positions, .kv = kv});
  Outcome outcome;
  for (const Passage& passage : passages) {
    std::vector<GptRow> rows;
    for (std::size_t p = 0; p < passage.input.size(); ++p) {
      std::copy(passage.input[p].begin(), passage.input[p].end(), gpt.input(p).begin());
      rows.push_back({.slot = 0, .position = static_cast<std::uint32_t>(p), .head = p < passage.first ? GptHead::kNone : GptHead::kCode});
    }
    gpt.forward(rows);
    for (std::size_t p = passage.first; p < rows.size(); ++p) {
      const auto hidden = gpt.hidden(p), logits = gpt.logits(p);
      outcome.hidden.insert(outcome.hidden.end(), hidden.begin(), hidden.end());
      const std::size_t vocabulary = weights.sizes.num_audio_tokens;
      for (std::size_t q = 0; q < engine::kCodebooks; ++q) {
        const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(q * vocabulary),
                   end = begin + static_cast<std::ptrdiff_t>(vocabulary);
        outcome.codes.push_back(static_cast<std::uint32_t>(std::max_element(begin, end) - begin));
      }
    }
  }
  return outcome;
}

void check(const char* model, const std::function<GptWeights(ops::WeightFormat)>& load, const std::vector<Passage>& passages,
           const std::vector<Case>& cases) {
  const Outcome exact = run(load(ops::WeightFormat::kFloat32), ops::KvFormat::kFloat32, passages);
  for (const Case& c : cases) {
    const Outcome outcome = run(load(c.weights), c.kv, passages);
    double error = 0.0, squares = 0.0;
    for (std::size_t i = 0; i < exact.hidden.size(); ++i) {
      error += (double{outcome.hidden[i]} - exact.hidden[i]) * (double{outcome.hidden[i]} - exact.hidden[i]);
      squares += double{exact.hidden[i]} * exact.hidden[i];
    }
    std::size_t different = 0;
    for (std::size_t i = 0; i < exact.codes.size(); ++i) different += outcome.codes[i] != exact.codes[i] ? 1 : 0;
    const double hidden_error = std::sqrt(error / squares),
                 disagreement = static_cast<double>(different) / static_cast<double>(exact.codes.size());
    std::printf("%s, %s: hidden states off by %.5f, %.2f %% of %zu greedy codes differ\n", model, c.name, hidden_error, 100 * disagreement,
                exact.codes.size());
    EXPECT_LE(hidden_error, c.hidden_error) << model << ", " << c.name;
    EXPECT_LE(disagreement, c.disagreement) << model << ", " << c.name;
    EXPECT_GT(hidden_error, 0.0) << "this format rounds nothing";
  }
}

constexpr auto kF32 = ops::WeightFormat::kFloat32;
constexpr auto kBf16 = ops::WeightFormat::kBfloat16;
constexpr auto kInt8 = ops::WeightFormat::kInt8;
using Kv = ops::KvFormat;

// The recorded greedy sentences, each code given as the reference chose it.
TEST(Precision, BundledVoice) {
  const engine::Manifest manifest = engine::read_manifest(std::filesystem::path(TTS_SOURCE_DIR) / "models/nano");
  const SafetensorsFile speakers(manifest.files.at("speakers").path), gpt_file(manifest.files.at("gpt").path),
      embed_file(manifest.files.at("embed").path);
  const auto load = [&](ops::WeightFormat format) { return load_gpt_weights(manifest.architecture.gpt, gpt_file, embed_file, format); };
  const GptWeights weights = load(kF32);
  std::vector<Passage> passages;
  const nlohmann::json golden = golden_json("nano_greedy.json");
  for (const nlohmann::json& sentence : golden.at("sentences")) {
    Passage passage;
    const auto voice = std::find_if(manifest.voices.begin(), manifest.voices.end(),
                                    [&](const engine::ManifestVoice& v) { return v.id == sentence.at("voice"); });
    const std::vector<float> speaker =
        normalise_speaker(widen(speakers.tensors().find(voice->speaker_value)->second), manifest.speaker_precision);
    constexpr std::int32_t kSpeakerToken = 2;
    for (const std::int32_t token : sentence.at("token_ids").get<std::vector<std::int32_t>>()) {
      passage.input.emplace_back(weights.sizes.hidden_size);
      if (token == kSpeakerToken) {
        passage.input.back() = speaker;
      } else {
        weights.text_embedding.copy_row(static_cast<std::size_t>(token), passage.input.back());
      }
    }
    passage.first = passage.input.size() - 1;
    for (const engine::CodeFrame& codes : sentence.at("codes").get<std::vector<engine::CodeFrame>>()) {
      passage.input.emplace_back(weights.sizes.hidden_size);
      weights.code_embedding[0].copy_row(codes[0], passage.input.back());
      for (std::size_t q = 1; q < codes.size(); ++q) weights.code_embedding[q].add_row(codes[q], passage.input.back());
    }
    passages.push_back(std::move(passage));
  }
  check("bundled voice", load, passages,
        {{"bfloat16 weights", kBf16, Kv::kFloat32, 0.006, 0.015},
         {"bfloat16 keys and values", kF32, Kv::kBfloat16, 0.006, 0.01},
         {"bfloat16 both", kBf16, Kv::kBfloat16, 0.009, 0.02},
         {"int8 weights", kInt8, Kv::kFloat32, 0.02, 0.05},
         {"int8 keys and values", kF32, Kv::kInt8, 0.016, 0.03},
         {"int8 both", kInt8, Kv::kInt8, 0.026, 0.05}});
}

// The recorded prompts of the random model.
TEST(Precision, GoldenModel) {
  std::vector<Passage> passages;
  for (const char* name : {"prefill_b1", "prefill_zero_shot"}) {
    const testing::GoldenFile golden(name);
    const std::size_t length = golden.shape("emb")[1], hidden = golden.shape("emb")[2];
    const std::vector<float> emb = golden.floats("emb");
    Passage passage;
    for (std::size_t at = 0; at < length; ++at) {
      const auto row = emb.begin() + static_cast<std::ptrdiff_t>(at * hidden);
      passage.input.emplace_back(row, row + static_cast<std::ptrdiff_t>(hidden));
    }
    passages.push_back(std::move(passage));
  }
  check("goldens' model", [](ops::WeightFormat format) { return load_golden_gpt(std::nullopt, format); }, passages,
        {{"bfloat16 both", kBf16, Kv::kBfloat16, 0.015, 0.05}, {"int8 both", kInt8, Kv::kInt8, 0.045, 0.1}});
}

}  // namespace
}  // namespace tts::model
