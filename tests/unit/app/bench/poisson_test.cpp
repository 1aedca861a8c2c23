#include "bench/poisson.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tts::bench {
namespace {

TEST(PoissonArrivals, SameSeedSameArrivals) {
  PoissonArrivals one(3.0, 7), other(3.0, 7), third(3.0, 8);
  const double first = one.next();
  EXPECT_EQ(first, other.next());
  EXPECT_NE(first, third.next());
}

TEST(PoissonArrivals, ScaleWithTheRate) {
  PoissonArrivals slow(1.0, 5), fast(10.0, 5);
  for (int i = 0; i < 100; ++i) EXPECT_NEAR(slow.next(), 10 * fast.next(), 1e-9);
}

// Independent arrivals: the distances' mean and standard deviation are both 1 / rate.
TEST(PoissonArrivals, DistancesAreExponential) {
  constexpr int kCount = 200'000;
  constexpr double kRate = 4.0;
  PoissonArrivals arrivals(kRate, 1);
  double sum = 0, squares = 0, last = 0;
  int beyond_mean = 0;
  for (int i = 0; i < kCount; ++i) {
    const double now = arrivals.next(), distance = now - last;
    ASSERT_GE(distance, 0);
    last = now;
    sum += distance;
    squares += distance * distance;
    if (distance > 1 / kRate) ++beyond_mean;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 1 / kRate, 0.01 / kRate);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean), 1 / kRate, 0.01 / kRate);
  EXPECT_NEAR(static_cast<double>(beyond_mean) / kCount, std::exp(-1), 0.005);
}

}  // namespace
}  // namespace tts::bench
