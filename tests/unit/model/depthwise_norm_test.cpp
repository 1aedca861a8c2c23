#include "ops/depthwise_norm.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "ops/quantize.h"
#include "simd_targets.h"

namespace tts::model::ops {
namespace {

constexpr std::size_t kTaps = 7;
constexpr float kEps = 1e-6F;

struct Case {
  Case(std::size_t channels, std::size_t dilation, std::size_t count)
      : weight(random_floats(kTaps * channels, 9)),
        bias(random_floats(channels, 10)),
        norm_weight(random_floats(channels, 11)),
        norm_bias(random_floats(channels, 12)),
        x(random_floats((count + 6 * dilation) * channels, 8)),
        layer{weight.data(), bias.data(), norm_weight.data(), norm_bias.data(), channels, dilation, kEps} {
    for (std::size_t r = count + 6 * dilation; r > 0; --r) rows.push_back(x.data() + (r - 1) * channels);  // rows may lie anywhere
  }

  std::vector<double> expected(std::size_t r) const {
    std::vector<double> y(layer.channels);
    double mean = 0, variance = 0;
    for (std::size_t c = 0; c < y.size(); ++c) {
      y[c] = bias[c];
      for (std::size_t i = 0; i < kTaps; ++i) y[c] += double{rows[r + i * layer.dilation][c]} * weight[i * y.size() + c];
      mean += y[c] / static_cast<double>(y.size());
    }
    for (const double v : y) variance += (v - mean) * (v - mean) / static_cast<double>(y.size());
    for (std::size_t c = 0; c < y.size(); ++c) y[c] = (y[c] - mean) / std::sqrt(variance + double{kEps}) * norm_weight[c] + norm_bias[c];
    return y;
  }

  std::vector<float> weight, bias, norm_weight, norm_bias, x;
  DepthwiseNorm layer;
  std::vector<const float*> rows;
};

TEST(DepthwiseNorm, ReachesThreeTapsToEachSideAndNormalises) {
  for_each_simd_target([] {
    for (const std::size_t channels : {2, 16, 20, 48}) {
      for (const std::size_t dilation : {1, 2}) {
        for (std::size_t count = 1; count <= 11; ++count) {
          const Case test(channels, dilation, count);
          const std::size_t stride = channels + 3;
          std::vector<float> y(count * stride, 77.0F);
          depthwise_norm(test.layer, test.rows.data(), count, y.data(), stride);
          for (std::size_t r = 0; r < count; ++r) {
            const std::vector<double> expected = test.expected(r);
            for (std::size_t c = 0; c < channels; ++c) ASSERT_NEAR(y[r * stride + c], expected[c], 1e-5) << count << ' ' << r << ' ' << c;
            for (std::size_t c = channels; c < stride; ++c) ASSERT_EQ(y[r * stride + c], 77.0F);
          }
        }
      }
    }
  });
}

TEST(DepthwiseNorm, ARowsBitsDoNotDependOnTheOthers) {
  for_each_simd_target([] {
    for (const std::size_t dilation : {1, 2}) {
      constexpr std::size_t kChannels = 40, kCount = 9;
      const Case test(kChannels, dilation, kCount);
      std::vector<float> y(kCount * kChannels), alone(kChannels);
      depthwise_norm(test.layer, test.rows.data(), kCount, y.data(), kChannels);
      for (std::size_t r = 0; r < kCount; ++r) {
        depthwise_norm(test.layer, test.rows.data() + r, 1, alone.data(), kChannels);
        ASSERT_EQ(std::memcmp(alone.data(), y.data() + r * kChannels, kChannels * sizeof(float)), 0) << r;
      }
    }
  });
}

TEST(DepthwiseNorm, RoundsToBfloat16) {
  for_each_simd_target([] {
    constexpr std::size_t kChannels = 20, kCount = 7;
    const Case test(kChannels, 2, kCount);
    std::vector<float> y(kCount * kChannels), scratch(kCount * kChannels);
    std::vector<std::uint16_t> rounded(kCount * kChannels + 1, 9);
    depthwise_norm(test.layer, test.rows.data(), kCount, y.data(), kChannels);
    depthwise_norm(test.layer, test.rows.data(), kCount, scratch.data(), kChannels, rounded.data());
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(rounded[i], to_bfloat16(y[i]));
    EXPECT_EQ(rounded.back(), 9);
  });
}

}  // namespace
}  // namespace tts::model::ops
