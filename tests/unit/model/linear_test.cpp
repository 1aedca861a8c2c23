#include "ops/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "linear_targets.h"
#include "ops/quantize.h"
#include "support/allocation_counter.h"

namespace tts::model::ops {
namespace {

using Floats = std::vector<float>;

constexpr float kUntouched = 12345.0F;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

LinearInput input_of(WeightFormat format, const Floats& values, std::size_t width, bool rotated = false) {
  LinearInput input(format, values.size() / width, width, rotated);
  std::copy(values.begin(), values.end(), input.row(0));
  for (std::size_t r = 0; r < input.max_rows(); ++r) input.commit_row(r);
  return input;
}

// What a format makes of the rows of a matrix.
Floats rounded(WeightFormat format, const Floats& values, std::size_t width) {
  Floats result = values;
  if (format == WeightFormat::kBfloat16) {
    for (float& value : result) value = from_bfloat16(to_bfloat16(value));
  } else if (format == WeightFormat::kInt8) {
    std::vector<std::int8_t> codes(width);
    for (std::size_t at = 0; at < values.size(); at += width) {
      const QuantizedRow row = quantize(values.data() + at, width, codes.data());
      for (std::size_t i = 0; i < width; ++i) result[at + i] = row.scale * codes[i];
    }
  }
  return result;
}

std::vector<double> times(const Floats& x, const Floats& weight, std::size_t inputs, const Floats& bias) {
  const std::size_t rows = x.size() / inputs, outputs = weight.size() / inputs;
  std::vector<double> y(rows * outputs);
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t n = 0; n < outputs; ++n) {
      double sum = bias.empty() ? 0.0 : bias[n];
      for (std::size_t k = 0; k < inputs; ++k) sum += double{x[m * inputs + k]} * weight[n * inputs + k];
      y[m * outputs + n] = sum;
    }
  }
  return y;
}

double exact_gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double exact_silu(double x) { return x / (1.0 + std::exp(-x)); }

// Of GELU in formats that round what follows it.
constexpr double kCoarse = 6e-5;

// Of float32 sums of products of values up to 1, which a format has rounded.
double tolerance(std::size_t inputs) { return 1e-6 * std::sqrt(static_cast<double>(inputs)) + 1e-6; }

struct Sizes {
  std::size_t outputs, inputs;
};

TEST(Linear, AgreesWithDoublePrecisionOnEveryTarget) {
  for (const WeightFormat format : kWeightFormats) {
    for_each_linear_target(format, [&] {
      ComputePool pool(2);
      for (const Sizes sizes : {Sizes{1, 1}, Sizes{5, 3}, Sizes{16, 16}, Sizes{17, 33}, Sizes{48, 20}, Sizes{64, 64}, Sizes{100, 96},
                                Sizes{129, 31}, Sizes{40, 200}, Sizes{33, 130}}) {
        SCOPED_TRACE(std::to_string(sizes.outputs) + " x " + std::to_string(sizes.inputs));
        for (const bool with_bias : {false, true}) {
          const Floats weight = random_floats(sizes.outputs * sizes.inputs, 1),
                       bias = with_bias ? random_floats(sizes.outputs, 2) : Floats{};
          const auto linear = make_linear(format, weight.data(), sizes.outputs, sizes.inputs, with_bias ? bias.data() : nullptr);
          ASSERT_EQ(linear->format(), format);
          ASSERT_EQ(linear->inputs(), sizes.inputs);
          ASSERT_EQ(linear->outputs(), sizes.outputs);
          for (const std::size_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 50, 97}) {
            const std::size_t stride = sizes.outputs + 2;
            const Floats values = random_floats(rows * sizes.inputs, 3), before = random_floats(rows * stride, 4);
            const LinearInput x = input_of(format, values, sizes.inputs);
            const auto expected = times(rounded(format, values, sizes.inputs), rounded(format, weight, sizes.inputs), sizes.inputs, bias);
            Floats plain(rows * stride, kUntouched), gelu(rows * stride, kUntouched), added = before;
            linear->forward(pool, {x, rows}, MutableRows{plain.data(), stride});
            linear->forward(pool, {x, rows}, MutableRows{gelu.data(), stride}, Activation::kGelu);
            linear->forward_add(pool, {x, rows}, {added.data(), stride});
            for (std::size_t m = 0; m < rows; ++m) {
              for (std::size_t n = 0; n < stride; ++n) {
                const std::size_t at = m * stride + n;
                if (n >= sizes.outputs) {
                  ASSERT_EQ(plain[at], kUntouched);
                  ASSERT_EQ(gelu[at], kUntouched);
                  ASSERT_EQ(added[at], before[at]);
                  continue;
                }
                const double value = expected[m * sizes.outputs + n];
                ASSERT_NEAR(plain[at], value, tolerance(sizes.inputs));
                ASSERT_NEAR(gelu[at], exact_gelu(value), 2 * tolerance(sizes.inputs) + (format == WeightFormat::kFloat32 ? 0.0 : kCoarse));
                ASSERT_NEAR(added[at], before[at] + value, tolerance(sizes.inputs));
              }
            }
          }
        }
      }
    });
  }
}

