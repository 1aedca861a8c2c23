#include "wait_estimate.h"

#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ExpectedWait, NoneWhileThereAreFreePlaces) {
  const Outlook outlook{.free_places = 3, .interval = milliseconds(200)};
  EXPECT_EQ(expected_wait(outlook, 0), Duration(0));
  EXPECT_EQ(expected_wait(outlook, 2), Duration(0));
  EXPECT_EQ(expected_wait(outlook, 3), milliseconds(200));
  EXPECT_EQ(expected_wait(outlook, 7), milliseconds(1000));
}

TEST(ExpectedWait, WhoIsTooManyAlreadyMustLeaveFirst) {
  EXPECT_EQ(expected_wait({.free_places = -2, .interval = milliseconds(200)}, 0), milliseconds(600));
}

TEST(ExpectedWait, NothingIsPromisedBeforeAnythingWasSeen) { EXPECT_EQ(expected_wait({}, 5), Duration(0)); }

TEST(ExpectedWait, StaysInRange) {
  EXPECT_EQ(expected_wait({.free_places = 0, .interval = std::chrono::hours(1)}, 4'000'000'000U), std::chrono::hours(1));
}

TEST(RetryAdvice, AQuarterOfAFullQueue) {
  EXPECT_EQ(advice_when_full({.free_places = 0, .interval = milliseconds(200)}, 40), milliseconds(2000));
  EXPECT_EQ(advice_when_full({.free_places = 0, .interval = milliseconds(400)}, 1), milliseconds(400));
  EXPECT_EQ(advice_when_full({}, 40), kUnknownAdvice);
}

TEST(RetryAdvice, UntilTheWaitIsShortEnough) { EXPECT_EQ(advice_when_long(seconds(13), seconds(10)), seconds(3)); }

TEST(RetryAdvice, StaysWithinReason) {
  EXPECT_EQ(advice_when_full({.free_places = 0, .interval = Duration(1)}, 1), kLeastAdvice);
  EXPECT_EQ(advice_when_full({.free_places = 0, .interval = std::chrono::hours(1)}, 4'000'000'000U), kMostAdvice);
  EXPECT_EQ(advice_when_long(milliseconds(10001), seconds(10)), kLeastAdvice);
  EXPECT_EQ(advice_when_long(std::chrono::hours(1), seconds(10)), kMostAdvice);
}

TEST(Residence, DeparturesComeFasterTheMoreShareTheSteps) {
  Residence residence;
  for (int i = 0; i < 100; ++i) residence.left_after(100, true);
  EXPECT_EQ(residence.interval(milliseconds(20), 1), seconds(2));
  EXPECT_EQ(residence.interval(milliseconds(20), 10), milliseconds(200));
  EXPECT_EQ(residence.interval(milliseconds(20), 0), Duration(0));
}

TEST(Residence, FollowsWhatItSees) {
  Residence residence;
  residence.left_after(1000, true);
  EXPECT_EQ(residence.interval(milliseconds(1), 1), seconds(1));
  for (int i = 0; i < 200; ++i) residence.left_after(10, true);
  EXPECT_LT(residence.interval(milliseconds(1), 1), milliseconds(11));
}

TEST(Residence, AllUtterancesOfAListenerAreOneStay) {
  Residence residence;
  for (int listener = 0; listener < 100; ++listener) {
    for (int sentence = 0; sentence < 70; ++sentence) residence.left_after(100, sentence == 0);
  }
  EXPECT_NEAR(std::chrono::duration<double>(residence.interval(milliseconds(1), 1)).count(), 7.0, 0.001);
}

}  // namespace
}  // namespace tts::scheduling
