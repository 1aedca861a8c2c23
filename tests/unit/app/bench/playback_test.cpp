#include "bench/playback.h"

#include <gtest/gtest.h>

namespace tts::bench {
namespace {

TEST(Playback, PlaysFromTheFirstAudioOn) {
  Playback playback;
  EXPECT_FALSE(playback.started());
  EXPECT_DOUBLE_EQ(playback.arrived(3.0, 0.5), 3.0);
  EXPECT_DOUBLE_EQ(playback.ends_at(), 3.5);
  EXPECT_EQ(playback.underruns(), 0U);
}

TEST(Playback, AudioAheadOfTimeWaitsItsTurn) {
  Playback playback;
  playback.arrived(0.0, 1.0);
  EXPECT_DOUBLE_EQ(playback.arrived(0.2, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(playback.arrived(0.3, 1.0), 2.0);
  EXPECT_DOUBLE_EQ(playback.ends_at(), 3.0);
  EXPECT_DOUBLE_EQ(playback.received(), 3.0);
  EXPECT_EQ(playback.underruns(), 0U);
}

TEST(Playback, AudioAtTheLastMomentIsInTime) {
  Playback playback;
  playback.arrived(0.0, 1.0);
  EXPECT_DOUBLE_EQ(playback.arrived(1.0, 1.0), 1.0);
  EXPECT_EQ(playback.underruns(), 0U);
}

TEST(Playback, ASilenceMovesTheRestOfTheSpeech) {
  Playback playback;
  playback.arrived(0.0, 1.0);
  EXPECT_DOUBLE_EQ(playback.arrived(1.25, 1.0), 1.25);
  EXPECT_EQ(playback.underruns(), 1U);
  EXPECT_DOUBLE_EQ(playback.underrun_seconds(), 0.25);
  EXPECT_DOUBLE_EQ(playback.arrived(2.25, 1.0), 2.25);  // in time for the listener who was kept waiting before
  EXPECT_EQ(playback.underruns(), 1U);
  playback.arrived(3.75, 1.0);
  EXPECT_EQ(playback.underruns(), 2U);
  EXPECT_DOUBLE_EQ(playback.underrun_seconds(), 0.75);
}

}  // namespace
}  // namespace tts::bench
