#include "ops/quantize.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model::ops {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ToBfloat16, RoundsToNearestEven) {
  EXPECT_EQ(to_bfloat16(1.0F), 0x3F80);
  EXPECT_EQ(to_bfloat16(-2.5F), 0xC020);
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F), 0x3F80);             // a tie, to even
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-7F + 0x1p-8F), 0x3F82);   // a tie, to even
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F + 0x1p-20F), 0x3F81);  // above the tie
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(to_bfloat16(-kInfinity), 0xFF80);
  EXPECT_EQ(to_bfloat16(0x1p-149F), 0);
  EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(kNan))));
  EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(std::bit_cast<float>(0x7F800001U)))));
}

TEST(ToBfloat16, RowsAreRoundedAlikeOnEveryInstructionSet) {
  std::vector<float> values = random_floats(77, 1, 100.0F);
  values.insert(values.end(), {kNan, kInfinity, -kInfinity, 0.0F, -0.0F, 1e-40F, std::numeric_limits<float>::max(), 1.00390625F});
  for_each_simd_target([&] {
    for (std::size_t n = 0; n <= values.size(); ++n) {
      std::vector<std::uint16_t> y(n + 1, 7);
      to_bfloat16(values.data(), n, y.data());
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], to_bfloat16(values[i])) << values[i];
      ASSERT_EQ(y[n], 7);
    }
  });
}

TEST(AllFinite, NoticesOneValueAnywhereOnEveryInstructionSet) {
  for_each_simd_target([&] {
    for (const std::size_t n : {1U, 7U, 16U, 33U, 64U, 67U}) {
      std::vector<float> x(n, -std::numeric_limits<float>::max());
      EXPECT_TRUE(all_finite(x.data(), n));
      for (std::size_t i = 0; i < n; ++i) {
        for (const float value : {kNan, -kNan, kInfinity, -kInfinity}) {
          const float before = std::exchange(x[i], value);
          EXPECT_FALSE(all_finite(x.data(), n)) << i << " of " << n;
          x[i] = before;
        }
      }
    }
  });
}

TEST(Quantize, CodesAreWithinHalfAStepOnEveryInstructionSet) {
  for_each_simd_target([&] {
    for (std::size_t n = 1; n < 80; ++n) {
      const std::vector<float> x = random_floats(n, static_cast<std::uint32_t>(n), 3.0F);
      std::vector<std::int8_t> y(n + 1, 99);
      const QuantizedRow row = quantize(x.data(), n, y.data());
      std::int32_t sum = 0;
      int largest = 0;
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(row.scale * y[i], x[i], 0.5001F * row.scale);
        sum += y[i];
        largest = std::max(largest, std::abs(int{y[i]}));
      }
      ASSERT_EQ(largest, 127);
      ASSERT_EQ(row.sum, sum);
      ASSERT_EQ(y[n], 99);
    }
  });
}

TEST(Quantize, RoundsHalvesToEven) {
  const std::vector<float> x{127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -126.5F};
  for_each_simd_target([&] {
    std::vector<std::int8_t> y(x.size());
    EXPECT_EQ(quantize(x.data(), x.size(), y.data()).scale, 1.0F);
    EXPECT_EQ(y, (std::vector<std::int8_t>{127, 0, 2, 2, 0, -2, -126}));
  });
}

TEST(Quantize, RowsWithoutAScale) {
  for_each_simd_target([&] {
    for (const std::vector<float>& x : {std::vector<float>(20, 0.0F), std::vector<float>(3, -0.0F), std::vector<float>(40, 1e-38F)}) {
      std::vector<std::int8_t> y(x.size(), 5);
      const QuantizedRow row = quantize(x.data(), x.size(), y.data());
      EXPECT_EQ(row.scale, 0.0F);
      EXPECT_EQ(row.sum, 0);
      EXPECT_EQ(y, std::vector<std::int8_t>(x.size(), 0));
    }
    for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
      for (std::size_t at = 0; at < 40; ++at) {
        std::vector<float> x(40, 1.0F);
        x[at] = bad;
        std::vector<std::int8_t> y(x.size(), 5);
        EXPECT_TRUE(std::isnan(quantize(x.data(), x.size(), y.data()).scale));
        EXPECT_EQ(y, std::vector<std::int8_t>(x.size(), 0));
      }
    }
  });
}

}  // namespace
}  // namespace tts::model::ops
