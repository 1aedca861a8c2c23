#include "audio_output.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/packets.h"

namespace tts::synthesis {
namespace {

constexpr audio::AudioFormat kPcm{.container = audio::Container::kPcm, .sample_rate = 24000, .bitrate = 0};

std::vector<float> tone(std::size_t samples, float step = 0.0001F) {
  std::vector<float> result(samples);
  for (std::size_t i = 0; i < samples; ++i) result[i] = static_cast<float>(i % 5000) * step;
  return result;
}

std::vector<std::uint8_t> encoded(std::span<const float> samples, const audio::AudioFormat& format, std::uint64_t total = 0) {
  auto encoder = audio::make_encoder({.format = format, .total_samples = total}).value();
  std::vector<std::uint8_t> bytes;
  encoder->start(bytes);
  encoder->encode(samples, bytes);
  encoder->finish(bytes);
  return bytes;
}

class AudioOutputTest : public ::testing::Test {
 protected:
  std::unique_ptr<AudioOutput> make(AudioOutputOptions options) {
    auto output = AudioOutput::make(options, log_);
    EXPECT_TRUE(output.ok());
    return std::move(output).value();
  }
  std::vector<std::shared_ptr<const resume::Packet>> packets() {
    log_.finish();
    return test::drain(log_);
  }

  resume::StreamLog log_{{.high_water_bytes = 10000, .low_water_bytes = 5000}};
};

TEST_F(AudioOutputTest, EveryPacketButTheLastHoldsExactly100Milliseconds) {
  const auto output = make({.format = kPcm, .crossfade_ms = 0, .packet = std::chrono::milliseconds(100)});
  const auto samples = tone(24000 + 1234);
  for (std::size_t at = 0; at < samples.size(); at += 700) {
    ASSERT_TRUE(output->push(std::span(samples).subspan(at, std::min<std::size_t>(700, samples.size() - at))).ok());
  }
  ASSERT_TRUE(output->finish().ok());
  const auto made = packets();
  ASSERT_EQ(made.size(), 11U);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(made[i]->bytes.size(), 4800U);
    EXPECT_EQ(made[i]->first_sample, i * 2400U);
  }
  EXPECT_EQ(made[10]->bytes.size(), 1234U * 2U);
  EXPECT_EQ(output->samples(), samples.size());
  EXPECT_EQ(test::joined(made), encoded(samples, kPcm));
}

TEST_F(AudioOutputTest, AsMadeAPacketIsWhatOnePushGave) {
  const auto output = make({.format = kPcm, .crossfade_ms = 50});
  const auto samples = tone(40000);
  ASSERT_TRUE(output->push(std::span(samples).first(1700), true).ok());
  ASSERT_TRUE(output->push(std::span(samples).subspan(1700, 2000), true).ok());
  ASSERT_TRUE(output->push(std::span(samples).subspan(3700), false).ok());
  ASSERT_TRUE(output->finish().ok());
  const auto made = packets();
  ASSERT_EQ(made.size(), 5U);
  EXPECT_EQ(made[0]->bytes.size(), 2U * 1700U);
  EXPECT_EQ(made[1]->bytes.size(), 2U * 2000U);
  EXPECT_EQ(made[1]->first_sample, 1700U);
  EXPECT_EQ(made[2]->bytes.size(), 2U * 24000U) << "at most a second";
  EXPECT_EQ(made[3]->bytes.size(), 2U * (40000U - 3700U - 24000U - 1200U)) << "but for the cross-fade";
  EXPECT_EQ(made[4]->bytes.size(), 2U * 1200U);
  EXPECT_EQ(test::joined(made), encoded(samples, kPcm));
  EXPECT_EQ(output->audible(), samples.size());
}

TEST_F(AudioOutputTest, WhatAnEncoderHoldsBackIsNotAudibleYet) {
  const auto samples = tone(30000);
  for (const auto container : {audio::Container::kMp3, audio::Container::kFlac, audio::Container::kOggOpus}) {
    resume::StreamLog log;
    auto output = AudioOutput::make({.format = {.container = container, .sample_rate = 24000, .bitrate = 0}, .crossfade_ms = 0}, log);
    ASSERT_TRUE(output.ok());
    ASSERT_TRUE((*output)->push(std::span(samples).first(20300)).ok());
    const auto audible = (*output)->audible();
    EXPECT_LT(audible, 20300U);
    EXPECT_GT(audible, 20300U - 3000U) << "at most an Ogg page and what is in the encoder";
    ASSERT_TRUE((*output)->push(std::span(samples).subspan(20300)).ok());
    ASSERT_TRUE((*output)->finish().ok());
    EXPECT_EQ((*output)->audible(), samples.size());
    EXPECT_EQ(log.next(1)->first_sample, 0U);
    EXPECT_EQ(log.next(2)->first_sample, audible) << "where the first packet's sound ends";
  }
}

TEST_F(AudioOutputTest, TheFirstPacketLeavesAsSoonAs100MillisecondsAreSure) {
  const auto output = make({.format = kPcm, .crossfade_ms = 50, .packet = std::chrono::milliseconds(100)});
  const auto samples = tone(4000);
  ASSERT_TRUE(output->push(std::span(samples).first(3599)).ok());
  EXPECT_EQ(log_.last_seq(), 0U) << "the last 50 ms may still be faded";
  ASSERT_TRUE(output->push(std::span(samples).first(1)).ok());
  EXPECT_EQ(log_.last_seq(), 1U);
}

TEST_F(AudioOutputTest, TellsWhenTheLogIsFullAndOnlyThen) {
  const auto output = make({.format = kPcm, .crossfade_ms = 0, .packet = std::chrono::milliseconds(100)});
  const auto samples = tone(4800);
  ASSERT_TRUE(output->push(samples).ok());
  EXPECT_FALSE(output->log_is_full());
  ASSERT_TRUE(output->push(samples).ok());
  EXPECT_TRUE(output->log_is_full());
  ASSERT_TRUE(output->push(std::span(samples).first(10)).ok());
  EXPECT_FALSE(output->log_is_full()) << "no packet, no news";
}

TEST_F(AudioOutputTest, WholeIsOnePacketWithTrueSizes) {
  constexpr audio::AudioFormat kWav{.container = audio::Container::kWav, .sample_rate = 24000, .bitrate = 0};
  const auto output = make({.format = kWav, .crossfade_ms = 0, .whole = true});
  const auto samples = tone(30000);
  ASSERT_TRUE(output->push(samples).ok());
  EXPECT_EQ(log_.last_seq(), 0U);
  ASSERT_TRUE(output->finish().ok());
  const auto made = packets();
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0]->bytes, encoded(samples, kWav, samples.size()));
  EXPECT_NE(made[0]->bytes, encoded(samples, kWav, 0)) << "a streaming header would lie about the size";
}

