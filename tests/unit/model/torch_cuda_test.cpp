// The tensor engine on a GPU against the same engine on CPU tensors. Skipped where there is no GPU; tolerance of samples in float32: 1e-3.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tts/model/model.h"

#include "support/golden_data.h"
#include "torch/runtime.h"

namespace tts::model {
namespace {

constexpr std::uint32_t kSlots = 4;

class TorchCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (count_gpus() == 0) GTEST_SKIP() << (built_with_cuda() ? "no GPU can be used here" : "this libtorch has no CUDA");
  }

  static std::unique_ptr<engine::StepEngine> load(const std::string& device, const Precision& precision, const std::string& map = "") {
    ModelOptions options;
    options.max_slots = kSlots;
    options.device = device;
    options.device_map = map;
    options.precision = precision;
    LoadedModel model = load_model(engine::read_manifest(std::filesystem::path(TTS_SOURCE_DIR) / "models/nano"), options);
    return std::move(model.engines.front());
  }

  struct Production {
    std::vector<engine::CodeFrame> codes;
    std::vector<float> pcm;
  };

  // Four utterances that join one after the other; odd ones draw, even ones are greedy; decoded in pieces of at most 12 steps. parking:
  // the odd ones leave their slots again and again.
  static std::vector<Production> produce(engine::StepEngine& engine, bool parking = false) {
    std::vector<std::unique_ptr<engine::ParkedUtterance>> parked(kSlots);
    std::vector<Production> results(kSlots);
    std::vector<engine::SlotId> slots(kSlots);
    std::vector<bool> running(kSlots, false);
    for (std::uint32_t now = 0; now == 0 || std::find(running.begin(), running.end(), true) != running.end(); ++now) {
      if (now % 5 == 0 && now / 5 < kSlots) {
        const std::uint32_t i = now / 5;
        engine::UtterancePrompt prompt;
        for (std::uint32_t t = 0; t < 20 + 9 * i; ++t) prompt.tokens.push_back(static_cast<std::int32_t>(10 + (t * (i + 3)) % 200));
        engine::SamplingParams sampling;
        sampling.greedy = i % 2 == 0;
        sampling.seed = i;
        sampling.repetition_penalty = 1.05F;
        sampling.min_steps = sampling.max_steps = 30 + 10 * i;
        slots[i] = engine.acquire(prompt, sampling).value();
        running[i] = true;
      }
      for (std::uint32_t i = 1; parking && i < kSlots; i += 2) {
        if (running[i] && now % 9 == 7) parked[i] = engine.park(slots[i]).value();
        if (parked[i] != nullptr && now % 9 == 2) slots[i] = engine.unpark(parked[i]).value();
      }
      std::vector<engine::StepWork> work;
      std::vector<std::uint32_t> rows;
      for (std::uint32_t i = 0; i < kSlots; ++i) {
        if (!running[i] || parked[i] != nullptr) continue;
        work.push_back({.slot = slots[i], .prefill_tokens = std::min(engine.prefill_left(slots[i]), 16U)});
        rows.push_back(i);
      }
      std::vector<engine::StepOutcome> outcomes(work.size());
      if (!work.empty()) engine.step(work, outcomes);
      for (std::size_t w = 0; w < work.size(); ++w) {
        if (!outcomes[w].sampled) continue;
        const std::uint32_t i = rows[w];
        const bool stopped = outcomes[w].stop != engine::StopReason::kNone;
        results[i].codes.push_back(outcomes[w].codes);
        if (!stopped && engine.pending_steps(slots[i]) < 12) continue;
        std::vector<float> pcm(engine.max_decode_samples(12, stopped));
        engine::DecodeWork decode{.slot = slots[i],
                                  .steps = engine.pending_steps(slots[i]),
                                  .last = stopped,
                                  .lookahead = i == 3 ? 6 : engine::kExactLookahead,
                                  .pcm = pcm};
        engine.decode({&decode, 1});
        results[i].pcm.insert(results[i].pcm.end(), pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(decode.samples));
        if (!stopped) continue;
        engine.release(slots[i]);
        running[i] = false;
      }
    }
    return results;
  }
};

