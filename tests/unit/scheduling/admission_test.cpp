#include "admission.h"

#include <gtest/gtest.h>

#include "step_plan.h"

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;

constexpr AdmissionRules kRules{.max_batch = 16, .realtime_streams = 8, .batch_window = milliseconds(2)};
const TimePoint kStart = TimePoint(std::chrono::seconds(100));

AdmissionState running(std::uint32_t listeners, Waiting waiting) {
  AdmissionState state;
  state.waiting = waiting;
  state.active = state.listeners = listeners;
  state.oldest_submitted = state.now = kStart;
  return state;
}

Next next(const AdmissionState& state, const AdmissionRules& rules = kRules) { return decide_admission(state, rules).next; }

TEST(Admission, NobodyWaitingNobodyAdmitted) {
  const auto decision = decide_admission(running(0, {}), kRules);
  EXPECT_EQ(decision.next, Next::kNobody);
  EXPECT_EQ(decision.wait_until, TimePoint::max());
}

TEST(Admission, AnIdleEngineWaitsForCompany) {
  auto state = running(0, {.newcomers = 1});
  state.now = kStart + std::chrono::microseconds(1999);
  const auto early = decide_admission(state, kRules);
  EXPECT_EQ(early.next, Next::kNobody);
  EXPECT_EQ(early.wait_until, kStart + milliseconds(2));
  state.now = kStart + milliseconds(2);
  EXPECT_EQ(next(state), Next::kNewcomer);
}

TEST(Admission, AFullBatchDoesNotWait) { EXPECT_EQ(next(running(0, {.newcomers = 16})), Next::kNewcomer); }

TEST(Admission, ARunningEngineTakesNewcomersAtOnce) { EXPECT_EQ(next(running(1, {.newcomers = 1})), Next::kNewcomer); }

TEST(Admission, NewcomersWaitForRealTime) {
  EXPECT_EQ(next(running(7, {.newcomers = 3})), Next::kNewcomer);
  EXPECT_EQ(next(running(8, {.newcomers = 3})), Next::kNobody);
}

TEST(Admission, BeforeAnythingIsMeasuredSlotsAreTheLimit) {
  auto rules = kRules;
  rules.realtime_streams = 0;
  EXPECT_EQ(next(running(15, {.newcomers = 3}), rules), Next::kNewcomer);
  EXPECT_EQ(next(running(16, {.newcomers = 3}), rules), Next::kNobody);
}

TEST(Admission, NobodyJoinsWhileAListenerIsShort) {
  auto state = running(2, {.newcomers = 1});
  state.listener_short = true;
  EXPECT_EQ(next(state), Next::kNobody);
}

TEST(Admission, NewcomersWaitWhereFastListenersLeaveNoRoom) {
  auto state = running(2, {.newcomers = 1});
  state.newcomer_fits = false;
  EXPECT_EQ(next(state), Next::kNobody);
  state.listeners = state.active = 0;
  state.now = kStart + milliseconds(2);
  EXPECT_EQ(next(state), Next::kNewcomer) << "one is always served";
}

TEST(Admission, WhoWasLetInGoesOnBeforeNewcomersAndBeyondTheLimit) {
  EXPECT_EQ(next(running(9, {.due = 1, .newcomers = 3, .whole = 1})), Next::kDue);
  auto state = running(2, {.due = 1});
  state.listener_short = true;
  EXPECT_EQ(next(state), Next::kDue);
  EXPECT_EQ(next(running(16, {.due = 1})), Next::kNobody) << "there is no slot";
}

TEST(Admission, SentencesAheadTakeWhatNobodyNeeds) {
  EXPECT_EQ(next(running(3, {.ahead = 1})), Next::kAhead);
  EXPECT_EQ(next(running(8, {.newcomers = 1, .ahead = 1})), Next::kNobody) << "a newcomer waits";
  auto state = running(3, {.ahead = 1});
  state.active = 14;
  EXPECT_EQ(next(state), Next::kNobody) << "some slots stay free for newcomers";
}

TEST(Admission, FilesShareWhatStreamsLeave) {
  auto state = running(8, {.newcomers = 1, .whole = 2});
  EXPECT_EQ(next(state), Next::kWhole) << "one may always run";
  state.whole = 1;
  ++state.active;
  EXPECT_EQ(next(state), Next::kNobody);
  state.listeners = 7;
  EXPECT_EQ(next(state), Next::kWhole) << "beside 7 streams and a file there is no room for an eighth stream, but for another file";
  state.waiting.whole = 0;
  EXPECT_EQ(next(state), Next::kNobody);
  state.listeners = 6;
  EXPECT_EQ(next(state), Next::kNewcomer);
}

TEST(Admission, FilesDoNotStarve) {
  auto state = running(2, {.newcomers = 5, .whole = 1});
  EXPECT_EQ(next(state), Next::kNewcomer);
  state.whole_passed_over = 3;
  EXPECT_EQ(next(state), Next::kWhole);
}

TEST(FreePlaces, AreBoundBySlotsAndByRealTime) {
  EXPECT_EQ(free_places(running(0, {}), kRules), 8);
  EXPECT_EQ(free_places(running(10, {}), kRules), -2);
  EXPECT_EQ(free_places(running(3, {}), {.max_batch = 4, .realtime_streams = 8}), 1);
  EXPECT_EQ(free_places(running(3, {}), {.max_batch = 4}), 1);
  auto state = running(7, {});
  state.whole = kWholeShare;
  EXPECT_EQ(free_places(state, kRules), 0);
}

}  // namespace
}  // namespace tts::scheduling
