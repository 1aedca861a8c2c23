#include "ops/rope.h"

#include <cmath>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model::ops {
namespace {

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
