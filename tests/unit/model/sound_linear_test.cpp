#include "sound_linear.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model {
namespace {

constexpr std::size_t kOutputs = 37, kSpan = 3, kWidth = 50, kRows = 9;

// Largest error beside the double-precision product, in units of the norms of row and weights.
double relative_error(ops::WeightFormat format, SoundLinear::Grade grade, bool in_place = false) {
  const std::vector<float> weight = ops::random_floats(kOutputs * kSpan * kWidth, 1), bias = ops::random_floats(kOutputs, 2),
                           x = ops::random_floats((kRows + kSpan - 1) * kWidth, 3);
  const SoundLinear linear(format, grade, weight, kOutputs, kSpan, bias);
  ops::LinearInput input(format, kRows + kSpan - 1, linear.terms() * kWidth);
  for (std::size_t r = 0; r < kRows + kSpan - 1; ++r) {
    const float* from = x.data() + r * kWidth;
    if (in_place) {
      std::copy_n(from, kWidth, input.row(r));
      from = input.row(r);
    }
    linear.commit_row(input, r, from);
  }
  ops::ComputePool pool(1);
  std::vector<float> y(kRows * kOutputs);
  linear.linear().forward(pool, {input, kRows}, ops::MutableRows{y.data(), kOutputs});
  double largest = 0;
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t o = 0; o < kOutputs; ++o) {
      double expected = bias[o], weights = 0, values = 0;
      for (std::size_t i = 0; i < kSpan * kWidth; ++i) {
        const double w = weight[o * kSpan * kWidth + i], v = x[r * kWidth + i];
        expected += w * v, weights += w * w, values += v * v;
      }
      largest = std::max(largest, std::abs(y[r * kOutputs + o] - expected) / std::sqrt(weights * values));
    }
  }
  return largest;
}

TEST(SoundLinear, PreciseIsAsGoodAsFloat32InBothFormats) {
  using Grade = SoundLinear::Grade;
  for (const Grade grade : {Grade::kRounded, Grade::kPrecise}) EXPECT_LT(relative_error(ops::WeightFormat::kFloat32, grade), 1e-6);
  EXPECT_LT(relative_error(ops::WeightFormat::kBfloat16, Grade::kPrecise), 4e-6);
  EXPECT_GT(relative_error(ops::WeightFormat::kBfloat16, Grade::kRounded), 1e-4);
}

TEST(SoundLinear, ARowMayBeCommittedFromItsOwnPlace) {
  for (const ops::WeightFormat format : {ops::WeightFormat::kFloat32, ops::WeightFormat::kBfloat16}) {
    EXPECT_LT(relative_error(format, SoundLinear::Grade::kPrecise, true), 4e-6);
  }
}

}  // namespace
}  // namespace tts::model
