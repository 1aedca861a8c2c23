#include "prompts.h"

#include <set>

#include <gtest/gtest.h>

namespace tts::synthesis {
namespace {

TEST(Merge, UnsetValuesStayTheModels) {
  engine::SamplingParams defaults;
  defaults.temperature = {0.1F, 0.2F, 0.3F, 0.4F};
  defaults.top_k = 7;
  defaults.greedy = true;
  const auto merged = merge(defaults, {});
  EXPECT_EQ(merged.temperature, defaults.temperature);
  EXPECT_EQ(merged.top_k, 7U);
  EXPECT_TRUE(merged.greedy);
}

TEST(Merge, TheClientsValuesWin) {
  SamplingOverrides overrides;
  overrides.temperature = 0.9F;
  overrides.top_p = 0.5F;
  overrides.top_k = 3;
  overrides.repetition_penalty = 1.2F;
  overrides.min_steps = 4;
  overrides.max_steps = 5;
  const auto merged = merge({}, overrides);
  for (const float temperature : merged.temperature) EXPECT_EQ(temperature, 0.9F);
  EXPECT_EQ(merged.top_p, 0.5F);
  EXPECT_EQ(merged.top_k, 3U);
  EXPECT_EQ(merged.repetition_penalty, 1.2F);
  EXPECT_EQ(merged.min_steps, 4U);
  EXPECT_EQ(merged.max_steps, 5U);
}

TEST(OverrideWith, WhatIsSetChangesAndTheRestStays) {
  SamplingOverrides values;
  values.temperature = 0.1F;
  values.top_k = 3;
  SamplingOverrides later;
  later.top_p = 0.5F;
  later.top_k = 9;
  later.repetition_penalty = 1.5F;
  later.min_steps = 1;
  later.max_steps = 2;
  override_with(values, later);
  EXPECT_EQ(values.temperature, 0.1F);
  EXPECT_EQ(values.top_p, 0.5F);
  EXPECT_EQ(values.top_k, 9U);
  EXPECT_EQ(values.repetition_penalty, 1.5F);
  EXPECT_EQ(values.min_steps, 1U);
  EXPECT_EQ(values.max_steps, 2U);
}

TEST(Seeds, TheFirstSentenceUsesTheRequestsOwn) { EXPECT_EQ(sentence_seed(42, 0), 42U); }

TEST(Seeds, AreDistinctAndReproducible) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t request = 0; request < 20; ++request) {
    for (std::uint32_t sentence = 0; sentence < 50; ++sentence) {
      seen.insert(sentence_seed(request, sentence));
      seen.insert(refine_seed(request, sentence));
      EXPECT_EQ(sentence_seed(request, sentence), sentence_seed(request, sentence));
    }
  }
  EXPECT_EQ(seen.size(), 20U * 50U * 2U);
}

TEST(Speech, SaysHowItIsHeard) {
  SynthesisRequest request;
  EXPECT_EQ(speech(request, {}, {}, 300, {}, 9).delivery, engine::Delivery::kStreamed);
  EXPECT_EQ(speech(request, {}, {}, 300, {}, 9).pace, 1.0);
  request.speed = 1.5;
  request.whole = true;
  request.latency = engine::Latency::kExact;
  EXPECT_EQ(speech(request, {}, {}, 300, {}, 9).delivery, engine::Delivery::kWhole);
  EXPECT_EQ(speech(request, {}, {}, 300, {}, 9).latency, engine::Latency::kExact);
  EXPECT_EQ(speech(request, {}, {}, 300, {}, 9).pace, 1.5);
  EXPECT_EQ(refinement(request, 301, {1}, 9).delivery, engine::Delivery::kWhole);
}

TEST(Speech, CarriesTheSpeakerOnlyWhenThereIsOne) {
  SynthesisRequest request;
  request.request_id = "r";
  request.mel_path = engine::MelPath::kCodes;
  request.deadline = TimePoint(std::chrono::seconds(5));
  engine::Voice voice;
  text::PreparedUtterance prepared;
  prepared.tokens = {1, 2, 3};
  prepared.shared_prefix = 2;
  auto utterance = speech(request, voice, {}, 300, prepared, 9);
  EXPECT_EQ(utterance.prompt.tokens, prepared.tokens);
  EXPECT_EQ(utterance.prompt.shared_prefix, 2U);
  EXPECT_EQ(utterance.prompt.speaker_token, -1);
  EXPECT_EQ(utterance.prompt.speaker, nullptr);
  EXPECT_EQ(utterance.request_id, "r");
  EXPECT_EQ(utterance.deadline, request.deadline);
  EXPECT_EQ(utterance.sampling.seed, 9U);
  EXPECT_EQ(utterance.prompt.mel_path, engine::MelPath::kCodes);
  EXPECT_EQ(utterance.prompt.stage, engine::Stage::kCode);
  voice.speaker = std::make_shared<std::vector<float>>(4);
  utterance = speech(request, voice, {}, 300, prepared, 9);
  EXPECT_EQ(utterance.prompt.speaker_token, 300);
  EXPECT_EQ(utterance.prompt.speaker, voice.speaker);
}

TEST(Refinement, UsesTheTextStageAndItsOwnSampling) {
  SynthesisRequest request;
  request.sampling.max_steps = 9;
  request.sampling.temperature = 0.1F;
  const auto utterance = refinement(request, 301, {5}, 8);
  EXPECT_EQ(utterance.prompt.stage, engine::Stage::kText);
  EXPECT_EQ(utterance.prompt.end_token, 301);
  EXPECT_EQ(utterance.prompt.speaker, nullptr);
  EXPECT_EQ(utterance.sampling.temperature[0], 0.7F);
  EXPECT_EQ(utterance.sampling.max_steps, 384U);
  EXPECT_EQ(utterance.sampling.seed, 8U);
}

}  // namespace
}  // namespace tts::synthesis
