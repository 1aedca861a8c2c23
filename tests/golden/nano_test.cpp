// The bundled voice through the step engine: the reference's greedy codes, and bits that do not depend on company.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cpu_step_engine.h"
#include "golden_gpt.h"
#include "precision.h"
#include "safetensors.h"
#include "support/golden_data.h"

namespace tts::model {
namespace {

constexpr std::int32_t kSpeakerToken = 2;  // [spk_emb] in the model's symbols
constexpr CpuEngineOptions kOptions{.model = "nano",
                                    .precision = {},
                                    .sample_rate = 24000,
                                    .max_slots = 16,
                                    .max_context = 400,
                                    .max_prefill_rows = 64,
                                    .max_decode_steps = 32,
                                    .compute_threads = 2,
                                    .kv = ops::KvFormat::kFloat32,
                                    .prefix_cache_bytes = 0,
                                    .speaker_precision = engine::SpeakerPrecision::kFloat32};

class Nano : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    manifest_ = engine::read_manifest(std::filesystem::path(TTS_SOURCE_DIR) / "models/nano");
    const SafetensorsFile speakers(manifest_.files.at("speakers").path);
    for (const engine::ManifestVoice& voice : manifest_.voices) {
      speakers_[voice.id] = std::make_shared<std::vector<float>>(widen(speakers.tensors().find(voice.speaker_value)->second));
    }
  }

  static std::unique_ptr<CpuStepEngine> make_engine(CpuEngineOptions options = kOptions, const Formats& formats = {}) {
    GptWeights weights = load_gpt_weights(manifest_.architecture.gpt, SafetensorsFile(manifest_.files.at("gpt").path),
                                          SafetensorsFile(manifest_.files.at("embed").path), formats.weights);
    options.kv = formats.kv;
    return std::make_unique<CpuStepEngine>(std::move(weights), load_sound_model(manifest_, false, formats.sound), options);
  }

  struct Utterance {
    engine::UtterancePrompt prompt;
    engine::SamplingParams sampling;
    std::vector<engine::CodeFrame> codes;
    std::vector<float> pcm;
    bool ended = false;
    engine::SlotId slot;
  };

  static Utterance utterance(const nlohmann::json& sentence, const engine::SamplingParams& sampling) {
    Utterance u;
    u.prompt.tokens = sentence.at("token_ids").get<std::vector<std::int32_t>>();
    u.prompt.speaker = speakers_.at(sentence.at("voice"));
    u.prompt.speaker_token = kSpeakerToken;
    u.sampling = sampling;
    return u;
  }

  // Runs all of them; number i joins at step 3 i, prompts go in chunks of `chunk`.
  static void run(CpuStepEngine& engine, std::vector<Utterance>& utterances, std::uint32_t chunk) {
    std::size_t left = utterances.size();
    std::vector<Utterance*> active;
    for (std::size_t now = 0; left > 0; ++now) {
      if (now % 3 == 0 && now / 3 < utterances.size()) {
        Utterance& u = utterances[now / 3];
        u.slot = engine.acquire(u.prompt, u.sampling).value();
        active.push_back(&u);
      }
      std::vector<engine::StepWork> work;
      std::uint32_t budget = engine.info().max_rows_per_step - engine.info().max_slots;
      std::vector<Utterance*> taking;
      for (Utterance* u : active) {
        const std::uint32_t prompt_rows = std::min({engine.prefill_left(u->slot), chunk, budget});
        if (prompt_rows == 0 && engine.prefill_left(u->slot) > 0) continue;
        budget -= prompt_rows;
        work.push_back({.slot = u->slot, .prefill_tokens = prompt_rows});
        taking.push_back(u);
      }
      std::vector<engine::StepOutcome> outcomes(work.size());
      engine.step(work, outcomes);
      for (std::size_t i = 0; i < taking.size(); ++i) {
        Utterance& u = *taking[i];
        if (!outcomes[i].sampled) continue;
        const bool stopped = outcomes[i].stop != engine::StopReason::kNone;
        u.ended = outcomes[i].stop == engine::StopReason::kEndToken;
        if (!u.ended) u.codes.push_back(outcomes[i].codes);
        if (!stopped && engine.pending_steps(u.slot) < 24) continue;
        const std::size_t before = u.pcm.size();
        const std::uint32_t steps = engine.pending_steps(u.slot);
        u.pcm.resize(before + engine.max_decode_samples(steps, stopped));
        engine::DecodeWork decode{.slot = u.slot, .steps = steps, .last = stopped, .pcm = std::span(u.pcm).subspan(before)};
        engine.decode({&decode, 1});
        u.pcm.resize(before + decode.samples);
        if (!stopped) continue;
        engine.release(u.slot);
        std::erase(active, &u);
        --left;
      }
    }
  }

