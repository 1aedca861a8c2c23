#include "sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model {
namespace {

// Hands out what the test prepared, by token.
class TableNoise final : public NoiseSource {
 public:
  explicit TableNoise(std::vector<float> values) : values_(std::move(values)) {}
  float exponential(std::uint32_t, std::uint32_t, std::uint32_t token) const noexcept override { return values_[token]; }

 private:
  std::vector<float> values_;
};

std::map<std::uint32_t, double> probabilities(Sampler& sampler, const SampleRequest& request) {
  std::map<std::uint32_t, double> result;
  double total = 0.0;
  const auto survivors = sampler.survivors(request);
  float highest = -std::numeric_limits<float>::infinity();
  for (const auto& candidate : survivors) highest = std::max(highest, candidate.logit);
  for (const auto& candidate : survivors) total += result[candidate.token] = std::exp(double{candidate.logit} - highest);
  for (auto& [token, p] : result) p /= total;
  return result;
}

// The specification word for word: sort, cumulate, mask.
std::vector<std::uint32_t> reference_survivors(const SampleRequest& request) {
  const std::size_t n = request.logits.size();
  std::vector<double> z(n);
  for (std::size_t v = 0; v < n; ++v) {
    z[v] = static_cast<float>(request.logits[v] / request.temperature);
    const auto count = std::count(request.recent.begin(), request.recent.end(), static_cast<std::uint32_t>(v));
    const double factor = std::pow(double{request.repetition_penalty.factor(1)}, static_cast<double>(count));
    z[v] = static_cast<float>(z[v] < 0.0 ? z[v] * factor : z[v] / factor);
  }
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return z[a] < z[b]; });
  std::vector<bool> dropped(n, false);
  if (request.top_p < 1.0F) {
    double total = 0.0, cumulative = 0.0;
    for (const double value : z) total += std::exp(value - z[order.back()]);
    for (std::size_t i = 0; i + 3 < n; ++i) {
      cumulative += std::exp(z[order[i]] - z[order.back()]) / total;
      if (cumulative <= 1.0 - double{request.top_p}) dropped[order[i]] = true;
    }
  }
  if (request.top_k != 0) {
    std::vector<double> left;
    for (std::size_t v = 0; v < n; ++v) left.push_back(dropped[v] ? -std::numeric_limits<double>::infinity() : z[v]);
    std::vector<double> sorted = left;
    std::sort(sorted.rbegin(), sorted.rend());
    const double threshold = sorted[std::min<std::size_t>(std::max(request.top_k, 3U), n) - 1];
    for (std::size_t v = 0; v < n; ++v) {
      if (left[v] < threshold) dropped[v] = true;
    }
  }
  std::vector<std::uint32_t> result;
  for (std::uint32_t v = 0; v < n; ++v) {
    if (!dropped[v] && v != request.forbidden) result.push_back(v);
  }
  return result;
}

std::vector<std::uint32_t> sorted_survivors(Sampler& sampler, const SampleRequest& request) {
  std::vector<std::uint32_t> result;
  for (const auto& candidate : sampler.survivors(request)) result.push_back(candidate.token);
  std::sort(result.begin(), result.end());
  return result;
}

TEST(Sampler, WorkedExampleWithTies) {
  const std::vector<float> z{1, 1, 1, 1, .5F, .5F, -1, -1, -1, -2};
  const std::vector<std::uint32_t> recent{0, 0, 6, 9};
  Sampler sampler(10);
  const SampleRequest request{.logits = z, .repetition_penalty = 1.5F, .top_p = 0.6F, .top_k = 4, .forbidden = {}, .recent = recent};
  const auto p = probabilities(sampler, request);
  ASSERT_EQ(p.size(), 4U);
  for (const std::uint32_t token : {1U, 2U, 3U}) EXPECT_NEAR(p.at(token), 0.27727, 1e-5);
  EXPECT_NEAR(p.at(5), 0.16818, 1e-5);
}

TEST(Sampler, WorkedExampleWithTheEndTokenMasked) {
  const std::vector<float> z{10, 9, 8, 1, 0, 0};
  Sampler sampler(6);
  const auto p = probabilities(sampler, {.logits = z, .top_p = 0.7F, .top_k = 3, .forbidden = 0, .recent = {}});
  ASSERT_EQ(p.size(), 2U);
  EXPECT_NEAR(p.at(1), 0.73106, 1e-5);
  EXPECT_NEAR(p.at(2), 0.26894, 1e-5);
}

