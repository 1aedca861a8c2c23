#include "bench/audio_meter.h"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "tts/audio/encoder.h"

namespace tts::bench {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kRate = 24'000;

// Half a second of silence, then a second of a tone.
std::vector<float> late_tone() {
  std::vector<float> samples(kRate / 2, 0.0F);
  for (std::uint32_t i = 0; i < kRate; ++i)
    samples.push_back(0.3F * static_cast<float>(std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / kRate)));
  return samples;
}

Bytes encoded(audio::Container container, const std::vector<float>& samples) {
  auto encoder = audio::make_encoder({.format = {.container = container, .sample_rate = kRate, .bitrate = 0}});
  Bytes bytes;
  (*encoder)->start(bytes);
  (*encoder)->encode(samples, bytes);
  (*encoder)->finish(bytes);
  return bytes;
}

struct Heard {
  double seconds = 0;
  std::vector<double> audible;  // places in the whole stream
};

Heard meter(const char* format, const Bytes& bytes, std::size_t piece) {
  const auto meter = make_audio_meter(format, kRate);
  Heard heard;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const auto metered = meter->feed(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    if (metered.audible) heard.audible.push_back(heard.seconds + *metered.audible);
    heard.seconds += metered.seconds;
  }
  return heard;
}

struct Case {
  const char* format;
  audio::Container container;
  double tolerance;  // s
};

class EveryFormat : public testing::TestWithParam<Case> {};

TEST_P(EveryFormat, TellsLengthAndFirstSoundHoweverItIsCut) {
  const auto& [format, container, tolerance] = GetParam();
  const auto bytes = encoded(container, late_tone());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, bytes.size()}) {
    SCOPED_TRACE(piece);
    const auto heard = meter(format, bytes, piece);
    EXPECT_NEAR(heard.seconds, 1.5, 1e-9);
    ASSERT_EQ(heard.audible.size(), 1U);
    EXPECT_NEAR(heard.audible.front(), 0.5, tolerance);
  }
}

TEST_P(EveryFormat, SilenceIsNotAudible) {
  const auto& [format, container, tolerance] = GetParam();
  const auto heard = meter(format, encoded(container, std::vector<float>(kRate, 0.0F)), 512);
  EXPECT_NEAR(heard.seconds, 1.0, 1e-9);
  EXPECT_TRUE(heard.audible.empty());
}

INSTANTIATE_TEST_SUITE_P(AudioMeter, EveryFormat,
                         testing::Values(Case{"pcm", audio::Container::kPcm, 0.001}, Case{"wav", audio::Container::kWav, 0.001},
                                         Case{"opus", audio::Container::kOggOpus, 0.02}),
                         [](const auto& test) { return test.param.format; });

TEST(AudioMeter, TheFirstSampleBeyondTheThresholdCounts) {
  const auto meter = make_audio_meter("pcm", 1000);
  const auto quiet = meter->feed(Bytes{0x47, 0x01, 0xb9, 0xfe});  // 327, -327
  EXPECT_FALSE(quiet.audible);
  const auto loud = meter->feed(Bytes{0x00, 0x00, 0xb0, 0xfe});  // 0, -336
  ASSERT_TRUE(loud.audible);
  EXPECT_DOUBLE_EQ(*loud.audible, 0.001);
  EXPECT_FALSE(meter->feed(Bytes{0xff, 0x7f}).audible);
}

TEST(AudioMeter, RefusesWhatItCannotRead) {
  const Bytes text(200, 'x');
  EXPECT_THROW(make_audio_meter("wav", 0)->feed(text), std::runtime_error);
  EXPECT_THROW(make_audio_meter("opus", 0)->feed(text), std::runtime_error);
  EXPECT_THROW(make_audio_meter("pcm", 0), std::runtime_error);
  EXPECT_EQ(make_audio_meter("mp3", kRate), nullptr);
}

}  // namespace
}  // namespace tts::bench