TEST(Linear, GateUpAgreesWithDoublePrecisionOnEveryTarget) {
  for (const WeightFormat format : kWeightFormats) {
    for_each_linear_target(format, [&] {
      ComputePool pool(2);
      for (const Sizes sizes : {Sizes{1, 2}, Sizes{16, 16}, Sizes{40, 24}, Sizes{96, 64}, Sizes{130, 48}, Sizes{30, 100}}) {
        const Floats gate = random_floats(sizes.outputs * sizes.inputs, 5), up = random_floats(sizes.outputs * sizes.inputs, 6);
        const auto linear = make_gate_up(format, gate.data(), up.data(), sizes.outputs, sizes.inputs);
        ASSERT_EQ(linear->outputs(), sizes.outputs);
        for (const std::size_t rows : {1, 5, 19, 40}) {
          const Floats values = random_floats(rows * sizes.inputs, 7), seen = rounded(format, values, sizes.inputs);
          const auto g = times(seen, rounded(format, gate, sizes.inputs), sizes.inputs, {}),
                     u = times(seen, rounded(format, up, sizes.inputs), sizes.inputs, {});
          Floats y(rows * sizes.outputs);
          linear->forward(pool, {input_of(format, values, sizes.inputs), rows}, MutableRows{y.data(), sizes.outputs}, Activation::kSwiGlu);
          for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], exact_silu(g[i]) * u[i], 20 * tolerance(sizes.inputs));
        }
      }
    });
  }
}

// A weight of 1 and a bias of 0 leave the activation alone. Formats below float32 take the coarse one, whose bound holds for |x| < 20.
TEST(Linear, GeluIsCloseEverywhere) {
  for (const WeightFormat format : {WeightFormat::kFloat32, WeightFormat::kBfloat16}) {
    for_each_linear_target(format, [&] {
      ComputePool pool(1);
      Floats x;
      for (double v = -12.0; v <= 12.0; v += 1e-3) x.push_back(static_cast<float>(v));
      for (const float v : {-19.9F, -0.0F, 0.0F, 1e-20F, 19.9F}) x.push_back(v);
      if (format == WeightFormat::kFloat32) x.insert(x.end(), {-1e30F, -100.0F, 100.0F, 1e30F});
      x = rounded(format, x, 1);
      const Floats one{1.0F};
      Floats y(x.size());
      make_linear(format, one.data(), 1, 1)->forward(pool, {input_of(format, x, 1), x.size()}, MutableRows{y.data(), 1}, Activation::kGelu);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = exact_gelu(x[i]), bound = format == WeightFormat::kFloat32 ? 1e-6 + 1e-7 * std::abs(expected) : kCoarse;
        ASSERT_NEAR(y[i], expected, bound) << x[i];
      }
    });
  }
}

