#include "retry_advice.h"

#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;

const TimePoint kStart = TimePoint(std::chrono::seconds(100));

TEST(RetryAdvice, WithoutHistoryItIsOneSecond) { EXPECT_EQ(RetryAdvice().estimate(100), milliseconds(1000)); }

TEST(RetryAdvice, IsTheTimeAQuarterOfTheQueueNeeds) {
  RetryAdvice advice;
  advice.busy_since(kStart);
  for (int i = 1; i <= 20; ++i) advice.finished(kStart + i * milliseconds(400));
  EXPECT_EQ(advice.estimate(1), milliseconds(400));
  EXPECT_EQ(advice.estimate(40), milliseconds(4000));
}

TEST(RetryAdvice, IdleTimeDoesNotCount) {
  RetryAdvice advice;
  advice.busy_since(kStart);
  advice.finished(kStart + milliseconds(400));
  advice.busy_since(kStart + std::chrono::hours(5));
  advice.finished(kStart + std::chrono::hours(5) + milliseconds(400));
  EXPECT_EQ(advice.estimate(1), milliseconds(400));
}

TEST(RetryAdvice, StaysWithinReason) {
  RetryAdvice fast;
  fast.busy_since(kStart);
  fast.finished(kStart + milliseconds(1));
  EXPECT_EQ(fast.estimate(1), RetryAdvice::kLeast);
  RetryAdvice slow;
  slow.busy_since(kStart);
  slow.finished(kStart + std::chrono::hours(1));
  EXPECT_EQ(slow.estimate(4000000000U), RetryAdvice::kMost);
}

}  // namespace
}  // namespace tts::scheduling
