#include "ops/packed_linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model::ops {
namespace {

struct Sizes {
  std::size_t outputs, inputs;
};

constexpr float kUntouched = 12345.0F;

LinearInput input_of(const std::vector<float>& values, std::size_t width) {
  LinearInput input(WeightFormat::kFloat32, values.size() / width, width);
  std::copy(values.begin(), values.end(), input.row(0));
  return input;
}

std::vector<double> reference(const std::vector<float>& weight, const std::vector<float>& bias, const Sizes& sizes, const InputRows& x) {
  std::vector<double> y(x.rows * sizes.outputs);
  for (std::size_t m = 0; m < x.rows; ++m) {
    for (std::size_t n = 0; n < sizes.outputs; ++n) {
      double sum = bias.empty() ? 0.0 : bias[n];
      for (std::size_t k = 0; k < sizes.inputs; ++k) sum += double{x.input.row(x.first + m * x.step)[k]} * weight[n * sizes.inputs + k];
      y[m * sizes.outputs + n] = sum;
    }
  }
  return y;
}

double exact_gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double exact_silu(double x) { return x / (1.0 + std::exp(-x)); }

double tolerance(std::size_t inputs) { return 1e-6 * std::sqrt(static_cast<double>(inputs)) + 1e-6; }

TEST(PackedLinear, AgreesWithDoublePrecisionOnEveryInstructionSet) {
  for_each_simd_target([] {
    ComputePool pool(2);
    for (const Sizes sizes :
         {Sizes{1, 1}, Sizes{5, 3}, Sizes{16, 16}, Sizes{17, 33}, Sizes{48, 20}, Sizes{64, 64}, Sizes{100, 96}, Sizes{129, 31}}) {
      for (const bool with_bias : {false, true}) {
        const auto weight = random_floats(sizes.outputs * sizes.inputs, 1);
        const auto bias = with_bias ? random_floats(sizes.outputs, 2) : std::vector<float>{};
        const auto linear =
            make_linear(WeightFormat::kFloat32, weight.data(), sizes.outputs, sizes.inputs, with_bias ? bias.data() : nullptr);
        ASSERT_EQ(linear->inputs(), sizes.inputs);
        ASSERT_EQ(linear->outputs(), sizes.outputs);
        for (const std::size_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 50, 97}) {
          const std::size_t y_stride = sizes.outputs + 2;
          const LinearInput x = input_of(random_floats(rows * sizes.inputs, 3), sizes.inputs);
          const auto before = random_floats(rows * y_stride, 4);
          const InputRows in{x, rows};
          const auto expected = reference(weight, bias, sizes, in);
          std::vector<float> plain(rows * y_stride, kUntouched), gelu(rows * y_stride, kUntouched), added = before;
          linear->forward(pool, in, MutableRows{plain.data(), y_stride});
          linear->forward(pool, in, MutableRows{gelu.data(), y_stride}, Activation::kGelu);
          linear->forward_add(pool, in, {added.data(), y_stride});
          for (std::size_t m = 0; m < rows; ++m) {
            for (std::size_t n = 0; n < y_stride; ++n) {
              const std::size_t at = m * y_stride + n;
              if (n >= sizes.outputs) {
                ASSERT_EQ(plain[at], kUntouched);
                ASSERT_EQ(gelu[at], kUntouched);
                ASSERT_EQ(added[at], before[at]);
                continue;
              }
              const double value = expected[m * sizes.outputs + n];
              ASSERT_NEAR(plain[at], value, tolerance(sizes.inputs));
              ASSERT_NEAR(gelu[at], exact_gelu(value), 2 * tolerance(sizes.inputs));
              ASSERT_NEAR(added[at], before[at] + value, tolerance(sizes.inputs));
            }
          }
        }
      }
    }
  });
}

TEST(PackedLinear, GateUpAgreesWithDoublePrecisionOnEveryInstructionSet) {
  for_each_simd_target([] {
    ComputePool pool(2);
    for (const Sizes sizes : {Sizes{1, 2}, Sizes{16, 16}, Sizes{40, 24}, Sizes{96, 64}, Sizes{130, 48}}) {
      const auto gate = random_floats(sizes.outputs * sizes.inputs, 5, 2.0F), up = random_floats(sizes.outputs * sizes.inputs, 6);
      const auto linear = make_gate_up(WeightFormat::kFloat32, gate.data(), up.data(), sizes.outputs, sizes.inputs);
      ASSERT_EQ(linear->outputs(), sizes.outputs);
      for (const std::size_t rows : {1, 5, 19}) {
        const LinearInput x = input_of(random_floats(rows * sizes.inputs, 7), sizes.inputs);
        const InputRows in{x, rows};
        const auto g = reference(gate, {}, sizes, in), u = reference(up, {}, sizes, in);
        std::vector<float> y(rows * sizes.outputs);
        linear->forward(pool, in, MutableRows{y.data(), sizes.outputs}, Activation::kSwiGlu);
        for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], exact_silu(g[i]) * u[i], 20 * tolerance(sizes.inputs));
      }
    }
  });
}