TEST_F(AudioOutputTest, AudioBeyondTheLimitIsRefused) {
  for (const bool whole : {false, true}) {
    const auto output = make({.format = kPcm, .crossfade_ms = 0, .whole = whole, .max_seconds = 1});
    const auto samples = tone(24000);
    ASSERT_TRUE(output->push(samples).ok());
    const auto status = output->push(std::span(samples).first(1));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kTooLarge);
  }
}

TEST_F(AudioOutputTest, UtterancesAreFadedIntoEachOther) {
  const auto output = make({.format = kPcm, .crossfade_ms = 50});
  const auto samples = tone(6000);
  ASSERT_TRUE(output->push(samples).ok());
  ASSERT_TRUE(output->end_utterance().ok());
  ASSERT_TRUE(output->push(samples).ok());
  ASSERT_TRUE(output->finish().ok());
  EXPECT_EQ(output->samples(), 12000U - 1200U);
}

TEST_F(AudioOutputTest, EveryContainerStreamsWhatItWouldWriteAtOnce) {
  const auto samples = tone(24000);
  for (const auto container : {audio::Container::kWav, audio::Container::kMp3, audio::Container::kFlac, audio::Container::kOggOpus}) {
    const audio::AudioFormat format{.container = container, .sample_rate = 24000, .bitrate = 0};
    resume::StreamLog log;
    auto output = AudioOutput::make({.format = format, .crossfade_ms = 0}, log);
    ASSERT_TRUE(output.ok());
    ASSERT_TRUE((*output)->push(std::span(samples).first(9000)).ok());
    ASSERT_TRUE((*output)->push(std::span(samples).subspan(9000)).ok());
    ASSERT_TRUE((*output)->finish().ok());
    log.finish();
    const auto made = test::drain(log);
    for (const auto& packet : made) EXPECT_FALSE(packet->bytes.empty());
    EXPECT_GT(made.size(), 1U);
    EXPECT_EQ(test::joined(made), encoded(samples, format));
  }
}

TEST_F(AudioOutputTest, SettledNothingIsHeldBackAndTheMarksStandBehind) {
  const auto output = make({.format = kPcm, .crossfade_ms = 50, .packet = std::chrono::milliseconds(100)});
  EXPECT_TRUE(output->settled());
  const auto samples = tone(6000);
  ASSERT_TRUE(output->push(samples).ok());
  ASSERT_TRUE(output->end_utterance().ok());
  EXPECT_FALSE(output->settled());
  resume::Mark mark{.kind = resume::Mark::Kind::kFlushed, .index = 0, .begin = 0, .end = 7, .first_sample = 0};
  ASSERT_TRUE(output->settle({mark, mark}).ok());
  EXPECT_TRUE(output->settled());
  EXPECT_EQ(output->samples(), 6000U);
  EXPECT_EQ(output->audible(), 6000U);
  ASSERT_TRUE(output->settle().ok()) << "nothing is left to do";
  EXPECT_EQ(log_.last_seq(), 4U);
  ASSERT_TRUE(output->push(samples).ok());
  ASSERT_TRUE(output->finish().ok());
  EXPECT_EQ(output->samples(), 12000U) << "no fade across the pause";
  const auto made = packets();
  mark.first_sample = 6000;
  EXPECT_EQ(made[2]->bytes.size(), 2400U) << "shorter than asked, for the pause";
  EXPECT_TRUE(made[3]->bytes.empty());
  EXPECT_EQ(made[3]->marks, (std::vector<resume::Mark>{mark, mark}));
  EXPECT_EQ(made[3]->first_sample, 6000U);
  EXPECT_EQ(made[4]->first_sample, 6000U);
  auto twice = tone(6000);
  twice.insert(twice.end(), samples.begin(), samples.end());
  EXPECT_EQ(test::joined(made), encoded(twice, kPcm));
}

