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

}  // namespace
}  // namespace tts::model::ops
