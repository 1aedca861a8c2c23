#include "tts/net/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server_fixture.h"

namespace tts::net {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class ReadinessTest : public testing::Test {
 protected:
  test::ManualClock clock_;
  IdleEngine engine_;
  Readiness readiness_{engine_, clock_, seconds(10)};
};

TEST_F(ReadinessTest, NotBeforeTheWarmUp) {
  EXPECT_FALSE(readiness_.check().ready);
  EXPECT_THAT(readiness_.check().reason, HasSubstr("warm-up"));
  readiness_.set_warmed_up();
  EXPECT_TRUE(readiness_.check().ready);
  EXPECT_EQ(readiness_.check().reason, "");
}

TEST_F(ReadinessTest, NotWhileDraining) {
  readiness_.set_warmed_up();
  readiness_.set_draining();
  EXPECT_THAT(readiness_.check().reason, HasSubstr("draining"));
}

TEST_F(ReadinessTest, FollowsTheEngine) {
  readiness_.set_warmed_up();
  engine_.health_now = {.ready = false, .last_progress = {}, .detail = "device lost"};
  EXPECT_EQ(readiness_.check().reason, "device lost");
  engine_.health_now.ready = true;
  EXPECT_TRUE(readiness_.check().ready);
}

TEST_F(ReadinessTest, WorkWithoutProgressIsAStall) {
  readiness_.set_warmed_up();
  engine_.health_now.last_progress = clock_.now();
  engine_.load_now.active = 1;
  EXPECT_TRUE(readiness_.check().ready);
  clock_.advance(seconds(10));
  EXPECT_TRUE(readiness_.check().ready);
  clock_.advance(seconds(1));
  EXPECT_THAT(readiness_.check().reason, HasSubstr("no progress"));
  engine_.health_now.last_progress = clock_.now();
  EXPECT_TRUE(readiness_.check().ready) << "recovers by itself";
}

TEST_F(ReadinessTest, WorkAfterALongIdleTimeIsNoStall) {
  readiness_.set_warmed_up();
  engine_.health_now.last_progress = clock_.now();
  clock_.advance(std::chrono::hours(1));
  EXPECT_TRUE(readiness_.check().ready) << "idle";
  engine_.load_now.queued = 1;
  EXPECT_TRUE(readiness_.check().ready) << "the work has only just come";
  clock_.advance(seconds(11));
  EXPECT_FALSE(readiness_.check().ready);
}

}  // namespace
}  // namespace tts::net
