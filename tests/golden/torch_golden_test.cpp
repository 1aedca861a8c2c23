// The tensor engine on CPU tensors against the reference's numbers. Tolerance of hidden states in float32: 5e-5, tokens equal. In
// rounded formats: how far hidden states and greedy codes of the bundled voice may go.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rms_norm.h>
#include <c10/core/InferenceMode.h>

#include "golden_gpt.h"
#include "torch/tensor_step_engine.h"

namespace tts::model {
namespace {

constexpr float kHiddenTolerance = 5e-5F;

std::shared_ptr<const TensorModel> load_tensors(const engine::Manifest& manifest, const TensorFormats& formats = {}) {
  const c10::InferenceMode inference;
  at::set_num_threads(1);
  const engine::GptSizes& sizes = manifest.architecture.gpt;
  return std::make_shared<TensorModel>(TensorModel{
      .name = manifest.name,
      .sample_rate = manifest.architecture.sample_rate,
      .speaker_precision = manifest.speaker_precision,
      .gpt = load_gpt_tensors(sizes, SafetensorsFile(manifest.files.at("gpt").path), SafetensorsFile(manifest.files.at("embed").path),
                              formats, {{0, sizes.num_hidden_layers, kHost}}, c10::kCPU),
      .sound = load_sound_tensors(manifest, formats.sound, c10::kCPU, false)});
}

std::unique_ptr<TensorStepEngine> make_engine(std::shared_ptr<const TensorModel> model) {
  return std::make_unique<TensorStepEngine>(std::move(model), make_cpu_runtime(),
                                            TensorEngineOptions{.max_slots = 4,
                                                                .max_context = 400,
                                                                .max_prefill_rows = 64,
                                                                .max_decode_steps = 32,
                                                                .preferred_batch_sizes = {},
                                                                .run_ahead = {}});
}

// Prompts of one file, one after the other, each without its padding.
void check_prefill(const std::string& name) {
  const c10::InferenceMode inference;
  const testing::GoldenFile golden(name);
  const std::size_t batch = golden.shape("input_ids")[0], length = golden.shape("input_ids")[1];
  const std::vector<std::int32_t> attention = golden.ints("attention_mask");
  const std::vector<float> emb = golden.floats("emb"), expected = golden.floats("final_hidden");
  const auto model = load_tensors(testing::golden_manifest());
  const GptTensors& weights = model->gpt;
  const TensorGpt gpt(weights, 2, static_cast<std::int64_t>(length));
  const std::int64_t hidden = weights.hidden();
  for (std::size_t b = 0; b < batch; ++b) {
    std::size_t first = b * length;
    while (attention[first] == 0) ++first;
    const auto count = static_cast<std::int64_t>((b + 1) * length - first);
    const at::Tensor position = at::arange(count, at::kLong);
    const std::span<const float> input =
        std::span(emb).subspan(first * static_cast<std::size_t>(hidden), static_cast<std::size_t>(count * hidden));
    const at::Tensor x = gpt.forward(0, to_tensor(input, {count, hidden}, at::kFloat, c10::kCPU),
                                     {.place = position + gpt.place(1, 0),
                                      .position = position,
                                      .lane = at::ones({1}, at::kLong),
                                      .length = count,
                                      .context = gpt.positions()});
    const at::Tensor normed = at::rms_norm(x, {hidden}, weights.final_norm, weights.sizes.rms_norm_eps).contiguous();
    expect_close({normed.const_data_ptr<float>(), static_cast<std::size_t>(normed.numel())},
                 std::span(expected).subspan(first * static_cast<std::size_t>(hidden), static_cast<std::size_t>(count * hidden)),
                 kHiddenTolerance, name + ", row " + std::to_string(b));
  }
}

TEST(TorchGolden, PromptAlone) { check_prefill("prefill_b1"); }
TEST(TorchGolden, PromptsOfDifferentLength) { check_prefill("prefill_b3_leftpad"); }
TEST(TorchGolden, PromptWithReferenceAudio) { check_prefill("prefill_zero_shot"); }

// Greedy generations of the small model, both stages.
void check_greedy(const std::string& name, const std::string& file) {
  const testing::GoldenFile golden(file);
  const nlohmann::json meta = golden_json("meta.json"), prompts = golden_json("gen_prompts.json");
  const auto entry =
      std::find_if(meta.at("generation").begin(), meta.at("generation").end(), [&](const auto& e) { return e.at("name") == name; });
  const nlohmann::json &prompt = prompts.at("cases").at(name), &parameters = entry->at("params");
  const bool text_stage = name.starts_with("refine");
  const std::size_t batch = prompt.at("rows").size(), codebooks = text_stage ? 1 : engine::kCodebooks;
  const std::vector<std::int32_t> expected = golden.ints("token");
  const auto engine = make_engine(load_tensors(testing::golden_manifest()));
  std::vector<engine::StepWork> work;
  std::vector<engine::SlotId> slots;
  for (std::size_t b = 0; b < batch; ++b) {
    engine::UtterancePrompt utterance;
    utterance.tokens = prompt.at("rows")[b].get<std::vector<std::int32_t>>();
    utterance.stage = text_stage ? engine::Stage::kText : engine::Stage::kCode;
    utterance.end_token = prompts.at("Ebreak");
    if (!prompt.at("speaker").is_null()) {
      utterance.speaker = std::make_shared<std::vector<float>>(
          testing::GoldenFile("speaker").floats("spk_emb_" + std::to_string(prompt.at("speaker").get<int>())));
      utterance.speaker_token = prompts.at("spk_emb");
    }
    engine::SamplingParams sampling;
    sampling.greedy = true;
    sampling.temperature.fill(parameters.at("temperature").get<float>());
    sampling.repetition_penalty = parameters.at("repetition_penalty");
    sampling.min_steps = parameters.at("min_new_token");
    sampling.max_steps = parameters.at("max_new_token");
    slots.push_back(engine->acquire(utterance, sampling).value());
    work.push_back({.slot = slots.back(), .prefill_tokens = engine->prefill_left(slots.back())});
  }
  std::vector<engine::StepOutcome> outcomes(batch);
  for (std::size_t step = 0; step < entry->at("steps"); ++step) {
    engine->step(work, outcomes);
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t q = 0; q < codebooks; ++q) {
        const std::int32_t token = text_stage ? outcomes[b].token : outcomes[b].codes[q];
        ASSERT_EQ(token, expected[(step * batch + b) * codebooks + q]) << name << ", step " << step << ", row " << b << ", codebook " << q;
      }
      work[b].prefill_tokens = 0;
      if (const std::uint32_t pending = engine->pending_steps(slots[b]); pending == engine->info().max_pending_steps) {
        std::vector<float> pcm(engine->max_decode_samples(pending, false));
        engine::DecodeWork decode{.slot = slots[b], .steps = pending, .pcm = pcm};
        engine->decode({&decode, 1});
      }
    }
  }
}

