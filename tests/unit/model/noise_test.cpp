#include "noise.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace tts::model {
namespace {

TEST(SeededNoise, IsAPureFunctionOfItsArguments) {
  const SeededNoise a(7), b(7), other(8);
  EXPECT_EQ(a.exponential(3, 1, 200), b.exponential(3, 1, 200));
  EXPECT_NE(a.exponential(3, 1, 200), other.exponential(3, 1, 200));
  EXPECT_NE(a.exponential(3, 1, 200), a.exponential(4, 1, 200));
  EXPECT_NE(a.exponential(3, 1, 200), a.exponential(3, 2, 200));
  EXPECT_NE(a.exponential(3, 1, 200), a.exponential(3, 1, 201));
}

// The published vector of Philox 4x32-10 (Random123) for an all-zero key and counter begins 6627e8d5 e169c58d.
TEST(SeededNoise, UsesPhilox) {
  const auto expected = [](std::uint64_t wide) { return static_cast<float>(-std::log((static_cast<double>(wide >> 11) + 0.5) * 0x1p-53)); };
  EXPECT_EQ(SeededNoise(0).exponential(0, 0, 0), expected(0x6627e8d5e169c58dULL));
}

TEST(SeededNoise, HasTheMomentsOfAnExponential) {
  const SeededNoise noise(1234);
  constexpr int kDraws = 200000;
  double sum = 0.0, squares = 0.0;
  int below_median = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double e = noise.exponential(i / 1000, i % 4, i % 1000);
    ASSERT_GT(e, 0.0);
    sum += e;
    squares += e * e;
    if (e < std::log(2.0)) ++below_median;
  }
  EXPECT_NEAR(sum / kDraws, 1.0, 0.01);
  EXPECT_NEAR(squares / kDraws, 2.0, 0.05);
  EXPECT_NEAR(below_median / double{kDraws}, 0.5, 0.005);
}

}  // namespace
}  // namespace tts::model
