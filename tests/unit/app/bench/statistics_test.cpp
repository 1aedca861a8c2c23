#include "bench/statistics.h"

#include <array>

#include <gtest/gtest.h>

namespace tts::bench {
namespace {

TEST(Quantile, IsAValueThatOccurred) {
  constexpr std::array kTen{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0};
  EXPECT_EQ(quantile(kTen, 0.0), 1.0);
  EXPECT_EQ(quantile(kTen, 0.5), 5.0);
  EXPECT_EQ(quantile(kTen, 0.51), 6.0);
  EXPECT_EQ(quantile(kTen, 0.95), 10.0);
  EXPECT_EQ(quantile(kTen, 1.0), 10.0);
}

TEST(Quantile, RoundingErrorsDoNotShiftTheRank) {
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  for (int percent = 1; percent <= 100; ++percent) EXPECT_EQ(quantile(values, percent / 100.0), percent);
}

TEST(Describe, SortsFirst) {
  const auto d = describe({4, 1, 3, 2});
  EXPECT_EQ(d.count, 4U);
  EXPECT_DOUBLE_EQ(d.mean, 2.5);
  EXPECT_EQ(d.p50, 2);
  EXPECT_EQ(d.p99, 4);
  EXPECT_EQ(d.max, 4);
}

TEST(Describe, OfNothingCountsNothing) { EXPECT_EQ(describe({}).count, 0U); }

}  // namespace
}  // namespace tts::bench
