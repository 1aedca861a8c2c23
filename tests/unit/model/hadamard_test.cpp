#include "ops/hadamard.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model::ops {
namespace {

TEST(Hadamard, IsTheTransformOfEveryBlock) {
  for_each_simd_target([] {
    for (const std::size_t n : {1, 6, 8, 16, 32, 48, 64, 72, 768, 3072}) {
      const std::size_t block = hadamard_block(n);
      const auto x = random_floats(n, 1);
      auto y = x;
      hadamard(y.data(), n);
      for (std::size_t first = 0; first < n; first += block) {
        for (std::size_t i = 0; i < block; ++i) {
          double sum = 0.0;
          for (std::size_t j = 0; j < block; ++j) sum += std::popcount(i & j) % 2 == 0 ? x[first + j] : -x[first + j];
          ASSERT_NEAR(y[first + i], sum, 1e-4) << n << " values, place " << first + i;
        }
      }
    }
  });
}

TEST(Hadamard, EveryInstructionSetGivesTheSameBits) {
  std::vector<std::vector<float>> results;
  for_each_simd_target([&] {
    auto x = random_floats(768, 2), narrow = random_floats(96, 3);
    hadamard(x.data(), x.size());
    hadamard(narrow.data(), narrow.size());
    x.insert(x.end(), narrow.begin(), narrow.end());
    results.push_back(x);
  });
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(Hadamard, SpreadsASingleLargeValue) {
  std::vector<float> x(64, 0.0F);
  x[37] = 16.0F;
  hadamard(x.data(), x.size());
  for (const float value : x) EXPECT_EQ(std::abs(value), 16.0F);
}

TEST(Hadamard, BlocksAreTheLargestPowerOfTwo) {
  EXPECT_EQ(hadamard_block(1), 1U);
  EXPECT_EQ(hadamard_block(72), 8U);
  EXPECT_EQ(hadamard_block(96), 32U);
  EXPECT_EQ(hadamard_block(768), 64U);
  EXPECT_EQ(hadamard_block(3072), 64U);
}

}  // namespace
}  // namespace tts::model::ops