TEST(TorchGolden, GreedyAlone) { check_greedy("greedy_b1", "gen_greedy_b1"); }
TEST(TorchGolden, GreedyInABatch) { check_greedy("greedy_b3", "gen_greedy_b3"); }
TEST(TorchGolden, RefineGreedy) { check_greedy("refine_greedy_b1", "refine_greedy_b1"); }

// Of the bundled voice's greedy codes, each utterance alone, up to and with the first step that differs from the reference's: from there
// on it is another utterance.
struct Agreement {
  std::size_t codes = 0, equal = 0, whole = 0, utterances = 0;
};

Agreement agreement(const TensorFormats& formats, std::size_t sentences) {
  const engine::Manifest manifest = engine::read_manifest(std::filesystem::path(TTS_SOURCE_DIR) / "models/nano");
  const nlohmann::json golden = golden_json("nano_greedy.json");
  const SafetensorsFile speakers(manifest.files.at("speakers").path);
  const auto engine = make_engine(load_tensors(manifest, formats));
  engine::SamplingParams sampling;
  sampling.greedy = true;
  sampling.min_steps = golden.at("min_steps");
  sampling.max_steps = golden.at("max_steps");
  Agreement result;
  for (std::size_t s = 0; s < std::min(sentences, golden.at("sentences").size()); ++s) {
    const nlohmann::json& sentence = golden.at("sentences")[s];
    engine::UtterancePrompt prompt;
    prompt.tokens = sentence.at("token_ids").get<std::vector<std::int32_t>>();
    prompt.speaker_token = 2;  // [spk_emb] in the model's symbols
    for (const engine::ManifestVoice& voice : manifest.voices) {
      if (voice.id == sentence.at("voice"))
        prompt.speaker = std::make_shared<std::vector<float>>(widen(speakers.tensors().find(voice.speaker_value)->second));
    }
    const auto expected = sentence.at("codes").get<std::vector<engine::CodeFrame>>();
    const engine::SlotId slot = engine->acquire(prompt, sampling).value();
    std::vector<engine::CodeFrame> codes;
    engine::StepOutcome outcome;
    while (outcome.stop == engine::StopReason::kNone) {
      const engine::StepWork work{.slot = slot, .prefill_tokens = std::min(engine->prefill_left(slot), 68U)};
      engine->step({&work, 1}, {&outcome, 1});
      if (!outcome.sampled) continue;
      if (outcome.stop != engine::StopReason::kEndToken) codes.push_back(outcome.codes);
      if (engine->pending_steps(slot) < engine->info().max_pending_steps) continue;
      std::vector<float> pcm(engine->max_decode_samples(32, false));
      engine::DecodeWork decode{.slot = slot, .steps = 32, .pcm = pcm};
      engine->decode({&decode, 1});
    }
    engine->release(slot);
    ++result.utterances;
    result.whole += codes == expected;
    for (std::size_t t = 0; t < std::min(codes.size(), expected.size()); ++t) {
      std::size_t equal = 0;
      for (std::size_t q = 0; q < engine::kCodebooks; ++q) equal += codes[t][q] == expected[t][q];
      result.codes += engine::kCodebooks;
      result.equal += equal;
      if (equal < engine::kCodebooks) break;  // from here on it is another utterance
    }
  }
  return result;
}

TEST(TorchGolden, TheBundledVoicesGreedyCodesAreTheReferences) {
  const Agreement got = agreement({}, 10);
  EXPECT_EQ(got.whole, got.utterances);
  EXPECT_GE(got.utterances, 10U);
}

TEST(TorchGolden, RoundedFormatsAgreeWithTheReferenceAlmostAlways) {
  for (const auto& [formats, least, name] :
       {std::tuple{TensorFormats{.compute = at::kHalf, .kv = at::kHalf, .sound = at::kHalf}, 0.995, "fp16"},
        {TensorFormats{.compute = at::kBFloat16, .kv = at::kBFloat16, .sound = at::kHalf}, 0.97, "bf16"},
        {TensorFormats{.compute = at::kBFloat16, .int8_weights = true, .kv = at::kBFloat16, .sound = at::kHalf}, 0.96, "int8"}}) {
    const Agreement got = agreement(formats, 5);
    EXPECT_GE(static_cast<double>(got.equal) / static_cast<double>(got.codes), least) << name;
  }
}

}  // namespace
}  // namespace tts::model
