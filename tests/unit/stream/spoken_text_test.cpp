#include "spoken_text.h"

#include <gtest/gtest.h>

namespace tts::stream {
namespace {

TEST(SpokenText, NothingIsSpokenAtFirst) {
  const SpokenText text(24000);
  EXPECT_EQ(text.characters(0), 0U);
  EXPECT_EQ(text.characters(1'000'000), 0U);
}

TEST(SpokenText, ASentenceThatIsThereIsDividedEvenly) {
  SpokenText text(24000);
  text.sentence(0, 10, 0);
  text.sentence(12, 32, 24000);
  text.made(72000, true);
  EXPECT_EQ(text.characters(0), 0U);
  EXPECT_EQ(text.characters(12000), 5U);
  EXPECT_EQ(text.characters(23999), 9U);
  EXPECT_EQ(text.characters(24000), 12U);
  EXPECT_EQ(text.characters(48000), 22U);
  EXPECT_EQ(text.characters(72000), 32U);
  EXPECT_EQ(text.characters(9'000'000), 32U) << "never more than there is";
}

TEST(SpokenText, TheOneBeingMadeIsTakenToGoOnAsThoseBefore) {
  SpokenText text(1000);
  text.sentence(0, 10, 0);
  text.sentence(10, 110, 2000);  // 200 samples a character
  text.made(4000, false);
  EXPECT_EQ(text.characters(4000), 20U);
  text.made(22000, true);
  EXPECT_EQ(text.characters(4000), 20U);
}

TEST(SpokenText, TheFirstIsTakenToBeSpokenAsPeopleDo) {
  SpokenText text(1000);
  text.sentence(0, 50, 0);
  text.made(1000, false);
  EXPECT_EQ(text.characters(1000), 10U);
  text.made(30000, false);
  EXPECT_EQ(text.characters(30000), 50U) << "slower than expected";
}

TEST(SpokenText, ASentenceWithoutCharactersDoesNoHarm) {
  SpokenText text(1000);
  text.sentence(5, 5, 0);
  text.sentence(5, 3, 0);
  EXPECT_EQ(text.characters(10), 5U);
}

}  // namespace
}  // namespace tts::stream
