// The sampler on tensors draws what the CPU engine's sampler draws.

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "noise.h"
#include "sampler.h"
#include "torch/tensor_noise.h"
#include "torch/tensor_sampler.h"

namespace tts::model {
namespace {

at::Tensor keys_of(const std::vector<std::uint64_t>& seeds) {
  at::Tensor keys = at::empty({static_cast<std::int64_t>(seeds.size()), std::int64_t{kPhiloxKeys}}, at::kLong);
  for (std::size_t i = 0; i < seeds.size(); ++i)
    write_philox_keys(seeds[i], std::span<std::int64_t, kPhiloxKeys>(keys.data_ptr<std::int64_t>() + i * kPhiloxKeys, kPhiloxKeys));
  return keys;
}

TEST(TensorNoise, IsTheCpuEnginesNoise) {
  const std::vector<std::uint64_t> seeds{0, 1, 0xFFFFFFFFFFFFFFFFULL, 0x123456789ABCDEF0ULL, 0x80000000ULL};
  const std::vector<std::int64_t> steps{0, 1, 2047, 77, 0xFFFFFFFF};
  at::Tensor step = at::empty({5}, at::kLong);
  std::copy(steps.begin(), steps.end(), step.data_ptr<std::int64_t>());
  constexpr std::int64_t kCodebooks = 4, kVocabulary = 626;
  const at::Tensor noise = exponential_noise(keys_of(seeds), step, kCodebooks, kVocabulary);
  const double* at = noise.data_ptr<double>();
  std::size_t rounded_apart = 0;
  for (std::size_t r = 0; r < seeds.size(); ++r) {
    const SeededNoise expected(seeds[r]);
    for (std::uint32_t q = 0; q < kCodebooks; ++q) {
      for (std::uint32_t v = 0; v < kVocabulary; ++v, ++at) {
        const float want = expected.exponential(static_cast<std::uint32_t>(steps[r]), q, v), got = static_cast<float>(*at);
        ASSERT_EQ(*at, double{got}) << "not a rounded float";
        ASSERT_NEAR(got / want, 1.0, 2e-7) << "seed " << r << ", codebook " << q << ", token " << v;
        rounded_apart += got != want;
      }
    }
  }
  EXPECT_LE(rounded_apart, 3U) << "of 12520: two logarithms may round differently, no more";
}

TEST(TensorNoise, ARowDoesNotDependOnItsNeighbours) {
  const at::Tensor both = exponential_noise(keys_of({5, 6}), at::full({2}, 9, at::kLong), 1, 40);
  const at::Tensor alone = exponential_noise(keys_of({6}), at::full({1}, 9, at::kLong), 1, 40);
  EXPECT_TRUE(both.narrow(0, 1, 1).equal(alone));
}

// Rows of the same shape with settings of their own, for both samplers.
class SamplerPair {
 public:
  SamplerPair(std::size_t rows, std::size_t codebooks, std::size_t vocabulary)
      : rows_(rows), codebooks_(codebooks), vocabulary_(vocabulary), settings_(rows) {
    const auto n = [](std::size_t value) { return static_cast<std::int64_t>(value); };
    request_ = {.logits = at::empty({n(rows), n(codebooks), n(vocabulary)}, at::kFloat),
                .noise = {},
                .temperature = at::empty({n(rows), n(codebooks)}, at::kFloat),
                .repetition_penalty = at::empty({n(rows)}, at::kFloat),
                .top_p = at::empty({n(rows)}, at::kFloat),
                .top_k = at::empty({n(rows)}, at::kLong),
                .forbidden = at::empty({n(rows)}, at::kLong),
                .greedy = at::empty({n(rows)}, at::kBool),
                .recent = at::full({n(rows), n(codebooks), n(TokenWindow::kCapacity)}, -77, at::kLong),
                .recent_count = at::empty({n(rows)}, at::kLong)};
  }

  struct Row {
    std::vector<float> logits;       // codebook after codebook
    std::vector<float> temperature;  // by codebook
    float penalty = 1, top_p = 1;
    std::uint32_t top_k = 0, step = 0;
    std::optional<std::uint32_t> forbidden;
    bool greedy = false;
    std::uint64_t seed = 0;
    std::vector<std::vector<std::uint32_t>> recent;  // by codebook, all of one length
  };

