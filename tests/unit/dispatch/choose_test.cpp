#include "choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tts::dispatch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Candidate engine(std::uint32_t queued, std::uint32_t active, std::uint32_t slots, bool ready = true) {
  return {.load = {.queued = queued, .active = active, .max_active = slots, .max_queued = 100}, .ready = ready};
}

TEST(OrderOfTrial, LeastLoadedFirstTiesInOrder) {
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 4, 8), engine(0, 1, 8), engine(2, 0, 8), engine(0, 1, 8)}), ElementsAre(1, 3, 2, 0));
}

TEST(OrderOfTrial, LoadIsRelativeToSlots) {
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 2, 4), engine(0, 7, 16)}), ElementsAre(1, 0));
}

TEST(OrderOfTrial, LoadIsRelativeToWhatAnEngineKeepsAtRealTime) {
  auto slow = engine(0, 2, 16);
  slow.load.realtime_streams = 4;
  auto fast = engine(0, 6, 16);
  fast.load.realtime_streams = 15;
  EXPECT_THAT(order_of_trial(std::vector{slow, fast}), ElementsAre(1, 0));
  slow.load.active = 1;
  EXPECT_THAT(order_of_trial(std::vector{slow, fast}), ElementsAre(0, 1));
}

TEST(OrderOfTrial, TheShorterWaitComesFirst) {
  auto near = engine(9, 8, 8);
  near.load.expected_wait = std::chrono::milliseconds(300);
  auto far = engine(1, 8, 8);
  far.load.expected_wait = std::chrono::milliseconds(700);
  EXPECT_THAT(order_of_trial(std::vector{far, near, engine(0, 7, 8)}), ElementsAre(2, 1, 0));
}

TEST(OrderOfTrial, UnreadyEnginesAreSkipped) {
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 0, 8, false), engine(90, 8, 8)}), ElementsAre(1));
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 0, 8, false)}), IsEmpty());
  EXPECT_THAT(order_of_trial(std::vector<Candidate>{}), IsEmpty());
}

TEST(OrderOfTrial, AnEngineWithoutSlotsComesLast) {
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 0, 0), engine(90, 8, 8)}), ElementsAre(1, 0));
}

TEST(OrderOfTrial, TheOneToAvoidOnlyWhenAlone) {
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 0, 8), engine(9, 8, 8)}, 0), ElementsAre(1));
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 0, 8), engine(9, 8, 8, false)}, 0), ElementsAre(0));
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 0, 8, false), engine(9, 8, 8, false)}, 0), IsEmpty());
}

TEST(OrderOfTrial, ThePreferredOneComesFirstWhenReady) {
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 0, 8), engine(0, 1, 8), engine(9, 8, 8)}, std::nullopt, 2), ElementsAre(2, 0, 1));
  EXPECT_THAT(order_of_trial(std::vector{engine(0, 1, 8), engine(0, 0, 8, false)}, std::nullopt, 1), ElementsAre(0));
}

TEST(OrderOfTrial, LargeCountsDoNotOverflow) {
  EXPECT_THAT(order_of_trial(std::vector{engine(4000000000U, 4000000000U, 4000000000U), engine(1, 0, 4000000000U)}), ElementsAre(1, 0));
}

}  // namespace
}  // namespace tts::dispatch
