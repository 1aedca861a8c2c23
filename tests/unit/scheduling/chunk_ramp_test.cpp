#include "chunk_ramp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint32_t> first(const ChunkRamp& ramp, std::uint32_t count) {
  std::vector<std::uint32_t> steps;
  for (std::uint32_t i = 0; i < count; ++i) steps.push_back(ramp.steps(i));
  return steps;
}

TEST(ChunkRamp, StartsSmallAndGrows) {
  const ChunkRamp exact({}, 24, false);
  EXPECT_THAT(first(exact, 6), ElementsAre(8, 8, 12, 16, 24, 24));
  EXPECT_FALSE(exact.steady(3));
  EXPECT_TRUE(exact.steady(4));
}

TEST(ChunkRamp, LowLatencyStartsSmaller) { EXPECT_THAT(first(ChunkRamp({}, 24, true), 6), ElementsAre(4, 8, 12, 16, 24, 24)); }

TEST(ChunkRamp, SmallSteadyChunksBoundTheRamp) { EXPECT_THAT(first(ChunkRamp({}, 6, false), 5), ElementsAre(6, 6, 6, 6, 6)); }

TEST(ChunkRamp, AConfiguredRampIsTakenAsItIs) {
  const std::vector<std::uint32_t> wanted{4, 30};
  EXPECT_THAT(first(ChunkRamp(wanted, 24, true), 4), ElementsAre(4, 30, 24, 24));
}

}  // namespace
}  // namespace tts::scheduling
