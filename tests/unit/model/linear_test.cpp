#include "ops/linear.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model::ops {
namespace {

constexpr WeightFormat kFormats[] = {WeightFormat::kFloat32, WeightFormat::kBfloat16, WeightFormat::kInt8};

// Largest error of a product of uniform values in -1 .. 1: rounding of both factors, summed over the inputs like a random walk.
double tolerance(WeightFormat format, std::size_t inputs) {
  const double walk = std::sqrt(static_cast<double>(inputs));
  switch (format) {
    case WeightFormat::kFloat32: return 1e-6 * walk + 1e-6;
    case WeightFormat::kBfloat16: return 6e-3 * walk;
    case WeightFormat::kInt8: return 1.2e-2 * walk;
  }
  return 0.0;
}

TEST(Linear, EveryFormatAgreesWithDoublePrecision) {
  ComputePool pool(2);
  for (const WeightFormat format : kFormats) {
    for (const std::size_t inputs : {1, 33, 64, 200}) {
      const std::size_t outputs = 37, rows = 5;
      const auto weight = random_floats(outputs * inputs, 1), bias = random_floats(outputs, 2), values = random_floats(rows * inputs, 3);
      const auto linear = make_linear(format, weight.data(), outputs, inputs, bias.data());
      LinearInput x(format, rows, inputs), next(format, rows, outputs);
      std::copy(values.begin(), values.end(), x.row(0));
      x.commit(pool, rows);
      std::vector<float> plain(rows * outputs), added(rows * outputs, 1.0F);
      linear->forward(pool, {x, rows}, MutableRows{plain.data(), outputs});
      linear->forward_add(pool, {x, rows}, {added.data(), outputs});
      linear->forward(pool, {x, rows}, next);
      ASSERT_EQ(next.width(), outputs);
      for (std::size_t m = 0; m < rows; ++m) {
        for (std::size_t n = 0; n < outputs; ++n) {
          double sum = bias[n];
          for (std::size_t k = 0; k < inputs; ++k) sum += double{values[m * inputs + k]} * weight[n * inputs + k];
          ASSERT_NEAR(plain[m * outputs + n], sum, tolerance(format, inputs));
          ASSERT_NEAR(added[m * outputs + n], 1.0 + sum, tolerance(format, inputs));
          if (format == WeightFormat::kInt8) {
            ASSERT_NEAR(next.scale(m) * static_cast<float>(next.bytes(m)[n] - LinearInput::kInt8Offset), plain[m * outputs + n],
                        0.51 * next.scale(m));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tts::model::ops
