#include "tts/audio/pcm_pipeline.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "signals.h"

namespace tts::audio {
namespace {

using test::in_chunks;
using test::Samples;
using test::sine;
using test::snr_db;
using test::voice;

constexpr std::size_t kFade = 1200;  // 50 ms at 24 kHz

Samples run(const PcmPipelineOptions& options, const std::vector<Samples>& utterances, std::size_t chunk) {
  auto pipeline = make_pcm_pipeline(options);
  EXPECT_TRUE(pipeline.ok());
  Samples out;
  for (const Samples& utterance : utterances) {
    in_chunks(utterance, chunk, [&](std::span<const float> piece) { (*pipeline)->push(piece, out); });
    (*pipeline)->end_utterance(out);
  }
  (*pipeline)->finish(out);
  return out;
}

// Hertz by counting upward zero crossings.
double pitch(std::span<const float> samples, std::uint32_t rate) {
  std::size_t crossings = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) crossings += samples[i - 1] < 0 && samples[i] >= 0;
  return static_cast<double>(crossings) * rate / static_cast<double>(samples.size());
}

TEST(PcmPipeline, OneUtteranceAtSpeed1PassesBitExactly) {
  const Samples samples = voice(30000, 24000);
  EXPECT_EQ(run({}, {samples}, 777), samples);
}

TEST(PcmPipeline, CrossfadeZeroConcatenates) {
  const Samples a(100, 0.25F);
  const Samples b(50, -0.5F);
  Samples expected = a;
  expected.insert(expected.end(), b.begin(), b.end());
  EXPECT_EQ(run({.crossfade_ms = 0}, {a, b}, 7), expected);
}

TEST(PcmPipeline, HoldsBackOnlyTheFade) {
  auto pipeline = make_pcm_pipeline({});
  Samples out;
  (*pipeline)->push(Samples(10000, 0.1F), out);
  EXPECT_EQ(out.size(), 10000 - kFade);
  (*pipeline)->push(Samples(1, 0.1F), out);
  EXPECT_EQ(out.size(), 10001 - kFade);
  (*pipeline)->end_utterance(out);
  (*pipeline)->finish(out);
  EXPECT_EQ(out.size(), 10001U);
}

TEST(PcmPipeline, HoldsNothingBackWhileMoreFollows) {
  const std::vector<Samples> utterances = {voice(20011, 24000), voice(9000, 24000)};
  auto pipeline = make_pcm_pipeline({});
  Samples out;
  for (const Samples& utterance : utterances) {
    const auto last = std::span(utterance).last(2000);
    for (std::size_t at = 0; at < utterance.size() - last.size(); at += 700) {
      const auto piece = std::span(utterance).subspan(at, std::min<std::size_t>(700, utterance.size() - last.size() - at));
      (*pipeline)->push(piece, out, true);
      if (&utterance == &utterances[0]) {
        EXPECT_EQ(out.size(), at + piece.size()) << "heard at once";
      }
    }
    (*pipeline)->push(last, out);
    (*pipeline)->end_utterance(out);
  }
  (*pipeline)->finish(out);
  EXPECT_EQ(out, run({}, utterances, 100000));
}

TEST(PcmPipeline, ABrokenPromiseShortensTheFade) {
  auto pipeline = make_pcm_pipeline({});
  Samples out;
  (*pipeline)->push(Samples(5000, 0.5F), out, true);
  (*pipeline)->push(Samples(100, 0.5F), out);
  (*pipeline)->end_utterance(out);
  (*pipeline)->push(Samples(5000, 0.0F), out, true);
  (*pipeline)->end_utterance(out);
  (*pipeline)->push(Samples(5000, 0.5F), out);
  (*pipeline)->finish(out);
  EXPECT_EQ(out.size(), 15100U - 100U);
}

TEST(PcmPipeline, UtterancesOverlapByTheFadeAtConstantPower) {
  const Samples joined = run({}, {Samples(10000, 0.5F), Samples(8000, 0.0F)}, 480);
  ASSERT_EQ(joined.size(), 18000 - kFade);
  const std::size_t begin = 10000 - kFade;
  EXPECT_EQ(joined[begin - 1], 0.5F);
  for (std::size_t i = begin + 1; i < begin + kFade; ++i) EXPECT_LT(joined[i], joined[i - 1]);
  EXPECT_NEAR(joined[begin + kFade / 2], 0.5 * std::sqrt(0.5), 0.001);
  EXPECT_EQ(joined[begin + kFade], 0.0F);
  // The mirror image: its power and the first one's add up to the power of either utterance.
  const Samples rising = run({}, {Samples(10000, 0.0F), Samples(8000, 0.5F)}, 480);
  for (std::size_t i = begin; i < begin + kFade; ++i) EXPECT_NEAR(joined[i] * joined[i] + rising[i] * rising[i], 0.25, 1e-5);
}

TEST(PcmPipeline, OverlapIsNeverLongerThanEitherUtterance) {
  struct Row {
    std::vector<std::size_t> lengths;
    std::size_t total;
  };
  const Row rows[] = {
      {{10000, 100}, 10000},   // the short one lies in the tail
      {{100, 10000}, 10000},   // the tail is short
      {{100, 100, 100}, 100},  // each covers the one before
      {{10000, 100, 10000}, 10000 + 10000 - kFade},
      {{10000, kFade, 5}, 10000},
      {{0, 500, 0, 0, 700, 0}, 700},  // empty ones leave no trace
      {{0, 0}, 0},
      {{1, 1}, 1},
  };
  for (const Row& row : rows) {
    std::vector<Samples> utterances;
    for (const std::size_t length : row.lengths) utterances.push_back(voice(length, 24000));
    const Samples once = run({}, utterances, 100000);
    EXPECT_EQ(once.size(), row.total);
    for (const std::size_t chunk : {0U, 1U, 99U}) EXPECT_EQ(run({}, utterances, chunk), once);
  }
}

struct Conversion {
  double speed;
  std::uint32_t output_rate;
};

class PcmPipelineCuts : public testing::TestWithParam<Conversion> {};

TEST_P(PcmPipelineCuts, OutputIsTheSameHoweverTheInputIsCut) {
  const PcmPipelineOptions options{.output_rate = GetParam().output_rate, .speed = GetParam().speed};
  const std::vector<Samples> utterances = {voice(20011, 24000), sine(700, 24000, 300), voice(9000, 24000)};
  const Samples once = run(options, utterances, 100000);
  for (const std::size_t chunk : {0U, 1U, 240U, 512U, 2401U}) EXPECT_EQ(run(options, utterances, chunk), once) << chunk;
}

INSTANTIATE_TEST_SUITE_P(Conversions, PcmPipelineCuts,
                         testing::Values(Conversion{1, 24000}, Conversion{1, 48000}, Conversion{1, 8000}, Conversion{1, 44100},
                                         Conversion{1.3, 24000}, Conversion{0.5, 24000}, Conversion{2, 16000}, Conversion{0.77, 22050}));

class PcmPipelineSpeed : public testing::TestWithParam<double> {};

TEST_P(PcmPipelineSpeed, LengthFollowsAndPitchStays) {
  const double speed = GetParam();
  for (const std::uint32_t rate : {16000U, 24000U}) {
    for (const std::size_t seconds : {1U, 10U}) {
      const std::size_t count = rate * seconds;
      const Samples out = run({.source_rate = rate, .output_rate = rate, .speed = speed}, {voice(count, rate)}, 4800);
      const double wanted = static_cast<double>(count) / speed;
      EXPECT_NEAR(static_cast<double>(out.size()), wanted, 0.02 * wanted) << rate << " Hz, " << seconds << " s";
    }
    const Samples tone = run({.source_rate = rate, .output_rate = rate, .speed = speed}, {sine(rate * 3, rate, 200)}, 4800);
    EXPECT_NEAR(pitch(std::span(tone).subspan(rate / 10, tone.size() - rate / 5), rate), 200, 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Speeds, PcmPipelineSpeed, testing::Values(0.5, 0.51, 0.75, 0.9, 0.99, 1.01, 1.1, 1.25, 1.5, 1.9, 1.99, 2.0));

TEST(PcmPipeline, SpeedOfAVeryShortInputGivesAVeryShortOutput) {
  for (const double speed : {0.5, 2.0}) {
    for (const std::size_t count : {0U, 1U, 100U, 2000U}) {
      EXPECT_LE(static_cast<double>(run({.speed = speed}, {voice(count, 24000)}, 64).size()), static_cast<double>(count) / speed + 370)
          << speed << ' ' << count;
    }
  }
}

class PcmPipelineRates : public testing::TestWithParam<std::uint32_t> {};

TEST_P(PcmPipelineRates, LengthIsExactAndTheSignalStays) {
  const std::uint32_t rate = GetParam();
  for (const std::size_t count : {0U, 1U, 2U, 479U, 24000U, 100003U}) {
    const Samples out = run({.output_rate = rate}, {sine(count, 24000, 440)}, 480);
    EXPECT_EQ(out.size(), (count * rate + 12000) / 24000) << count;
  }
  const Samples out = run({.output_rate = rate}, {sine(48000, 24000, 440)}, 480);
  const Samples wanted = sine(out.size(), rate, 440);
  const std::size_t edge = rate / 20;  // the filter rings at the abrupt ends
  EXPECT_GT(snr_db(std::span(wanted).subspan(edge, wanted.size() - 2 * edge), std::span(out).subspan(edge)), 90);
}

INSTANTIATE_TEST_SUITE_P(Rates, PcmPipelineRates, testing::Values(8000, 11025, 12000, 16000, 22050, 32000, 44100, 48000),
                         testing::PrintToStringParamName());

TEST(PcmPipeline, ResamplingRemovesWhatTheNewRateCannotHold) {
  const Samples out = run({.output_rate = 8000}, {sine(48000, 24000, 6000)}, 480);
  for (std::size_t i = 800; i + 800 < out.size(); ++i) ASSERT_LT(std::abs(out[i]), 1e-3F);
}

TEST(PcmPipeline, BadSamplesDoNotSpread) {
  Samples samples = voice(48000, 24000);
  samples[10000] = std::numeric_limits<float>::quiet_NaN();
  samples[20000] = std::numeric_limits<float>::infinity();
  for (const auto& options : {PcmPipelineOptions{.output_rate = 48000}, PcmPipelineOptions{.speed = 1.5}}) {
    for (const float sample : run(options, {samples}, 480)) ASSERT_TRUE(std::isfinite(sample));
  }
}

TEST(MakePcmPipeline, RefusesWhatItCannotDo) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto param = [](const PcmPipelineOptions& options) {
    const auto made = make_pcm_pipeline(options);
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.error().param;
  };
  for (const double speed : {kNan, 0.0, -1.0, 0.4999, 2.0001, 1e300}) EXPECT_EQ(param({.speed = speed}), "speed");
  for (const std::uint32_t rate : {0U, 7999U, 48001U, 0xFFFFFFFFU}) {
    EXPECT_EQ(param({.output_rate = rate}), "sample_rate");
    EXPECT_EQ(param({.source_rate = rate}), "sample_rate");
  }
  EXPECT_EQ(param({.crossfade_ms = 501}), "crossfade_ms");
  EXPECT_TRUE(make_pcm_pipeline({.speed = 0.5, .crossfade_ms = 500}).ok());
}

}  // namespace
}  // namespace tts::audio
