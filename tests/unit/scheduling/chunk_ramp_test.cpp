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
  const ChunkRamp ramp({}, 24, 0, 64);
  EXPECT_THAT(first(ramp, 6), ElementsAre(8, 8, 12, 16, 24, 24));
  EXPECT_FALSE(ramp.steady(3));
  EXPECT_TRUE(ramp.steady(4));
}

TEST(ChunkRamp, TheFirstChunkCoversTheLookahead) { EXPECT_THAT(first(ChunkRamp({}, 24, 10, 64), 3), ElementsAre(18, 8, 12)); }

TEST(ChunkRamp, AFirstChunkBeyondWhatASlotHoldsIsCutAndSoundStillStartsAtTheSameStep) {
  EXPECT_THAT(first(ChunkRamp({}, 24, 52, 32), 5), ElementsAre(32, 28, 8, 12, 16));
}

TEST(ChunkRamp, SmallSteadyChunksBoundTheRamp) { EXPECT_THAT(first(ChunkRamp({}, 6, 0, 64), 5), ElementsAre(8, 6, 6, 6, 6)); }

TEST(ChunkRamp, AConfiguredRampIsTakenAsItIs) {
  const std::vector<std::uint32_t> wanted{4, 30};
  EXPECT_THAT(first(ChunkRamp(wanted, 24, 8, 64), 4), ElementsAre(4, 30, 24, 24));
}

TEST(ChunkRamp, NoChunkExceedsWhatASlotHolds) {
  const std::vector<std::uint32_t> wanted{4, 30};
  EXPECT_THAT(first(ChunkRamp(wanted, 24, 8, 10), 6), ElementsAre(4, 10, 10, 10, 10, 10));
}

}  // namespace
}  // namespace tts::scheduling
