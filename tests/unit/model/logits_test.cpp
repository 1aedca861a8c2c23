#include "ops/logits.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model::ops {
namespace {

TEST(Logits, DivideRoundsLikeADivision) {
  for_each_simd_target([] {
    std::mt19937 engine(1);
    for (const float divisor : {0.001F, 0.1F, 0.3F, 0.7F, 0.99999994F, 1.0F, 1.0000001F, 3.0F, 1000.0F}) {
      auto x = random_floats(1003, static_cast<std::uint32_t>(engine()), 40.0F);
      x[0] = 0.0F;
      x[1] = 1e30F;
      x[2] = -1e-30F;
      std::vector<float> y(x.size());
      divide(x.data(), divisor, x.size(), y.data());
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] / divisor) << x[i] << " / " << divisor;
    }
  });
}

TEST(Logits, SummaryFindsTheHighestOfAllAndOfEveryGroup) {
  for_each_simd_target([] {
    for (const std::size_t n : {1, 4, 17, 31, 32, 33, 626, 1000}) {
      const auto x = random_floats(n, static_cast<std::uint32_t>(n), 5.0F);
      LogitSummary summary;
      summarise(x.data(), n, summary);
      EXPECT_TRUE(summary.finite);
      EXPECT_EQ(summary.highest, *std::max_element(x.begin(), x.end()));
      for (std::size_t g = 0; g < kLogitGroups; ++g) {
        float highest = std::numeric_limits<float>::lowest();
        for (std::size_t i = g; i < n; i += kLogitGroups) highest = std::max(highest, x[i]);
        ASSERT_EQ(summary.group_highest[g], highest) << n << " elements, group " << g;
      }
    }
  });
}

TEST(Logits, SummaryNoticesWhatIsNotFiniteAnywhere) {
  for_each_simd_target([] {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      for (const std::size_t n : {5, 40, 70}) {
        for (std::size_t place = 0; place < n; ++place) {
          auto x = random_floats(n, 1);
          x[place] = bad;
          LogitSummary summary;
          summarise(x.data(), n, summary);
          ASSERT_FALSE(summary.finite) << bad << " at " << place << " of " << n;
        }
      }
    }
  });
}

TEST(Logits, AtLeastKReachTheThresholdAndTheyAreFound) {
  for_each_simd_target([] {
    for (const std::size_t n : {32, 33, 626, 21178}) {
      for (const std::size_t k : {1, 3, 20, 32}) {
        const auto x = random_floats(n, static_cast<std::uint32_t>(n + k), 3.0F);
        LogitSummary summary;
        summarise(x.data(), n, summary);
        const float threshold = reached_by(summary, k);
        std::vector<float> sorted = x;
        std::sort(sorted.rbegin(), sorted.rend());
        EXPECT_LE(threshold, sorted[k - 1]) << "the k largest must be among those found";

        std::vector<std::uint32_t> expected;
        for (std::uint32_t i = 0; i < n; ++i) {
          if (x[i] >= threshold) expected.push_back(i);
        }
        std::vector<std::uint32_t> found(n);
        found.resize(indices_reaching(x.data(), n, threshold, found));
        EXPECT_EQ(found, expected);
        if (n > 600) {
          EXPECT_LT(found.size(), 8 * k + 32) << "too weak a threshold to be of use";
        }

        std::vector<std::uint32_t> few(2, 7);
        EXPECT_EQ(indices_reaching(x.data(), n, threshold, few), expected.size()) << "counts beyond the room it has";
        EXPECT_EQ(few[0], expected[0]);
      }
    }
  });
}

}  // namespace
}  // namespace tts::model::ops
