#include "urgency.h"

#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr UrgencyRules kRules{.thin = milliseconds(40), .plenty = seconds(1), .max_lead = seconds(10)};

Urgency heard(Duration left, Duration next_sound = Duration(0)) {
  return urgency_of({.started = true, .left = left, .next_sound = next_sound}, kRules);
}

TEST(Urgency, SilenceIsWorst) { EXPECT_EQ(urgency_of({}, kRules), Urgency::kNow); }

TEST(Urgency, GoesByWhatIsLeftWhenTheNextSoundCanBeThere) {
  EXPECT_EQ(heard(milliseconds(-5)), Urgency::kNow);
  EXPECT_EQ(heard(milliseconds(39)), Urgency::kNow);
  EXPECT_EQ(heard(milliseconds(40)), Urgency::kSoon);
  EXPECT_EQ(heard(milliseconds(500), milliseconds(470)), Urgency::kNow);
  EXPECT_EQ(heard(milliseconds(1100), milliseconds(200)), Urgency::kSoon);
  EXPECT_EQ(heard(milliseconds(1200), milliseconds(200)), Urgency::kPlenty);
  EXPECT_EQ(heard(seconds(10)), Urgency::kFarAhead);
}

TEST(Urgency, EarlySoundMustCatchUp) {
  EXPECT_EQ(urgency_of({.early = true, .started = true, .left = seconds(2)}, kRules), Urgency::kNow);
}

TEST(Urgency, NobodyWaitsForAFileOrForTheSentenceAfterNext) {
  EXPECT_EQ(urgency_of({.whole = true}, kRules), Urgency::kPlenty);
  EXPECT_EQ(urgency_of({.follows = true, .started = true, .left = milliseconds(5)}, kRules), Urgency::kPlenty);
  EXPECT_EQ(urgency_of({.follows = true, .started = true, .left = seconds(11)}, kRules), Urgency::kFarAhead);
}

}  // namespace
}  // namespace tts::scheduling