TEST(PackedLinear, SwiGluSurvivesHugeGates) {
  ComputePool pool(1);
  const std::vector<float> gate{-1e4F, 1e4F, -300.0F}, up{1.0F, 1.0F, 1.0F};
  const auto linear = make_gate_up(WeightFormat::kFloat32, gate.data(), up.data(), 3, 1);
  std::vector<float> y(3);
  linear->forward(pool, {input_of({1.0F}, 1), 1}, MutableRows{y.data(), 3}, Activation::kSwiGlu);
  EXPECT_NEAR(y[0], 0.0F, 1e-30F);
  EXPECT_EQ(y[1], 1e4F);
  EXPECT_NEAR(y[2], 0.0F, 1e-30F);
}

// A convolution of width 3 over [time, channel]: rows overlap in memory.
TEST(PackedLinear, TakesOverlappingRows) {
  ComputePool pool(2);
  const std::size_t channels = 20, frames = 30, outputs = 24;
  const auto weight = random_floats(outputs * 3 * channels, 8), values = random_floats((frames + 2) * channels, 9);
  const LinearInput x = input_of(values, channels);
  const auto linear = make_linear(WeightFormat::kFloat32, weight.data(), outputs, 3 * channels);
  const InputRows in{x, frames};
  const auto expected = reference(weight, {}, {outputs, 3 * channels}, in);
  std::vector<float> y(frames * outputs);
  linear->forward(pool, in, MutableRows{y.data(), outputs});
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], tolerance(3 * channels));
}

// The promise everything above rests on: bits of a row depend on nothing but the row.
TEST(PackedLinear, RowsAreBitEqualAloneInAnyBatchAndWithAnyNumberOfWorkers) {
  for_each_simd_target([] {
    const Sizes sizes{200, 72};
    const auto weight = random_floats(sizes.outputs * sizes.inputs, 10), up = random_floats(sizes.outputs * sizes.inputs, 11);
    const auto bias = random_floats(sizes.outputs, 12);
    const auto linear = make_linear(WeightFormat::kFloat32, weight.data(), sizes.outputs, sizes.inputs, bias.data());
    const auto gated = make_gate_up(WeightFormat::kFloat32, weight.data(), up.data(), sizes.outputs, sizes.inputs);
    constexpr std::size_t kRows = 64;
    const LinearInput x = input_of(random_floats(kRows * sizes.inputs, 13), sizes.inputs);
    const std::vector<float> residual = random_floats(kRows * sizes.outputs, 14);

    struct Results {
      std::vector<float> plain, gelu, swiglu, added;
    };
    const auto compute = [&](ComputePool& pool, std::size_t first, std::size_t rows) {
      const InputRows in{x, rows, first};
      Results r;
      r.plain.resize(rows * sizes.outputs);
      r.gelu.resize(rows * sizes.outputs);
      r.swiglu.resize(rows * sizes.outputs);
      r.added.assign(residual.begin() + static_cast<std::ptrdiff_t>(first * sizes.outputs),
                     residual.begin() + static_cast<std::ptrdiff_t>((first + rows) * sizes.outputs));
      linear->forward(pool, in, MutableRows{r.plain.data(), sizes.outputs});
      linear->forward(pool, in, MutableRows{r.gelu.data(), sizes.outputs}, Activation::kGelu);
      gated->forward(pool, in, MutableRows{r.swiglu.data(), sizes.outputs}, Activation::kSwiGlu);
      linear->forward_add(pool, in, {r.added.data(), sizes.outputs});
      return r;
    };

    ComputePool one(1);
    Results alone;
    for (std::size_t row = 0; row < kRows; ++row) {
      const Results r = compute(one, row, 1);
      alone.plain.insert(alone.plain.end(), r.plain.begin(), r.plain.end());
      alone.gelu.insert(alone.gelu.end(), r.gelu.begin(), r.gelu.end());
      alone.swiglu.insert(alone.swiglu.end(), r.swiglu.begin(), r.swiglu.end());
      alone.added.insert(alone.added.end(), r.added.begin(), r.added.end());
    }
    const auto expect_equal = [&](const std::vector<float>& part, const std::vector<float>& whole, std::size_t first) {
      ASSERT_EQ(std::memcmp(part.data(), whole.data() + first * sizes.outputs, part.size() * sizeof(float)), 0);
    };
    for (const std::uint32_t workers : {2U, 7U}) {
      ComputePool pool(workers);
      for (std::size_t rows = 1; rows <= kRows; rows = rows < 40 ? rows + 1 : rows + 24) {
        const std::size_t first = kRows - rows;
        const Results r = compute(pool, first, rows);
        expect_equal(r.plain, alone.plain, first);
        expect_equal(r.gelu, alone.gelu, first);
        expect_equal(r.swiglu, alone.swiglu, first);
        expect_equal(r.added, alone.added, first);
      }
    }
  });
}

}  // namespace
}  // namespace tts::model::ops
