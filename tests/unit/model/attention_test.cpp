#include "ops/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model::ops {
namespace {

struct Head {
  std::vector<float> plain_keys, keys, values;  // [position][dim], blocks, [position][dim]
};

Head make_head(std::size_t positions, std::size_t dim) {
  Head head{random_floats(positions * dim, 1, 2.0F), std::vector<float>(round_up_to_key_block(positions) * dim),
            random_floats(positions * dim, 2)};
  for (std::size_t p = 0; p < positions; ++p) store_key(head.plain_keys.data() + p * dim, dim, p, head.keys.data());
  return head;
}

TEST(Attention, AgreesWithDoublePrecision) {
  for_each_simd_target([] {
    for (const std::size_t dim : {16, 48, 64, 80}) {
      const std::size_t capacity = 210;
      const Head head = make_head(capacity, dim);
      const auto q = random_floats(dim, 3, 2.0F);
      const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
      std::vector<float> scores(round_up_to_key_block(capacity)), out(dim);
      for (const std::size_t positions : {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 128, 209, 210}) {
        std::vector<double> weight(positions), expected(dim);
        double highest = -1e300, total = 0.0;
        for (std::size_t p = 0; p < positions; ++p) {
          for (std::size_t i = 0; i < dim; ++i) weight[p] += double{q[i]} * head.plain_keys[p * dim + i];
          weight[p] *= scale;
          highest = std::max(highest, weight[p]);
        }
        for (double& w : weight) total += w = std::exp(w - highest);
        for (std::size_t p = 0; p < positions; ++p) {
          for (std::size_t i = 0; i < dim; ++i) expected[i] += weight[p] / total * head.values[p * dim + i];
        }
        attend(q.data(), head.keys.data(), head.values.data(), positions, dim, scale, scores.data(), out.data());
        for (std::size_t i = 0; i < dim; ++i) ASSERT_NEAR(out[i], expected[i], 3e-6) << positions << " positions, dim " << dim;
      }
    }
  });
}

// What a former owner of the slot left behind must not show, whatever it is.
TEST(Attention, IgnoresEverythingPastItsPositions) {
  for_each_simd_target([] {
    const std::size_t dim = 32, positions = 21, capacity = 64;
    Head head = make_head(positions, dim);
    head.keys.resize(capacity * dim);
    head.values.resize(capacity * dim);
    const auto q = random_floats(dim, 4);
    std::vector<float> scores(capacity), clean(dim), dirty(dim);
    attend(q.data(), head.keys.data(), head.values.data(), positions, dim, 0.2F, scores.data(), clean.data());
    const std::vector<float> poison(dim, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t p = positions; p < capacity; ++p) {
      store_key(poison.data(), dim, p, head.keys.data());
      std::copy(poison.begin(), poison.end(), head.values.begin() + static_cast<std::ptrdiff_t>(p * dim));
    }
    attend(q.data(), head.keys.data(), head.values.data(), positions, dim, 0.2F, scores.data(), dirty.data());
    EXPECT_EQ(clean, dirty);
  });
}

TEST(Attention, OneOverwhelmingKeyTakesAll) {
  const std::size_t dim = 16, positions = 40;
  Head head = make_head(positions, dim);
  std::vector<float> key(dim, 1000.0F), q(dim, 10.0F), scores(round_up_to_key_block(positions)), out(dim);
  store_key(key.data(), dim, 7, head.keys.data());
  attend(q.data(), head.keys.data(), head.values.data(), positions, dim, 1.0F, scores.data(), out.data());
  for (std::size_t i = 0; i < dim; ++i) EXPECT_EQ(out[i], head.values[7 * dim + i]);
}

TEST(Rope, RotatesHalvesByPositionTimesFrequency) {
  for_each_simd_target([] {
    for (const std::size_t dim : {16, 48, 64}) {
      const RopeTable table(300, dim, 10000.0);
      for (const std::size_t position : {0, 1, 37, 299}) {
        const auto x = random_floats(dim, 5);
        auto y = x;
        table.rotate(position, y.data());
        for (std::size_t j = 0; j < dim / 2; ++j) {
          const double angle = static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(dim));
          ASSERT_NEAR(y[j], x[j] * std::cos(angle) - x[j + dim / 2] * std::sin(angle), 3e-5);
          ASSERT_NEAR(y[j + dim / 2], x[j + dim / 2] * std::cos(angle) + x[j] * std::sin(angle), 3e-5);
        }
        if (position == 0) {
          ASSERT_EQ(x, y);
        }
      }
    }
  });
}

}  // namespace
}  // namespace tts::model::ops