TEST_F(AudioOutputTest, AMarkStandsBeforeTheNextAudioAndIsNotLostAtTheEnd) {
  const auto output = make({.format = kPcm, .crossfade_ms = 50});
  const resume::Mark first{.kind = resume::Mark::Kind::kSentence, .index = 0, .begin = 0, .end = 4, .first_sample = 0};
  const resume::Mark last{.kind = resume::Mark::Kind::kSentence, .index = 1, .begin = 5, .end = 9, .first_sample = 1000};
  output->mark(first);
  ASSERT_TRUE(output->push(tone(1000)).ok());  // less than a cross-fade: no packet
  EXPECT_EQ(log_.last_seq(), 0U);
  EXPECT_FALSE(output->begun());
  ASSERT_TRUE(output->settle().ok());
  EXPECT_TRUE(output->begun());
  output->mark(last);
  ASSERT_TRUE(output->finish().ok());
  const auto made = packets();
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0]->marks, std::vector<resume::Mark>{first});
  EXPECT_EQ(made[0]->bytes.size(), 2000U);
  EXPECT_EQ(made[1]->marks, std::vector<resume::Mark>{last});
  EXPECT_TRUE(made[1]->bytes.empty());
}

TEST_F(AudioOutputTest, AtAPauseOpusGivesEverythingWithALittleSilence) {
  for (const auto container : {audio::Container::kOggOpus, audio::Container::kOpusPackets}) {
    resume::StreamLog log;
    auto made = AudioOutput::make({.format = {.container = container, .sample_rate = 24000, .bitrate = 0}, .crossfade_ms = 50}, log);
    ASSERT_TRUE(made.ok());
    auto& output = **made;
    ASSERT_TRUE(output.push(tone(9000)).ok());
    ASSERT_TRUE(output.settle().ok());
    EXPECT_EQ(output.samples(), 9120U) << "19 packets";
    EXPECT_GE(output.audible(), 9000U);
    const auto audible = output.audible();
    ASSERT_TRUE(output.push(tone(9000), true).ok());
    EXPECT_EQ(log.next(log.last_seq())->first_sample, audible);
    ASSERT_TRUE(output.finish().ok());
    EXPECT_EQ(output.samples(), 18120U);
  }
}

TEST_F(AudioOutputTest, AChangeOfSpeedBeginsAnew) {
  const auto output = make({.format = kPcm, .crossfade_ms = 50});
  const auto samples = tone(24000);
  ASSERT_TRUE(output->push(samples).ok());
  ASSERT_TRUE(output->end_utterance().ok());
  ASSERT_TRUE(output->set_speed(1.0).ok());
  EXPECT_EQ(output->samples(), 22800U) << "no change";
  ASSERT_TRUE(output->set_speed(2.0).ok());
  EXPECT_EQ(output->samples(), 24000U);
  ASSERT_TRUE(output->push(samples).ok());
  ASSERT_TRUE(output->end_utterance().ok());
  ASSERT_TRUE(output->set_speed(1.0).ok());
  const auto after_fast = output->samples();
  EXPECT_NEAR(static_cast<double>(after_fast), 36000, 500);
  ASSERT_TRUE(output->push(samples).ok());
  ASSERT_TRUE(output->finish().ok());
  EXPECT_EQ(output->samples(), after_fast + 24000);
  EXPECT_FALSE(output->set_speed(9.0).ok());
}

TEST_F(AudioOutputTest, NothingSpokenIsAnEmptyContainer) {
  const auto output = make({.format = kPcm});
  ASSERT_TRUE(output->finish().ok());
  EXPECT_EQ(output->samples(), 0U);
  EXPECT_TRUE(packets().empty());
}

TEST_F(AudioOutputTest, AFormatNobodyEncodesIsRefusedBeforeTheWork) {
  for (const bool whole : {false, true}) {
    const auto output =
        AudioOutput::make({.format = {.container = audio::Container::kOggOpus, .sample_rate = 44100, .bitrate = 0}, .whole = whole}, log_);
    EXPECT_FALSE(output.ok());
  }
}

}  // namespace
}  // namespace tts::synthesis