  static inline engine::Manifest manifest_;
  static inline std::map<std::string, engine::SpeakerVector> speakers_;
};

TEST_F(Nano, GreedyCodesAreTheReferences) {
  const nlohmann::json golden = golden_json("nano_greedy.json");
  engine::SamplingParams sampling;
  sampling.greedy = true;
  sampling.min_steps = golden.at("min_steps");
  sampling.max_steps = golden.at("max_steps");
  std::vector<Utterance> utterances;
  for (const nlohmann::json& sentence : golden.at("sentences")) utterances.push_back(utterance(sentence, sampling));
  ASSERT_GE(utterances.size(), 10U);
  run(*make_engine(), utterances, 64);
  for (std::size_t i = 0; i < utterances.size(); ++i) {
    const nlohmann::json& sentence = golden.at("sentences")[i];
    EXPECT_EQ(utterances[i].codes, sentence.at("codes").get<std::vector<engine::CodeFrame>>()) << sentence.at("text");
    EXPECT_EQ(utterances[i].ended, sentence.at("ended").get<bool>()) << sentence.at("text");
    EXPECT_EQ(utterances[i].pcm.size(), (2 * utterances[i].codes.size() - 1) * 256);
  }
}

TEST_F(Nano, AnUtteranceIsBitEqualAloneAndAmongFifteenOthers) {
  const nlohmann::json golden = golden_json("nano_greedy.json");
  engine::SamplingParams sampling = manifest_.sampling;
  sampling.repetition_penalty = 1.05F;
  sampling.temperature = {0.5F, 0.5F, 0.7F, 0.7F};
  sampling.max_steps = 60;
  std::vector<Utterance> together;
  for (std::size_t i = 0; i < 16; ++i) {
    sampling.seed = i;
    together.push_back(utterance(golden.at("sentences")[i % golden.at("sentences").size()], sampling));
    if (i % 5 == 4) together.back().prompt.mel_path = engine::MelPath::kCodes;
  }
  const std::vector<Utterance> fresh = together;
  CpuEngineOptions one_thread = kOptions;
  one_thread.compute_threads = 1;
  for (const Formats& formats : {Formats{}, Formats{ops::WeightFormat::kBfloat16, ops::KvFormat::kBfloat16, ops::WeightFormat::kBfloat16},
                                 Formats{ops::WeightFormat::kInt8, ops::KvFormat::kInt8, ops::WeightFormat::kBfloat16}}) {
    together = fresh;
    run(*make_engine(kOptions, formats), together, 7);
    const auto engine = make_engine(one_thread, formats);
    for (std::size_t i = 0; i < fresh.size(); i += 3) {
      std::vector<Utterance> alone{fresh[i]};
      run(*engine, alone, 64);
      EXPECT_EQ(alone[0].codes, together[i].codes) << "utterance " << i << ", " << describe(formats);
      EXPECT_EQ(alone[0].pcm, together[i].pcm) << "utterance " << i << ", " << describe(formats);
      EXPECT_FALSE(alone[0].pcm.empty());
    }
  }
}

// What is said is the same; the sound differs by rounding alone. Measured: see src/docs/decisions/streaming_decode.md.
TEST_F(Nano, Bfloat16SoundIsFortyDecibelsAboveItsError) {
  const nlohmann::json golden = golden_json("nano_greedy.json");
  engine::SamplingParams sampling;
  sampling.greedy = true;
  sampling.min_steps = golden.at("min_steps");
  sampling.max_steps = golden.at("max_steps");
  std::vector<float> exact, rounded;
  for (const ops::WeightFormat format : {ops::WeightFormat::kFloat32, ops::WeightFormat::kBfloat16}) {
    std::vector<Utterance> utterances;
    for (const nlohmann::json& sentence : golden.at("sentences")) utterances.push_back(utterance(sentence, sampling));
    run(*make_engine(kOptions, {.sound = format}), utterances, 64);
    std::vector<float>& all = format == ops::WeightFormat::kFloat32 ? exact : rounded;
    for (const Utterance& u : utterances) all.insert(all.end(), u.pcm.begin(), u.pcm.end());
  }
  EXPECT_GE(testing::signal_to_noise(exact, rounded), 40.0);
}

TEST_F(Nano, CannotRefineText) {
  Utterance u = utterance(golden_json("nano_greedy.json").at("sentences")[0], manifest_.sampling);
  u.prompt.stage = engine::Stage::kText;
  u.prompt.end_token = 1;
  const auto result = make_engine()->acquire(u.prompt, u.sampling);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace tts::model
