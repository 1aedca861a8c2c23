#include "utterance_control.h"

#include <gtest/gtest.h>

#include "support/fake_utterance_engine.h"
#include "support/recording_sink.h"

namespace tts::synthesis {
namespace {

class UtteranceControlTest : public ::testing::Test {
 protected:
  void submit() { id_ = *engine_.submit({}, std::make_shared<test::RecordingSink>()); }
  bool paused() const { return engine_.utterance(0).paused; }
  bool cancelled() const { return engine_.utterance(0).cancelled; }

  test::FakeUtteranceEngine engine_;
  UtteranceControl control_{engine_, 100, std::chrono::milliseconds(1)};
  engine::UtteranceId id_ = 0;
};

TEST_F(UtteranceControlTest, PausesWhileAnyReasonHolds) {
  submit();
  control_.attach(id_);
  EXPECT_FALSE(paused());
  control_.pause(PauseReason::kSlowClient);
  control_.pause(PauseReason::kAhead);
  EXPECT_TRUE(paused());
  control_.resume(PauseReason::kSlowClient);
  EXPECT_TRUE(paused());
  control_.resume(PauseReason::kAhead);
  EXPECT_FALSE(paused());
}

TEST_F(UtteranceControlTest, WhatWasAskedBeforeTheIdIsPassedOn) {
  control_.pause(PauseReason::kAhead);
  control_.cancel();
  submit();
  EXPECT_FALSE(paused());
  control_.attach(id_);
  EXPECT_TRUE(paused());
  EXPECT_TRUE(cancelled());
}

TEST_F(UtteranceControlTest, WhatWaitsForAWorkerIsStillToBeHeard) {
  const TimePoint handled = TimePoint(std::chrono::seconds(5));
  control_.add_backlog(30);
  control_.tell_runs_dry_at(handled);
  submit();
  control_.attach(id_);
  EXPECT_EQ(engine_.utterance(0).runs_dry_at, handled + std::chrono::milliseconds(30)) << "told before the id was known";
  control_.take_backlog(20);
  control_.tell_runs_dry_at(handled);
  EXPECT_EQ(engine_.utterance(0).runs_dry_at, handled + std::chrono::milliseconds(10));
}

TEST_F(UtteranceControlTest, NothingIsSentAfterTheEnd) {
  submit();
  control_.attach(id_);
  bool posted = false;
  control_.end([&] { posted = true; });
  EXPECT_TRUE(posted);
  control_.await_end();
  control_.cancel();
  control_.pause(PauseReason::kAhead);
  control_.tell_runs_dry_at(TimePoint(std::chrono::seconds(5)));
  control_.attach(id_);
  EXPECT_FALSE(cancelled());
  EXPECT_EQ(engine_.utterance(0).runs_dry_at, TimePoint{});
  EXPECT_FALSE(engine_.utterance(0).pause_seen);
}

TEST_F(UtteranceControlTest, AnEndBeforeTheIdLeavesNothingToControl) {
  submit();
  control_.cancel();
  control_.end([] {});
  control_.attach(id_);
  EXPECT_FALSE(cancelled());
}

TEST_F(UtteranceControlTest, ABacklogBeyondItsBoundPausesUntilHalfIsGone) {
  submit();
  control_.attach(id_);
  control_.add_backlog(100);
  EXPECT_FALSE(paused());
  control_.add_backlog(1);
  EXPECT_TRUE(paused());
  control_.take_backlog(50);
  EXPECT_TRUE(paused());
  control_.take_backlog(1);
  EXPECT_FALSE(paused());
}

}  // namespace
}  // namespace tts::synthesis