  Row& row(std::size_t r) { return settings_[r]; }

  std::vector<std::int64_t> tensor_tokens() {
    std::vector<std::uint64_t> seeds;
    at::Tensor steps = at::empty({static_cast<std::int64_t>(rows_)}, at::kLong);
    for (std::size_t r = 0; r < rows_; ++r) {
      const Row& row = settings_[r];
      seeds.push_back(row.seed);
      steps.data_ptr<std::int64_t>()[r] = row.step;
      std::copy(row.logits.begin(), row.logits.end(), request_.logits.data_ptr<float>() + r * codebooks_ * vocabulary_);
      std::copy(row.temperature.begin(), row.temperature.end(), request_.temperature.data_ptr<float>() + r * codebooks_);
      request_.repetition_penalty.data_ptr<float>()[r] = row.penalty;
      request_.top_p.data_ptr<float>()[r] = row.top_p;
      request_.top_k.data_ptr<std::int64_t>()[r] = row.top_k;
      request_.forbidden.data_ptr<std::int64_t>()[r] = row.forbidden ? std::int64_t{*row.forbidden} : -1;
      request_.greedy.data_ptr<bool>()[r] = row.greedy;
      for (std::size_t q = 0; q < codebooks_; ++q) {
        std::copy(row.recent[q].begin(), row.recent[q].end(),
                  request_.recent.data_ptr<std::int64_t>() + (r * codebooks_ + q) * TokenWindow::kCapacity);
      }
      request_.recent_count.data_ptr<std::int64_t>()[r] = static_cast<std::int64_t>(row.recent[0].size());
    }
    request_.noise =
        exponential_noise(keys_of(seeds), steps, static_cast<std::int64_t>(codebooks_), static_cast<std::int64_t>(vocabulary_));
    const at::Tensor tokens = sample(request_).contiguous();
    return {tokens.data_ptr<std::int64_t>(), tokens.data_ptr<std::int64_t>() + tokens.numel()};
  }

  std::vector<std::int64_t> plain_tokens() {
    Sampler sampler(vocabulary_);
    std::vector<std::int64_t> tokens;
    for (const Row& row : settings_) {
      const SeededNoise noise(row.seed);
      for (std::size_t q = 0; q < codebooks_; ++q) {
        const auto token = sampler.sample({.logits = std::span(row.logits).subspan(q * vocabulary_, vocabulary_),
                                           .temperature = row.temperature[q],
                                           .repetition_penalty = row.penalty,
                                           .top_p = row.top_p,
                                           .top_k = row.top_k,
                                           .forbidden = row.forbidden,
                                           .greedy = row.greedy,
                                           .step = row.step,
                                           .codebook = static_cast<std::uint32_t>(q),
                                           .recent = row.recent[q]},
                                          noise);
        tokens.push_back(token ? std::int64_t{*token} : kBrokenToken);
      }
    }
    return tokens;
  }