constexpr Precision kFloat32{NumberFormat::kFloat32, NumberFormat::kFloat32, NumberFormat::kFloat32};

TEST_F(TorchCuda, DrawsTheCodesOfTheCpu) {
  const auto cpu = load("cpu-tensors", kFloat32), gpu = load("cuda:0", kFloat32);
  EXPECT_EQ(gpu->info().device, "cuda:0");
  const auto expected = produce(*cpu), got = produce(*gpu);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    EXPECT_EQ(got[i].codes, expected[i].codes) << i;
    EXPECT_LE(testing::max_difference(got[i].pcm, expected[i].pcm), 1e-3F) << i;
  }
}

TEST_F(TorchCuda, IsTheSameTwice) {
  const auto engine = load("cuda:0", {});
  const auto first = produce(*engine), second = produce(*engine);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    EXPECT_EQ(first[i].codes, second[i].codes) << i;
    EXPECT_EQ(first[i].pcm, second[i].pcm) << i;
  }
}

TEST_F(TorchCuda, ParkedUtterancesGoOnAsIfTheyHadStayed) {
  const auto engine = load("cuda:0", kFloat32);
  const auto expected = produce(*engine), got = produce(*engine, true);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    EXPECT_EQ(got[i].codes, expected[i].codes) << i;
    EXPECT_LE(testing::max_difference(got[i].pcm, expected[i].pcm), 1e-3F) << i;
  }
}

TEST_F(TorchCuda, EveryFormatRuns) {
  for (const NumberFormat weights : {NumberFormat::kAuto, NumberFormat::kFloat16, NumberFormat::kInt8}) {
    const auto engine = load("cuda:0", {.weights = weights});
    const auto got = produce(*engine);
    for (std::uint32_t i = 0; i < kSlots; ++i)
      EXPECT_EQ(got[i].pcm.size(), (2 * got[i].codes.size() - 1) * 256) << engine->info().precision;
  }
}

TEST_F(TorchCuda, SomeLayersOnTheHost) {
  const auto whole = load("cuda:0", kFloat32), split = load("cuda:0", kFloat32, "0-3:cuda:0,4-5:cpu,6-7:cuda:0");
  const auto expected = produce(*whole), got = produce(*split);
  for (std::uint32_t i = 0; i < kSlots; ++i) EXPECT_EQ(got[i].codes, expected[i].codes) << i;
}

TEST_F(TorchCuda, TwoGpusShareTheLayers) {
  if (count_gpus() < 2) GTEST_SKIP() << "takes two GPUs";
  const auto whole = load("cuda:0", kFloat32), split = load("cuda:0,cuda:1", kFloat32, "balanced");
  const auto expected = produce(*whole), got = produce(*split);
  for (std::uint32_t i = 0; i < kSlots; ++i) EXPECT_EQ(got[i].codes, expected[i].codes) << i;
}

TEST_F(TorchCuda, MemoryIsCounted) {
  const auto engine = load("cuda:0", {});
  ASSERT_FALSE(gpu_memory().empty());
  EXPECT_EQ(gpu_memory()[0].device, "cuda:0");
  EXPECT_GT(gpu_memory()[0].used_bytes, 1U << 20);
}

TEST_F(TorchCuda, WhatDoesNotFitIsSaid) {
  ModelOptions options;
  options.max_slots = 256;
  options.device = "cuda:0";
  options.gpu_memory_fraction = 1e-4;
  EXPECT_THROW(load_model(engine::read_manifest(std::filesystem::path(TTS_SOURCE_DIR) / "models/nano"), options), std::runtime_error);
}

}  // namespace
}  // namespace tts::model
