#include "bench/capacity.h"

#include <vector>

#include <gtest/gtest.h>

namespace tts::bench {
namespace {

auto up_to(std::size_t limit) {
  return [limit](std::size_t streams) { return streams <= limit; };
}

TEST(FindCapacity, IsExactWhenSmall) {
  for (std::size_t limit = 0; limit <= 21; ++limit) EXPECT_EQ(find_capacity(1000, up_to(limit), up_to(limit)), limit);
}

TEST(FindCapacity, IsWithinTheResolutionWhenLarge) {
  for (std::size_t limit = 22; limit < 600; ++limit) {
    const auto found = find_capacity(1000, up_to(limit), up_to(limit));
    EXPECT_LE(found, limit);
    EXPECT_GE(static_cast<double>(found), static_cast<double>(limit) / (1 + kCapacityResolution) - 1);
  }
}

TEST(FindCapacity, LooksNoFurtherThanItIsTold) {
  std::size_t most = 0;
  const auto unlimited = [&](std::size_t streams) {
    most = std::max(most, streams);
    return true;
  };
  EXPECT_EQ(find_capacity(100, unlimited, unlimited), 100U);
  EXPECT_EQ(most, 100U);
}

TEST(FindCapacity, BelievesTheThoroughTest) {
  std::vector<std::size_t> thorough;
  const auto found = find_capacity(1000, up_to(50), [&](std::size_t streams) {
    thorough.push_back(streams);
    return streams <= 44;
  });
  EXPECT_LE(found, 44U);
  EXPECT_GE(found, 42U);
  EXPECT_EQ(thorough.back(), found);
  EXPECT_EQ(find_capacity(1000, up_to(50), up_to(0)), 0U);
}

}  // namespace
}  // namespace tts::bench
