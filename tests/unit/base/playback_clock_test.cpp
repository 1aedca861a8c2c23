#include "tts/base/playback_clock.h"

#include <gtest/gtest.h>

namespace tts {
namespace {

using std::chrono::milliseconds;

const TimePoint kStart = TimePoint(std::chrono::seconds(100));

TEST(PlaybackClock, PlayingStartsWithTheFirstPiece) {
  PlaybackClock clock;
  EXPECT_FALSE(clock.started());
  EXPECT_EQ(clock.left(kStart), Duration(0));
  clock.deliver(kStart, milliseconds(100));
  EXPECT_TRUE(clock.started());
  EXPECT_EQ(clock.runs_dry_at(), kStart + milliseconds(100));
  clock.deliver(kStart + milliseconds(40), milliseconds(100));
  EXPECT_EQ(clock.left(kStart + milliseconds(40)), milliseconds(160));
}

TEST(PlaybackClock, AListenerWhoRanDryStartsAgainWithTheNextPiece) {
  PlaybackClock clock;
  clock.deliver(kStart, milliseconds(100));
  const auto late = kStart + milliseconds(250);
  EXPECT_EQ(clock.left(late), milliseconds(-150));
  clock.deliver(late, milliseconds(100));
  EXPECT_EQ(clock.left(late), milliseconds(100));
}

TEST(PlaybackClock, ALaterUtteranceGoesOnWhereTheEarlierEnds) {
  PlaybackClock clock(kStart + milliseconds(300));
  EXPECT_TRUE(clock.started());
  clock.deliver(kStart, milliseconds(100));
  EXPECT_EQ(clock.left(kStart), milliseconds(400));
}

TEST(PlaybackClock, KnowledgeFromElsewhere) {
  PlaybackClock clock(kStart);
  clock.at_least_until(kStart + milliseconds(50));
  clock.at_least_until(kStart);
  EXPECT_EQ(clock.runs_dry_at(), kStart + milliseconds(50));
  clock.correct(kStart);
  EXPECT_EQ(clock.runs_dry_at(), kStart);
}

}  // namespace
}  // namespace tts