TEST(Linear, SwiGluSurvivesHugeGates) {
  ComputePool pool(1);
  const Floats gate{-1e4F, 1e4F, -300.0F}, up{1.0F, 1.0F, 1.0F};
  for (const WeightFormat format : kWeightFormats) {
    const auto linear = make_gate_up(format, gate.data(), up.data(), 3, 1);
    Floats y(3);
    linear->forward(pool, {input_of(format, {1.0F}, 1), 1}, MutableRows{y.data(), 3}, Activation::kSwiGlu);
    EXPECT_NEAR(y[0], 0.0F, 1e-30F);
    EXPECT_NEAR(y[1], 1e4F, 20.0F);
    EXPECT_NEAR(y[2], 0.0F, 1e-30F);
  }
}

// The integer sums are exact and the steps around them the same everywhere.
TEST(Linear, Int8BitsAreThoseOfEveryOtherTarget) {
  const Sizes sizes{210, 333};
  const std::size_t rows = 21;
  const Floats weight = random_floats(sizes.outputs * sizes.inputs, 8), bias = random_floats(sizes.outputs, 9),
               values = random_floats(rows * sizes.inputs, 10), residual = random_floats(rows * sizes.outputs, 11);
  ComputePool pool(2);
  std::optional<Floats> plain, added;
  for_each_linear_target(WeightFormat::kInt8, [&] {
    const auto linear = make_linear(WeightFormat::kInt8, weight.data(), sizes.outputs, sizes.inputs, bias.data());
    const LinearInput x = input_of(WeightFormat::kInt8, values, sizes.inputs);
    Floats y(rows * sizes.outputs), sum = residual;
    linear->forward(pool, {x, rows}, MutableRows{y.data(), sizes.outputs});
    linear->forward_add(pool, {x, rows}, {sum.data(), sizes.outputs});
    if (!plain) plain = y, added = sum;
    EXPECT_EQ(y, *plain);
    EXPECT_EQ(sum, *added);
  });
}

// The largest sums that the widest layer can make: no saturation, no overflow.
TEST(Linear, Int8SumsOfExtremesAreExact) {
  const std::size_t inputs = 3072, rows = 3;
  ComputePool pool(1);
  for_each_linear_target(WeightFormat::kInt8, [&] {
    for (const float sign : {1.0F, -1.0F}) {
      const Floats weight(inputs, sign), values(rows * inputs, 1.0F);
      const auto linear = make_linear(WeightFormat::kInt8, weight.data(), 1, inputs);
      Floats y(rows);
      linear->forward(pool, {input_of(WeightFormat::kInt8, values, inputs), rows}, MutableRows{y.data(), 1});
      for (const float value : y) EXPECT_NEAR(value, sign * static_cast<float>(inputs), 1e-3);
    }
  });
}

// A convolution of width 3 over [time, channel] data, dense and with a stride; widths that fill no block.
TEST(Linear, TakesRowsLaidEndToEnd) {
  for (const WeightFormat format : {WeightFormat::kFloat32, WeightFormat::kBfloat16}) {
    for_each_linear_target(format, [&] {
      ComputePool pool(2);
      for (const std::size_t channels : {20, 64, 7}) {
        const std::size_t frames = 70, outputs = 24, span = 3, first = 2;
        const Floats weight = random_floats(outputs * span * channels, 12), values = random_floats(frames * channels, 13);
        const LinearInput x = input_of(format, values, channels);
        const auto linear = make_linear(format, weight.data(), outputs, span * channels);
        for (const std::size_t step : {1, 2, 3}) {
          const std::size_t rows = (frames - first - span) / step + 1;
          Floats windows;
          for (std::size_t r = 0; r < rows; ++r) {
            const auto begin = values.begin() + static_cast<std::ptrdiff_t>((first + r * step) * channels);
            windows.insert(windows.end(), begin, begin + static_cast<std::ptrdiff_t>(span * channels));
          }
          const auto expected = times(rounded(format, windows, channels), rounded(format, weight, channels), span * channels, {});
          Floats y(rows * outputs);
          linear->forward(pool, {x, rows, first, step}, MutableRows{y.data(), outputs});
          for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], tolerance(span * channels));
        }
      }
    });
  }
}

