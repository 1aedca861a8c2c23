#include "speaker_norm.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tts::model {
namespace {

using ::testing::ElementsAre;

TEST(NormaliseSpeaker, HasLengthOne) {
  EXPECT_THAT(normalise_speaker(std::vector<float>{3, 4}, engine::SpeakerPrecision::kFloat32), ElementsAre(0.6F, 0.8F));
}

TEST(NormaliseSpeaker, HalfPrecisionRoundsNormAndQuotient) {
  // |(1, 2)| = 2.2360680 -> 2.2363281 in half precision; 1 / 2.2363281 = .44716157 -> .44726562.
  EXPECT_THAT(normalise_speaker(std::vector<float>{1, 2}, engine::SpeakerPrecision::kFloat16), ElementsAre(0.447265625F, 0.89453125F));
}

TEST(NormaliseSpeaker, ZeroStaysZero) {
  for (const auto precision : {engine::SpeakerPrecision::kFloat16, engine::SpeakerPrecision::kFloat32}) {
    EXPECT_THAT(normalise_speaker(std::vector<float>{0, 0}, precision), ElementsAre(0, 0));
  }
}

}  // namespace
}  // namespace tts::model