 private:
  std::size_t rows_, codebooks_, vocabulary_;
  std::vector<Row> settings_;
  TensorSampleRequest request_;
};

TEST(TensorSampler, DrawsTheTokensOfThePlainSampler) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  const auto pick = [&](const auto& values) { return values[random() % values.size()]; };
  const std::vector<float> top_ps{0.0F, 0.3F, 0.7F, 0.95F, 1.0F}, penalties{1.0F, 1.05F, 1.5F, 0.8F},
      temperatures{0.1F, 0.3F, 0.7F, 1.0F, 2.0F};
  const std::vector<std::uint32_t> top_ks{0, 1, 3, 5, 20, 64, 700};
  std::size_t drawn = 0, different = 0;
  for (const std::size_t vocabulary : {4, 5, 40, 626}) {
    for (int round = 0; round < 40; ++round) {
      constexpr std::size_t kRows = 16, kCodebooks = 4;
      SamplerPair pair(kRows, kCodebooks, vocabulary);
      for (std::size_t r = 0; r < kRows; ++r) {
        auto& row = pair.row(r);
        const bool ties = random() % 3 == 0;  // whole numbers: many equal logits
        for (std::size_t i = 0; i < kCodebooks * vocabulary; ++i) row.logits.push_back(ties ? std::round(normal(random)) : normal(random));
        for (std::size_t q = 0; q < kCodebooks; ++q) row.temperature.push_back(ties ? 1.0F : pick(temperatures));
        row.penalty = ties && random() % 2 == 0 ? 1.0F : pick(penalties);
        row.top_p = pick(top_ps);
        row.top_k = pick(top_ks);
        row.step = static_cast<std::uint32_t>(random() % 2048);
        row.seed = (std::uint64_t{random()} << 32) | random();
        row.greedy = random() % 5 == 0;
        if (random() % 2 == 0) row.forbidden = static_cast<std::uint32_t>(vocabulary - 1);
        const std::size_t filled = std::min<std::size_t>(random() % 20, TokenWindow::kCapacity);
        row.recent.resize(kCodebooks);
        for (auto& window : row.recent) {
          for (std::size_t i = 0; i < filled; ++i)
            window.push_back(static_cast<std::uint32_t>(random() % std::min<std::size_t>(vocabulary, 24)));
        }
      }
      const auto expected = pair.plain_tokens(), tokens = pair.tensor_tokens();
      ASSERT_EQ(expected.size(), tokens.size());
      for (std::size_t i = 0; i < tokens.size(); ++i) different += tokens[i] != expected[i];
      drawn += tokens.size();
    }
  }
  EXPECT_EQ(drawn, 10240U);
  EXPECT_EQ(different, 0U);
}

TEST(TensorSampler, LargeVocabulariesToo) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0F, 2.0F);
  SamplerPair pair(4, 1, 21178);
  for (std::size_t r = 0; r < 4; ++r) {
    auto& row = pair.row(r);
    for (std::size_t i = 0; i < 21178; ++i) row.logits.push_back(normal(random));
    row = {.logits = row.logits,
           .temperature = {0.7F},
           .penalty = 1.0F,
           .top_p = 0.7F,
           .top_k = 20,
           .step = 5,
           .forbidden = {},
           .seed = r,
           .recent = {{}}};
  }
  EXPECT_EQ(pair.tensor_tokens(), pair.plain_tokens());
}

// The end token outweighs the others beyond what a double holds.
TEST(TensorSampler, AMaskedTokenDoesNotFlattenTheOthers) {
  constexpr std::size_t kRows = 64;
  SamplerPair pair(kRows, 1, 5);
  for (std::size_t r = 0; r < kRows; ++r) {
    pair.row(r) = {.logits = {20, 1, 2, 1.99F, 0}, .temperature = {0.01F}, .top_k = 4, .forbidden = 0, .seed = r, .recent = {{}}};
  }
  const auto tokens = pair.tensor_tokens();
  EXPECT_EQ(tokens, pair.plain_tokens());
  for (const std::int64_t token : {2, 3}) EXPECT_GT(std::count(tokens.begin(), tokens.end(), token), 5) << token;
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 1), 0);
}

TEST(TensorSampler, LogitsThatAreNotFiniteAreReportedAndStayInTheirRow) {
  SamplerPair pair(3, 2, 6);
  for (std::size_t r = 0; r < 3; ++r) {
    pair.row(r) = {
        .logits = std::vector<float>(12, 1.0F), .temperature = {1, 1}, .top_k = 3, .forbidden = {}, .seed = r, .recent = {{}, {}}};
  }
  pair.row(1).logits[2] = std::numeric_limits<float>::quiet_NaN();
  pair.row(1).logits[11] = std::numeric_limits<float>::infinity();
  const auto tokens = pair.tensor_tokens();
  EXPECT_EQ(tokens, pair.plain_tokens());
  EXPECT_EQ(tokens[2], kBrokenToken);
  EXPECT_EQ(tokens[3], kBrokenToken);
  EXPECT_NE(tokens[4], kBrokenToken);
}

}  // namespace
}  // namespace tts::model