TEST(Linear, AnInputAsOutputHoldsWhatTheNextProductReads) {
  for (const WeightFormat format : kWeightFormats) {
    for_each_linear_target(format, [&] {
      ComputePool pool(2);
      for (const Sizes sizes : {Sizes{100, 64}, Sizes{37, 50}, Sizes{1600, 20}}) {
        const std::size_t rows = 35;
        const Floats weight = random_floats(sizes.outputs * sizes.inputs, 14), up = random_floats(sizes.outputs * sizes.inputs, 15);
        const auto plain = make_linear(format, weight.data(), sizes.outputs, sizes.inputs);
        const auto gated = make_gate_up(format, weight.data(), up.data(), sizes.outputs, sizes.inputs);
        const LinearInput x = input_of(format, random_floats(rows * sizes.inputs, 16), sizes.inputs);
        for (const Activation activation : {Activation::kNone, Activation::kGelu, Activation::kSwiGlu}) {
          const Linear& linear = activation == Activation::kSwiGlu ? *gated : *plain;
          Floats y(rows * sizes.outputs);
          linear.forward(pool, {x, rows}, MutableRows{y.data(), sizes.outputs}, activation);
          const bool rotated = sizes.outputs % 64 == 0;
          const LinearInput expected = input_of(format, y, sizes.outputs, rotated);
          LinearInput next(format, rows, sizes.outputs + 10, rotated);
          linear.forward(pool, {x, rows}, next, activation);
          ASSERT_EQ(next.width(), sizes.outputs);
          const std::size_t values = rows * sizes.outputs;
          switch (format) {
            case WeightFormat::kFloat32: ASSERT_TRUE(std::equal(next.row(0), next.row(0) + values, expected.row(0))); break;
            case WeightFormat::kBfloat16: ASSERT_EQ(std::memcmp(next.bfloats(0), expected.bfloats(0), 2 * values), 0); break;
            case WeightFormat::kInt8:
              ASSERT_EQ(std::memcmp(next.bytes(0), expected.bytes(0), values), 0);
              for (std::size_t r = 0; r < rows; ++r) {
                ASSERT_EQ(next.quantized(r).scale, expected.quantized(r).scale);
                ASSERT_EQ(next.quantized(r).sum, expected.quantized(r).sum);
              }
          }
        }
      }
    });
  }
}

// A row that holds NaN or infinity spoils itself and no other; widths that fill no block, so that kernels read past a row's end.
TEST(Linear, ABadRowStaysAlone) {
  for (const WeightFormat format : kWeightFormats) {
    for_each_linear_target(format, [&] {
      ComputePool pool(2);
      const Sizes sizes{40, 70};
      const std::size_t rows = 20;
      const Floats weight = random_floats(sizes.outputs * sizes.inputs, 17);
      const auto linear = make_linear(format, weight.data(), sizes.outputs, sizes.inputs);
      Floats values = random_floats(rows * sizes.inputs, 18);
      Floats good(rows * sizes.outputs), mixed(rows * sizes.outputs);
      linear->forward(pool, {input_of(format, values, sizes.inputs), rows}, MutableRows{good.data(), sizes.outputs});
      for (std::size_t r = 1; r < rows; r += 2) values[r * sizes.inputs] = r % 4 == 1 ? kNan : std::numeric_limits<float>::infinity();
      linear->forward(pool, {input_of(format, values, sizes.inputs), rows}, MutableRows{mixed.data(), sizes.outputs});
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t at = r * sizes.outputs; at < (r + 1) * sizes.outputs; ++at) {
          if (r % 2 == 0) {
            ASSERT_EQ(mixed[at], good[at]);
          } else {
            ASSERT_FALSE(std::isfinite(mixed[at]));
          }
        }
      }
    });
  }
}

