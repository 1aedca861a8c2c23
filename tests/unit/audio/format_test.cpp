#include "tts/audio/format.h"

#include <gtest/gtest.h>

namespace tts::audio {
namespace {

TEST(Format, EveryNameParsesBackToItself) {
  for (const Container container : {Container::kWav, Container::kPcm, Container::kMp3, Container::kFlac, Container::kOggOpus,
                                    Container::kOpusPackets, Container::kMulaw, Container::kAlaw}) {
    EXPECT_EQ(parse_container(to_string(container)), container);
    EXPECT_TRUE(content_type(container).starts_with("audio/"));
  }
  EXPECT_EQ(parse_container("ogg_opus"), Container::kOggOpus);
}

TEST(Format, UnknownNamesAreRefused) {
  for (const char* name : {"", "WAV", "wav ", "aac", "opus\n"}) EXPECT_EQ(parse_container(name), std::nullopt) << name;
}

TEST(Format, OpusTakesItsFiveRates) {
  for (const Container container : {Container::kOggOpus, Container::kOpusPackets}) {
    for (const std::uint32_t rate : {8000U, 12000U, 16000U, 24000U, 48000U}) EXPECT_TRUE(sample_rate_supported(container, rate));
    for (const std::uint32_t rate : {0U, 11025U, 22050U, 44100U, 96000U}) EXPECT_FALSE(sample_rate_supported(container, rate));
  }
}

TEST(Format, TheTelephoneLawsTake8KilohertzAlone) {
  for (const Container container : {Container::kMulaw, Container::kAlaw}) {
    EXPECT_TRUE(sample_rate_supported(container, 8000));
    for (const std::uint32_t rate : {0U, 7999U, 8001U, 16000U, 24000U, 48000U}) EXPECT_FALSE(sample_rate_supported(container, rate));
  }
}

TEST(Format, ContentTypesOfTheStreamsFormats) {
  EXPECT_EQ(content_type(Container::kOpusPackets), "audio/opus");
  EXPECT_EQ(content_type(Container::kMulaw), "audio/basic");
  EXPECT_EQ(content_type(Container::kAlaw), "audio/x-alaw-basic");
}

TEST(Format, OnlyLossyCodecsOfManyRatesHaveABitrate) {
  for (const Container container : {Container::kMp3, Container::kOggOpus, Container::kOpusPackets}) EXPECT_TRUE(has_bitrate(container));
  for (const Container container : {Container::kWav, Container::kPcm, Container::kFlac, Container::kMulaw, Container::kAlaw})
    EXPECT_FALSE(has_bitrate(container));
}

TEST(Format, Mp3TakesTheMpegRates) {
  for (const std::uint32_t rate : {8000U, 11025U, 22050U, 24000U, 44100U, 48000U})
    EXPECT_TRUE(sample_rate_supported(Container::kMp3, rate));
  for (const std::uint32_t rate : {0U, 10000U, 47999U, 96000U}) EXPECT_FALSE(sample_rate_supported(Container::kMp3, rate));
}

TEST(Format, OthersTakeEveryRateFrom8To48Kilohertz) {
  for (const Container container : {Container::kWav, Container::kPcm, Container::kFlac}) {
    EXPECT_FALSE(sample_rate_supported(container, 7999));
    EXPECT_TRUE(sample_rate_supported(container, 8000));
    EXPECT_TRUE(sample_rate_supported(container, 11111));
    EXPECT_TRUE(sample_rate_supported(container, 48000));
    EXPECT_FALSE(sample_rate_supported(container, 48001));
    EXPECT_FALSE(sample_rate_supported(container, 0xFFFFFFFF));
  }
}

}  // namespace
}  // namespace tts::audio