TEST(Sampler, PenaltyMultipliesNegativeLogitsAndCountsOccurrences) {
  const std::vector<float> z{2, -2, 1, -1};
  const std::vector<std::uint32_t> recent{1, 0, 1, 1};
  Sampler sampler(4);
  const auto survivors = sampler.survivors({.logits = z, .repetition_penalty = 2.0F, .forbidden = {}, .recent = recent});
  const std::vector<float> expected{1, -16, 1, -1};
  ASSERT_EQ(survivors.size(), 4U);
  for (const auto& candidate : survivors) EXPECT_EQ(candidate.logit, expected[candidate.token]);
}

TEST(Sampler, FiltersNeverLeaveFewerThanThree) {
  const std::vector<float> z{20, 0, -2, -4, -6, -8};
  Sampler sampler(6);
  EXPECT_EQ(sorted_survivors(sampler, {.logits = z, .top_p = 0.1F, .top_k = 1, .forbidden = {}, .recent = {}}),
            (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(sorted_survivors(sampler, {.logits = z, .top_p = 0.0F, .forbidden = {}, .recent = {}}), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(Sampler, TiesWithTheKthSurvive) {
  const std::vector<float> z{1, 3, 1, 2, 1, 0};
  Sampler sampler(6);
  EXPECT_EQ(sorted_survivors(sampler, {.logits = z, .top_k = 3, .forbidden = {}, .recent = {}}),
            (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST(Sampler, EverythingOffKeepsEverything) {
  const std::vector<float> z{1, 3, 1, 2};
  Sampler sampler(8);
  EXPECT_EQ(sampler.survivors({.logits = z, .forbidden = {}, .recent = {}}).size(), 4U);
}

TEST(Sampler, AgreesWithThePlainDefinition) {
  ops::for_each_simd_target([] {
    std::mt19937 engine(5);
    std::normal_distribution<float> normal(0.0F, 3.0F);
    Sampler sampler(2000);
    for (const std::size_t vocabulary : {4, 5, 17, 626, 2000}) {
      for (const float top_p : {0.0F, 0.3F, 0.7F, 0.95F, 1.0F}) {
        for (const std::uint32_t top_k : {0U, 1U, 5U, 20U, 32U, 33U, 200U, 5000U}) {
          for (const bool quantised : {false, true}) {
            std::vector<float> z(vocabulary);
            for (float& value : z) value = quantised ? std::round(normal(engine)) : normal(engine);
            std::vector<std::uint32_t> recent(16);
            for (std::uint32_t& token : recent) token = static_cast<std::uint32_t>(engine() % vocabulary);
            const SampleRequest request{.logits = z,
                                        .temperature = 0.7F,
                                        .repetition_penalty = 1.3F,
                                        .top_p = top_p,
                                        .top_k = top_k,
                                        .forbidden = 2,
                                        .recent = recent};
            ASSERT_EQ(sorted_survivors(sampler, request), reference_survivors(request))
                << vocabulary << " tokens, P " << top_p << ", K " << top_k;
          }
        }
      }
    }
  });
}

// More ties than the short way has room for.
TEST(Sampler, ManyTiesAllSurvive) {
  const std::vector<float> z(626, 1.5F);
  Sampler sampler(626);
  EXPECT_EQ(sampler.survivors({.logits = z, .top_k = 20, .forbidden = {}, .recent = {}}).size(), 626U);
  EXPECT_EQ(sampler.survivors({.logits = z, .top_p = 0.5F, .top_k = 20, .forbidden = {}, .recent = {}}).size(), 313U);
}

TEST(Sampler, DrawsTheLargestQuotientOfProbabilityAndNoise) {
  const std::vector<float> z{std::log(.5F), std::log(.3F), std::log(.2F), -50};
  Sampler sampler(4);
  const SampleRequest request{.logits = z, .forbidden = {}, .recent = {}};
  EXPECT_EQ(sampler.sample(request, TableNoise({1, 1, 1, 1})), 0U);
  EXPECT_EQ(sampler.sample(request, TableNoise({1, 0.5F, 1, 1})), 1U);
  EXPECT_EQ(sampler.sample(request, TableNoise({1, 0.5F, 0.2F, 1})), 2U);
}

// At a low temperature the end token can outweigh the others beyond what a double holds. Masked, it must leave them their proportions: here
// exp(-1) to 1.
TEST(Sampler, AMaskedTokenDoesNotFlattenTheOthers) {
  const std::vector<float> z{20, 1, 2, 1.99F, 0};
  Sampler sampler(5);
  for (const std::uint32_t top_k : {0U, 4U}) {
    for (const float top_p : {0.7F, 1.0F}) {
      const SampleRequest request{.logits = z, .temperature = 0.01F, .top_p = top_p, .top_k = top_k, .forbidden = 0, .recent = {}};
      EXPECT_EQ(sampler.sample(request, TableNoise({1, 1, 1, 1, 1})), 2U) << top_k << ", " << top_p;
      EXPECT_EQ(sampler.sample(request, TableNoise({1, 1, 1, 0.3F, 1})), 3U) << top_k << ", " << top_p;
    }
  }
}

TEST(Sampler, DrawsWithTheRightFrequencies) {
  const std::vector<float> z{std::log(.5F), std::log(.3F), std::log(.2F), -60};
  Sampler sampler(4);
  const SeededNoise noise(99);
  std::array<int, 4> counts{};
  constexpr int kDraws = 40000;
  for (std::uint32_t step = 0; step < kDraws; ++step)
    ++counts[*sampler.sample({.logits = z, .forbidden = {}, .step = step, .recent = {}}, noise)];
  EXPECT_NEAR(counts[0] / double{kDraws}, 0.5, 0.01);
  EXPECT_NEAR(counts[1] / double{kDraws}, 0.3, 0.01);
  EXPECT_NEAR(counts[2] / double{kDraws}, 0.2, 0.01);
  EXPECT_EQ(counts[3], 0);
}

TEST(Sampler, GreedyTakesTheLowestOfTheMostProbableAllowed) {
  const std::vector<float> z{1, 5, 5, 3};
  const SeededNoise noise(1);
  Sampler sampler(4);
  EXPECT_EQ(sampler.sample({.logits = z, .forbidden = {}, .greedy = true, .recent = {}}, noise), 1U);
  EXPECT_EQ(sampler.sample({.logits = z, .forbidden = 1, .greedy = true, .recent = {}}, noise), 2U);
}

TEST(Sampler, ReportsLogitsThatAreNotFinite) {
  Sampler sampler(4);
  const SeededNoise noise(1);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    for (const bool greedy : {false, true}) {
      const std::vector<float> z{1, bad, 2, 3};
      EXPECT_EQ(sampler.sample({.logits = z, .top_p = 0.7F, .top_k = 3, .forbidden = {}, .greedy = greedy, .recent = {}}, noise),
                std::nullopt);
    }
  }
}

// The extremes that acquire() admits cannot turn a finite logit into an infinite one.
TEST(Sampler, AdmittedExtremesStayFinite) {
  const std::vector<float> z{-1000, 1000, 999, 0.5F};
  const SeededNoise noise(1);
  Sampler sampler(4);
  for (const double temperature : {engine::kMinTemperature, engine::kMaxTemperature}) {
    for (const double penalty : {engine::kMinRepetitionPenalty, engine::kMaxRepetitionPenalty}) {
      for (const std::uint32_t token : {0U, 1U}) {
        const std::vector<std::uint32_t> window(TokenWindow::kCapacity, token);
        EXPECT_TRUE(sampler.sample({.logits = z,
                                    .temperature = static_cast<float>(temperature),
                                    .repetition_penalty = static_cast<float>(penalty),
                                    .top_p = 0.7F,
                                    .top_k = 20,
                                    .forbidden = {},
                                    .recent = window},
                                   noise));
      }
    }
  }
}

TEST(TokenWindow, KeepsTheLastSixteen) {
  TokenWindow window;
  EXPECT_TRUE(window.tokens().empty());
  for (std::uint32_t token = 0; token < 20; ++token) window.push(token);
  std::vector<std::uint32_t> tokens(window.tokens().begin(), window.tokens().end());
  std::sort(tokens.begin(), tokens.end());
  std::vector<std::uint32_t> expected(16);
  std::iota(expected.begin(), expected.end(), 4U);
  EXPECT_EQ(tokens, expected);
}

}  // namespace
}  // namespace tts::model