// The promise everything above rests on: bits of a row depend on nothing but the row.
TEST(Linear, RowsAreBitEqualAloneInAnyBatchAndWithAnyNumberOfWorkers) {
  for (const WeightFormat format : kWeightFormats) {
    for_each_linear_target(format, [&] {
      const Sizes sizes{200, 139};
      const Floats weight = random_floats(sizes.outputs * sizes.inputs, 19), up = random_floats(sizes.outputs * sizes.inputs, 20),
                   bias = random_floats(sizes.outputs, 21);
      const auto linear = make_linear(format, weight.data(), sizes.outputs, sizes.inputs, bias.data());
      const auto gated = make_gate_up(format, weight.data(), up.data(), sizes.outputs, sizes.inputs);
      constexpr std::size_t kRows = 70;
      const LinearInput x = input_of(format, random_floats(kRows * sizes.inputs, 22), sizes.inputs);
      const Floats residual = random_floats(kRows * sizes.outputs, 23);

      struct Results {
        Floats plain, gelu, swiglu, added;
      };
      const auto compute = [&](ComputePool& pool, std::size_t first, std::size_t rows) {
        const InputRows in{x, rows, first};
        const std::size_t values = rows * sizes.outputs;
        Results r{Floats(values), Floats(values), Floats(values), {}};
        const auto begin = residual.begin() + static_cast<std::ptrdiff_t>(first * sizes.outputs);
        r.added.assign(begin, begin + static_cast<std::ptrdiff_t>(values));
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
      const auto expect_equal = [&](const Floats& part, const Floats& whole, std::size_t first) {
        ASSERT_EQ(std::memcmp(part.data(), whole.data() + first * sizes.outputs, part.size() * sizeof(float)), 0);
      };
      for (const std::uint32_t workers : {1U, 2U, 7U}) {
        ComputePool pool(workers);
        for (std::size_t rows = 1; rows <= kRows; rows = rows < 33 ? rows + 1 : rows + 37) {
          SCOPED_TRACE(rows);
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
}

TEST(Linear, NoRowsAreNoWork) {
  ComputePool pool(2);
  for (const WeightFormat format : kWeightFormats) {
    const Floats weight(6, 1.0F);
    const auto linear = make_linear(format, weight.data(), 2, 3);
    const LinearInput x(format, 1, 3);
    Floats y(2, kUntouched);
    linear->forward(pool, {x, 0}, MutableRows{y.data(), 2});
    EXPECT_EQ(y, Floats(2, kUntouched));
  }
}

TEST(Linear, CallsDoNotAllocate) {
  if (!testing::kCountsAllocations) GTEST_SKIP() << "a sanitizer brings its own allocator";
  for (const WeightFormat format : kWeightFormats) {
    for_each_linear_target(format, [&] {
      ComputePool pool(2);
      const Sizes sizes{96, 50};
      const std::size_t rows = 40;
      const Floats weight = random_floats(sizes.outputs * sizes.inputs, 24), values = random_floats(rows * sizes.inputs, 25);
      const auto linear = make_linear(format, weight.data(), sizes.outputs, sizes.inputs);
      const auto gated = make_gate_up(format, weight.data(), weight.data(), sizes.outputs, sizes.inputs);
      LinearInput x(format, rows, sizes.inputs), next(format, rows, sizes.outputs);
      Floats y(rows * sizes.outputs);
      const std::uint64_t before = testing::allocation_count;
      std::copy(values.begin(), values.end(), x.row(0));
      x.commit(pool, rows);
      linear->forward(pool, {x, rows}, MutableRows{y.data(), sizes.outputs}, Activation::kGelu);
      linear->forward_add(pool, {x, rows}, {y.data(), sizes.outputs});
      gated->forward(pool, {x, rows}, next, Activation::kSwiGlu);
      EXPECT_EQ(testing::allocation_count, before);
    });
  }
}

TEST(Linear, WeightBytesAreThoseOfTheFormat) {
  const Floats weight(128 * 256, 1.0F);
  EXPECT_EQ(make_linear(WeightFormat::kFloat32, weight.data(), 128, 256)->weight_bytes(), 128U * 256 * 4);
  EXPECT_EQ(make_linear(WeightFormat::kBfloat16, weight.data(), 128, 256)->weight_bytes(), 128U * 256 * 2);
  EXPECT_EQ(make_linear(WeightFormat::kInt8, weight.data(), 128, 256)->weight_bytes(), 128U * 256);
  EXPECT_EQ(make_gate_up(WeightFormat::kInt8, weight.data(), weight.data(), 128, 256)->weight_bytes(), 2U * 128 * 256);
}

}  // namespace
}  // namespace tts::model::ops
