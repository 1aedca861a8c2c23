#include "bitrate_control.h"

#include <gtest/gtest.h>

namespace tts::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds(1000)};
constexpr BitrateControl::Link kGood{.waiting = milliseconds(20), .left = seconds(2)};
constexpr BitrateControl::Link kCongested{.waiting = milliseconds(900), .left = milliseconds(500)};

TEST(BitrateControl, StartsInTheMiddle) { EXPECT_EQ(BitrateControl(kStart).rate(), 32'000U); }

TEST(BitrateControl, GoesUpSlowlyToTheTop) {
  BitrateControl control(kStart);
  EXPECT_EQ(control.observe(kGood, kStart + seconds(4)), std::nullopt);
  EXPECT_EQ(control.observe(kGood, kStart + seconds(5)), 48'000U);
  EXPECT_EQ(control.observe(kGood, kStart + seconds(9)), std::nullopt);
  EXPECT_EQ(control.observe(kGood, kStart + seconds(10)), 64'000U);
  EXPECT_EQ(control.observe(kGood, kStart + seconds(60)), std::nullopt);
}

TEST(BitrateControl, GoesDownFastStepByStep) {
  BitrateControl control(kStart);
  EXPECT_EQ(control.observe(kCongested, kStart + seconds(1)), 24'000U);
  EXPECT_EQ(control.observe(kCongested, kStart + milliseconds(1400)), std::nullopt) << "until the lower rate shows";
  EXPECT_EQ(control.observe(kCongested, kStart + milliseconds(1500)), 16'000U);
  EXPECT_EQ(control.observe(kCongested, kStart + seconds(3)), std::nullopt);
}

TEST(BitrateControl, AnEmptyListenerGetsTheLeastAtOnce) {
  BitrateControl control(kStart);
  EXPECT_EQ(control.observe({.waiting = seconds(1), .left = milliseconds(-200)}, kStart + seconds(1)), 16'000U);
}

TEST(BitrateControl, AudioThatWaitsIsNoTroubleWhileTheListenerHasPlenty) {
  BitrateControl control(kStart);
  EXPECT_EQ(control.observe({.waiting = seconds(4), .left = seconds(3)}, kStart + seconds(1)), std::nullopt) << "made faster than heard";
}

TEST(BitrateControl, ALinkThatFailedOnceIsTrustedAgainAfterAWhile) {
  BitrateControl control(kStart);
  ASSERT_TRUE(control.observe(kCongested, kStart + seconds(1)));
  EXPECT_EQ(control.observe(kGood, kStart + milliseconds(5900)), std::nullopt);
  EXPECT_EQ(control.observe(kGood, kStart + seconds(6)), 32'000U);
}

}  // namespace
}  // namespace tts::stream
