#include "admission.h"

#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;

constexpr AdmissionRules kRules{.max_batch = 4, .batch_window = milliseconds(2)};
const TimePoint kStart = TimePoint(std::chrono::seconds(100));

TEST(Admission, NobodyWaitingNobodyAdmitted) {
  const auto decision = decide_admission({.waiting = 0, .active = 0, .oldest_submitted = kStart, .now = kStart}, kRules);
  EXPECT_EQ(decision.admit, 0U);
  EXPECT_EQ(decision.wait_until, TimePoint::max());
}

TEST(Admission, IdleEngineWaitsForCompany) {
  const auto early =
      decide_admission({.waiting = 1, .active = 0, .oldest_submitted = kStart, .now = kStart + std::chrono::microseconds(1999)}, kRules);
  EXPECT_EQ(early.admit, 0U);
  EXPECT_EQ(early.wait_until, kStart + milliseconds(2));
  EXPECT_EQ(decide_admission({.waiting = 3, .active = 0, .oldest_submitted = kStart, .now = kStart + milliseconds(2)}, kRules).admit, 3U);
}

TEST(Admission, AFullBatchDoesNotWait) {
  EXPECT_EQ(decide_admission({.waiting = 4, .active = 0, .oldest_submitted = kStart, .now = kStart}, kRules).admit, 4U);
  EXPECT_EQ(decide_admission({.waiting = 9, .active = 0, .oldest_submitted = kStart, .now = kStart}, kRules).admit, 4U);
}

TEST(Admission, NoWindowNoWait) {
  EXPECT_EQ(decide_admission({.waiting = 1, .active = 0, .oldest_submitted = kStart, .now = kStart}, {.max_batch = 4}).admit, 1U);
}

TEST(Admission, ARunningEngineTakesNewcomersAtOnceUpToItsSlots) {
  EXPECT_EQ(decide_admission({.waiting = 1, .active = 1, .oldest_submitted = kStart, .now = kStart}, kRules).admit, 1U);
  EXPECT_EQ(decide_admission({.waiting = 9, .active = 3, .oldest_submitted = kStart, .now = kStart}, kRules).admit, 1U);
  EXPECT_EQ(decide_admission({.waiting = 9, .active = 4, .oldest_submitted = kStart, .now = kStart}, kRules).admit, 0U);
}

}  // namespace
}  // namespace tts::scheduling
