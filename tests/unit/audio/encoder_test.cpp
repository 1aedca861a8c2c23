// What every container has in common: validation, and output that does not depend on how the input is cut.
#include "tts/audio/encoder.h"

#include <limits>

#include <gtest/gtest.h>

#include "signals.h"

namespace tts::audio {
namespace {

using test::encode;
using test::voice;

ErrorCode refusal(const EncoderOptions& options, std::string* param = nullptr) {
  const auto made = make_encoder(options);
  EXPECT_FALSE(made.ok());
  if (made.ok()) return ErrorCode::kInternal;
  if (param) *param = made.error().param;
  return made.error().code;
}

struct Case {
  Container container;
  std::uint32_t sample_rate;
  bool whole;
};

class EveryEncoder : public testing::TestWithParam<Case> {
 protected:
  EncoderOptions options(std::size_t samples) const {
    return {{GetParam().container, GetParam().sample_rate, 0}, GetParam().whole ? samples : 0};
  }
};

TEST_P(EveryEncoder, OutputIsTheSameHoweverTheInputIsCut) {
  for (const std::size_t count : {1UL, 479UL, 4800UL, 30011UL}) {
    const auto samples = voice(count, GetParam().sample_rate);
    const Bytes once = encode(options(count), samples, count);
    ASSERT_FALSE(once.empty());
    for (const std::size_t chunk : {0UL, 1UL, 480UL, 997UL})
      EXPECT_EQ(encode(options(count), samples, chunk), once) << count << " by " << chunk;
  }
}

TEST_P(EveryEncoder, BadSamplesAreClippedOrSilencedLikeCleanOnes) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  auto hostile = voice(9600, GetParam().sample_rate);
  auto clean = hostile;
  const std::pair<float, float> swaps[] = {{kNan, 0}, {-kNan, 0}, {kInf, 1}, {-kInf, -1}, {3e38F, 1}, {-1.0001F, -1}};
  for (std::size_t i = 0; i < 600; ++i) {
    hostile[3000 + i * 7] = swaps[i % 6].first;
    clean[3000 + i * 7] = swaps[i % 6].second;
  }
  EXPECT_EQ(encode(options(9600), hostile, 480), encode(options(9600), clean, 480));
}

TEST_P(EveryEncoder, AppendsWithoutTouchingWhatIsThere) {
  const auto samples = voice(5000, GetParam().sample_rate);
  auto encoder = make_encoder(options(samples.size()));
  ASSERT_TRUE(encoder.ok());
  Bytes out = {1, 2, 3};
  (*encoder)->start(out);
  (*encoder)->encode(samples, out);
  (*encoder)->finish(out);
  ASSERT_GT(out.size(), 3U);
  EXPECT_EQ(Bytes(out.begin(), out.begin() + 3), (Bytes{1, 2, 3}));
  EXPECT_EQ(Bytes(out.begin() + 3, out.end()), encode(options(samples.size()), samples, samples.size()));
}

TEST_P(EveryEncoder, CanBeDroppedAtAnyPoint) {
  const auto samples = voice(5000, GetParam().sample_rate);
  for (int calls = 0; calls < 3; ++calls) {
    auto encoder = make_encoder(options(samples.size()));
    ASSERT_TRUE(encoder.ok());
    Bytes out;
    if (calls > 0) (*encoder)->start(out);
    if (calls > 1) (*encoder)->encode(samples, out);
  }
}

INSTANTIATE_TEST_SUITE_P(Containers, EveryEncoder,
                         testing::Values(Case{Container::kWav, 24000, false}, Case{Container::kWav, 44100, true},
                                         Case{Container::kPcm, 24000, false}, Case{Container::kMp3, 24000, false},
                                         Case{Container::kMp3, 44100, true}, Case{Container::kMp3, 8000, false},
                                         Case{Container::kFlac, 24000, false}, Case{Container::kFlac, 24000, true},
                                         Case{Container::kFlac, 11111, false}, Case{Container::kOggOpus, 24000, false},
                                         Case{Container::kOggOpus, 48000, true}, Case{Container::kOggOpus, 8000, false},
                                         Case{Container::kOpusPackets, 24000, false}, Case{Container::kOpusPackets, 48000, false},
                                         Case{Container::kMulaw, 8000, false}, Case{Container::kAlaw, 8000, false}),
                         [](const auto& test) {
                           return std::string(to_string(test.param.container)) + std::to_string(test.param.sample_rate) +
                                  (test.param.whole ? "Whole" : "Streaming");
                         });

TEST(MakeEncoder, RefusesRatesTheContainerDoesNotTake) {
  for (const Container container : {Container::kWav, Container::kPcm, Container::kMp3, Container::kFlac, Container::kOggOpus,
                                    Container::kOpusPackets, Container::kMulaw, Container::kAlaw}) {
    for (const std::uint32_t rate : {0U, 1U, 7999U, 48001U, 0xFFFFFFFFU}) {
      std::string param;
      EXPECT_EQ(refusal({{container, rate, 0}, 0}, &param), ErrorCode::kInvalidArgument);
      EXPECT_EQ(param, "sample_rate");
    }
  }
  EXPECT_EQ(refusal({{Container::kOggOpus, 44100, 0}, 0}), ErrorCode::kInvalidArgument);
}

TEST(MakeEncoder, OpusBitrateGoesFrom6To510KilobitInBothFramings) {
  EXPECT_EQ(refusal({{Container::kOpusPackets, 24000, 5999}, 0}), ErrorCode::kInvalidArgument);
  for (const std::uint32_t bitrate : {1U, 5999U, 510001U, 0xFFFFFFFFU}) {
    std::string param;
    EXPECT_EQ(refusal({{Container::kOggOpus, 24000, bitrate}, 0}, &param), ErrorCode::kInvalidArgument);
    EXPECT_EQ(param, "bitrate");
  }
  for (const std::uint32_t bitrate : {0U, 6000U, 510000U}) EXPECT_TRUE(make_encoder({{Container::kOggOpus, 24000, bitrate}, 0}).ok());
}

TEST(MakeEncoder, Mp3BitrateIsOneOfTheTableOfItsMpegVersion) {
  for (const auto& [rate, bitrate] : {std::pair{24000U, 320000U}, {24000U, 100000U}, {44100U, 8000U}, {8000U, 128000U}, {24000U, 1U}}) {
    EXPECT_EQ(refusal({{Container::kMp3, rate, bitrate}, 0}), ErrorCode::kInvalidArgument) << rate << ' ' << bitrate;
  }
  for (const auto& [rate, bitrate] : {std::pair{24000U, 160000U}, {24000U, 8000U}, {44100U, 320000U}, {8000U, 64000U}, {8000U, 0U}}) {
    EXPECT_TRUE(make_encoder({{Container::kMp3, rate, bitrate}, 0}).ok()) << rate << ' ' << bitrate;
  }
}

TEST(MakeEncoder, LosslessContainersHaveNoBitrate) {
  for (const Container container : {Container::kWav, Container::kPcm, Container::kFlac}) {
    EXPECT_EQ(refusal({{container, 24000, 64000}, 0}), ErrorCode::kInvalidArgument);
  }
  for (const Container container : {Container::kMulaw, Container::kAlaw}) {
    std::string param;
    EXPECT_EQ(refusal({{container, 8000, 64000}, 0}, &param), ErrorCode::kInvalidArgument);
    EXPECT_EQ(param, "bitrate");
  }
}

TEST(MakeEncoder, WavBeyond4GibibytesIsTooLarge) {
  constexpr std::uint64_t kMost = (0xFFFFFFFFULL - 44) / 2;
  EXPECT_TRUE(make_encoder({{Container::kWav, 24000, 0}, kMost}).ok());
  EXPECT_EQ(refusal({{Container::kWav, 24000, 0}, kMost + 1}), ErrorCode::kTooLarge);
  EXPECT_EQ(refusal({{Container::kWav, 24000, 0}, ~0ULL}), ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace tts::audio
