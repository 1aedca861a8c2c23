#include "progress.h"

#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;

constexpr ProgressRules kRules{.max_failures_in_a_row = 3, .failure_cooldown = milliseconds(5000), .hang_limit = milliseconds(10000)};
const TimePoint kStart = TimePoint(std::chrono::seconds(100));

TEST(Progress, IsReadyFromTheStartAndWhileIdleForever) {
  Progress progress(kRules, kStart);
  EXPECT_TRUE(progress.health(kStart).ready);
  progress.idle(true, kStart);
  const auto later = kStart + std::chrono::hours(24);
  EXPECT_TRUE(progress.health(later).ready);
  EXPECT_EQ(progress.health(later).last_progress, later);
}

TEST(Progress, WorkWithoutProgressIsAHang) {
  Progress progress(kRules, kStart);
  progress.idle(true, kStart - std::chrono::hours(1));
  progress.idle(false, kStart);
  EXPECT_TRUE(progress.health(kStart + milliseconds(10000)).ready);
  const auto hung = progress.health(kStart + milliseconds(10001));
  EXPECT_FALSE(hung.ready);
  EXPECT_EQ(hung.last_progress, kStart);
  EXPECT_EQ(hung.detail, "the engine has made no progress for 10 s");
  progress.succeeded(kStart + milliseconds(10001));
  EXPECT_TRUE(progress.health(kStart + milliseconds(10002)).ready);
}

TEST(Progress, FailuresInARowMakeItNotReadyUntilOneSucceeds) {
  Progress progress(kRules, kStart);
  progress.failed(kStart);
  progress.failed(kStart);
  EXPECT_TRUE(progress.health(kStart).ready);
  progress.failed(kStart);
  EXPECT_FALSE(progress.health(kStart).ready);
  EXPECT_EQ(progress.health(kStart).detail, "the engine failed 3 times in a row");
  progress.succeeded(kStart);
  EXPECT_TRUE(progress.health(kStart).ready);
}

TEST(Progress, ASuccessBetweenFailuresStartsTheCountAnew) {
  Progress progress(kRules, kStart);
  progress.failed(kStart);
  progress.failed(kStart);
  progress.succeeded(kStart);
  progress.failed(kStart);
  progress.failed(kStart);
  EXPECT_TRUE(progress.health(kStart).ready);
}

TEST(Progress, TheCooldownLetsOneTryIn) {
  Progress progress(kRules, kStart);
  for (int i = 0; i < 3; ++i) progress.failed(kStart);
  EXPECT_FALSE(progress.health(kStart + milliseconds(4999)).ready);
  EXPECT_TRUE(progress.health(kStart + milliseconds(5000)).ready);
  progress.failed(kStart + milliseconds(6000));
  EXPECT_FALSE(progress.health(kStart + milliseconds(6001)).ready) << "one more failure is enough";
}

}  // namespace
}  // namespace tts::scheduling
