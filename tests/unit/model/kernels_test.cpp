#include "ops/kernels.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model::ops {
namespace {

TEST(Kernels, RmsNormAgreesWithDoublePrecision) {
  for_each_simd_target([] {
    for (const std::size_t n : {1, 3, 16, 64, 70, 192, 768}) {
      const auto x = random_floats(n, 1, 3.0F), weight = random_floats(n, 2);
      double squares = 0.0;
      for (const float v : x) squares += double{v} * v;
      const double factor = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
      std::vector<float> y(n), in_place = x;
      rms_norm(x.data(), weight.data(), 1e-6F, n, y.data());
      rms_norm(in_place.data(), weight.data(), 1e-6F, n, in_place.data());
      for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(y[i], x[i] * factor * weight[i], 2e-6);
      ASSERT_EQ(y, in_place);
    }
  });
}

TEST(Kernels, LayerNormAgreesWithDoublePrecision) {
  for_each_simd_target([] {
    for (const std::size_t n : {1, 5, 16, 48, 100, 256, 512}) {
      auto x = random_floats(n, 3);
      for (float& v : x) v += 4.0F;  // a mean far from zero
      const auto weight = random_floats(n, 4), bias = random_floats(n, 5);
      double mean = 0.0, squares = 0.0;
      for (const float v : x) mean += v / static_cast<double>(n);
      for (const float v : x) squares += (v - mean) * (v - mean);
      const double factor = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
      std::vector<float> y(n), in_place = x;
      layer_norm(x.data(), weight.data(), bias.data(), 1e-6F, n, y.data());
      layer_norm(in_place.data(), weight.data(), bias.data(), 1e-6F, n, in_place.data());
      for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(y[i], (x[i] - mean) * factor * weight[i] + bias[i], n == 1 ? 1e-3 : 1e-5);
      ASSERT_EQ(y, in_place);
    }
  });
}

TEST(Kernels, GeluIsWithinOneMillionthEverywhere) {
  for_each_simd_target([] {
    std::vector<float> x;
    for (double v = -12.0; v <= 12.0; v += 1e-3) x.push_back(static_cast<float>(v));
    for (const float v : {-1e30F, -100.0F, -0.0F, 0.0F, 1e-20F, 100.0F, 1e30F}) x.push_back(v);
    std::vector<float> y(x.size());
    gelu(x.data(), x.size(), y.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = 0.5 * x[i] * std::erfc(-double{x[i]} / std::sqrt(2.0));
      ASSERT_NEAR(y[i], expected, 1e-6 + 1e-7 * std::abs(expected)) << x[i];
    }
  });
}

TEST(Kernels, AxpyAddsAMultiple) {
  for_each_simd_target([] {
    for (const std::size_t n : {1, 15, 16, 37}) {
      const auto x = random_floats(n, 6), before = random_floats(n, 7);
      auto y = before;
      axpy(0.25F, x.data(), n, y.data());
      for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(y[i], before[i] + 0.25 * x[i], 1e-6);
    }
  });
}

TEST(Kernels, DepthwiseConvolutionReachesThreeTapsToEachSide) {
  for_each_simd_target([] {
    for (const std::size_t channels : {1, 16, 20, 48}) {
      for (const std::size_t dilation : {1, 2}) {
        const std::size_t count = 9, around = count + 6 * dilation, stride = channels + 2;
        const auto x = random_floats(around * stride, 8), weight = random_floats(7 * channels, 9), bias = random_floats(channels, 10);
        std::vector<const float*> rows;
        for (std::size_t r = 0; r < around; ++r) rows.push_back(x.data() + (around - 1 - r) * stride);  // rows may lie anywhere
        std::vector<float> y(count * stride, 77.0F);
        depthwise_conv7(rows.data(), count, channels, dilation, weight.data(), bias.data(), y.data(), stride);
        for (std::size_t r = 0; r < count; ++r) {
          for (std::size_t c = 0; c < channels; ++c) {
            double expected = bias[c];
            for (std::size_t i = 0; i < 7; ++i) expected += double{rows[r + i * dilation][c]} * weight[i * channels + c];
            ASSERT_NEAR(y[r * stride + c], expected, 2e-6);
          }
          for (std::size_t c = channels; c < stride; ++c) ASSERT_EQ(y[r * stride + c], 77.0F);
        }
        // One row at a time gives the same bits.
        std::vector<float> single(channels);
        for (std::size_t r = 0; r < count; ++r) {
          depthwise_conv7(rows.data() + r, 1, channels, dilation, weight.data(), bias.data(), single.data(), channels);
          ASSERT_EQ(std::memcmp(single.data(), y.data() + r * stride, channels * sizeof(float)), 0);
        }
      }
    }
  });
}

}  // namespace
}  // namespace tts::model::ops
