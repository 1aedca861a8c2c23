#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "ops/aligned_buffer.h"
#include "simd_targets.h"

namespace tts::model::ops {
namespace {

constexpr KvFormat kFormats[] = {KvFormat::kFloat32, KvFormat::kBfloat16, KvFormat::kInt8};

// The cache of one head, in records with a gap between them.
class Head {
 public:
  Head(KvFormat format, std::size_t positions, std::size_t dim, std::uint32_t seed = 1)
      : keys(random_floats(positions * dim, seed, 2.0F)),
        values(random_floats(positions * dim, seed + 1)),
        format_(format),
        dim_(dim),
        stride_(kv_record_bytes(format, dim) + 128),
        memory_((positions + kKvChunk - 1) / kKvChunk * stride_ / sizeof(float)) {
    for (std::size_t p = 0; p < positions; ++p) store(p, keys.data() + p * dim, values.data() + p * dim);
  }

  void store(std::size_t position, const float* key, const float* value) {
    store_key_value(format_, key, value, dim_, position % kKvChunk, records() + position / kKvChunk * stride_);
  }

  std::vector<float> attend(const std::vector<float>& q, std::size_t positions, float scale) {
    std::vector<float> out(dim_);
    ops::attend(format_, q.data(), {.records = records(), .stride = stride_, .next = nullptr}, positions, dim_, scale, out.data());
    return out;
  }

  std::vector<float> keys, values;  // as given, [position][dim]

 private:
  std::byte* records() { return reinterpret_cast<std::byte*>(memory_.data()); }

  KvFormat format_;
  std::size_t dim_, stride_;
  AlignedBuffer memory_;
};

std::vector<double> expected(const std::vector<float>& q, const std::vector<float>& keys, const std::vector<float>& values,
                             std::size_t positions, float scale) {
  const std::size_t dim = q.size();
  std::vector<double> weight(positions), out(dim);
  double highest = -1e300, total = 0.0;
  for (std::size_t p = 0; p < positions; ++p) {
    for (std::size_t i = 0; i < dim; ++i) weight[p] += double{q[i]} * keys[p * dim + i];
    weight[p] *= scale;
    highest = std::max(highest, weight[p]);
  }
  for (double& w : weight) total += w = std::exp(w - highest);
  for (std::size_t p = 0; p < positions; ++p) {
    for (std::size_t i = 0; i < dim; ++i) out[i] += weight[p] / total * values[p * dim + i];
  }
  return out;
}

// Numbers that the format holds exactly, so that what is left is the error of the kernel.
void make_exact(KvFormat format, std::vector<float>& rows, std::size_t dim) {
  if (format == KvFormat::kFloat32) return;
  for (std::size_t p = 0; p * dim < rows.size(); ++p) {
    float* const row = rows.data() + p * dim;
    for (std::size_t i = 0; i < dim; ++i) row[i] = std::round(row[i] * 48.0F) / 64.0F;  // within +-96 / 64: seven bits
    if (format == KvFormat::kInt8) row[p % dim] = 127.0F / 64.0F;
  }
}

TEST(Attention, AgreesWithDoublePrecision) {
  for (const KvFormat format : kFormats) {
    SCOPED_TRACE(static_cast<int>(format));
    const float tolerance = format == KvFormat::kInt8 ? 1e-4F : 3e-6F;  // int8: queries and weights have 16 bits
    for_each_simd_target([&] {
      for (const std::size_t dim : {16, 48, 64, 80, 128}) {
        const std::size_t capacity = 210;
        Head head(format, capacity, dim);
        make_exact(format, head.keys, dim);
        make_exact(format, head.values, dim);
        for (std::size_t p = 0; p < capacity; ++p) head.store(p, head.keys.data() + p * dim, head.values.data() + p * dim);
        const auto q = random_floats(dim, 3, 2.0F);
        const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
        for (const std::size_t positions : {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 209, 210}) {
          const auto out = head.attend(q, positions, scale);
          const auto exact = expected(q, head.keys, head.values, positions, scale);
          for (std::size_t i = 0; i < dim; ++i) ASSERT_NEAR(out[i], exact[i], tolerance) << positions << " positions, dim " << dim;
        }
      }
    });
  }
}

// What rounding keys and values costs: stated here, so that a format that got worse is noticed.
TEST(Attention, RoundedFormatsStayNear) {
  const std::size_t dim = 64, positions = 400;
  for (const auto& [format, bound] : {std::pair{KvFormat::kBfloat16, 2e-3}, {KvFormat::kInt8, 5e-3}}) {
    Head head(format, positions, dim);
    double squares = 0.0, error = 0.0;
    for (std::uint32_t seed = 10; seed < 30; ++seed) {
      const auto q = random_floats(dim, seed, 2.0F);
      const auto exact = expected(q, head.keys, head.values, positions, 0.125F);
      const auto out = head.attend(q, positions, 0.125F);
      for (std::size_t i = 0; i < dim; ++i) {
        squares += exact[i] * exact[i];
        error += (out[i] - exact[i]) * (out[i] - exact[i]);
      }
    }
    EXPECT_LT(std::sqrt(error / squares), 2 * bound) << static_cast<int>(format);
    EXPECT_GT(std::sqrt(error / squares), bound / 8) << "a bound that holds nothing";
  }
}

// What a former owner of the slot left behind must not show, whatever it is.
TEST(Attention, IgnoresEverythingPastItsPositions) {
  for (const KvFormat format : kFormats) {
    for_each_simd_target([&] {
      const std::size_t dim = 32, capacity = 128;
      for (const std::size_t positions : {1, 21, 63, 64, 66, 97}) {
        Head head(format, capacity, dim);
        const auto q = random_floats(dim, 4);
        const auto clean = head.attend(q, positions, 0.2F);
        for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30F}) {
          const std::vector<float> row(dim, poison);
          for (std::size_t p = positions; p < capacity; ++p) head.store(p, row.data(), row.data());
          EXPECT_EQ(clean, head.attend(q, positions, 0.2F)) << positions << " positions, " << poison;
        }
      }
    });
  }
}

TEST(Attention, OneOverwhelmingKeyTakesAll) {
  const std::size_t dim = 16, positions = 140;
  for (const KvFormat format : kFormats) {
    for (const std::size_t winner : {7, 70, 139}) {
      Head head(format, positions, dim);
      make_exact(format, head.values, dim);
      for (std::size_t p = 0; p < positions; ++p) head.store(p, head.keys.data() + p * dim, head.values.data() + p * dim);
      const std::vector<float> key(dim, 1000.0F), q(dim, 10.0F);
      head.store(winner, key.data(), head.values.data() + winner * dim);
      const auto out = head.attend(q, positions, 1.0F);
      for (std::size_t i = 0; i < dim; ++i) EXPECT_NEAR(out[i], head.values[winner * dim + i], format == KvFormat::kInt8 ? 1e-6 : 0.0);
    }
  }
}

TEST(Attention, ZerosAreZeros) {
  const std::size_t dim = 16;
  for (const KvFormat format : kFormats) {
    Head head(format, 3, dim);
    const std::vector<float> zero(dim, 0.0F);
    for (std::size_t p = 0; p < 3; ++p) head.store(p, zero.data(), zero.data());
    EXPECT_EQ(head.attend(zero, 3, 1.0F), zero);
    EXPECT_EQ(head.attend(random_floats(dim, 1), 2, 1.0F), zero);
  }
}

}  // namespace
}  // namespace tts::model::ops
