#include <limits>

#include <gtest/gtest.h>

#include "signals.h"

namespace tts::audio {
namespace {

using test::encode;
using test::Samples;
using test::u16_at;
using test::u32_at;

std::string text_at(const Bytes& bytes, std::size_t at, std::size_t length) { return {bytes.begin() + at, bytes.begin() + at + length}; }

std::vector<std::int16_t> samples_from(const Bytes& bytes, std::size_t at) {
  std::vector<std::int16_t> out;
  for (; at + 1 < bytes.size(); at += 2) out.push_back(static_cast<std::int16_t>(u16_at(bytes, at)));
  return out;
}

TEST(WavEncoder, WholeFileCarriesTrueSizes) {
  const Bytes wav = encode({{Container::kWav, 24000, 0}, 1000}, Samples(1000, 0.25F), 300);
  ASSERT_EQ(wav.size(), 44U + 2000U);
  EXPECT_EQ(text_at(wav, 0, 4), "RIFF");
  EXPECT_EQ(u32_at(wav, 4), wav.size() - 8);
  EXPECT_EQ(text_at(wav, 8, 8), "WAVEfmt ");
  EXPECT_EQ(u32_at(wav, 16), 16U);
  EXPECT_EQ(u16_at(wav, 20), 1U);
  EXPECT_EQ(u16_at(wav, 22), 1U);
  EXPECT_EQ(u32_at(wav, 24), 24000U);
  EXPECT_EQ(u32_at(wav, 28), 48000U);
  EXPECT_EQ(u16_at(wav, 32), 2U);
  EXPECT_EQ(u16_at(wav, 34), 16U);
  EXPECT_EQ(text_at(wav, 36, 4), "data");
  EXPECT_EQ(u32_at(wav, 40), 2000U);
}

TEST(WavEncoder, StreamCarriesUnknownSizes) {
  const Bytes wav = encode({{Container::kWav, 8000, 0}, 0}, {}, 1);
  ASSERT_EQ(wav.size(), 44U);
  EXPECT_EQ(u32_at(wav, 4), 0xFFFFFFFFU);
  EXPECT_EQ(u32_at(wav, 40), 0xFFFFFFFFU);
  EXPECT_EQ(u32_at(wav, 24), 8000U);
}

TEST(PcmEncoder, RoundsToNearestAndClips) {
  constexpr float kStep = 1.0F / 32767.0F;
  const Samples in = {
      0, kStep, -kStep, 0.49F * kStep, 0.51F * kStep, -0.51F * kStep, 1, -1, 1.5F, -1.5F, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<std::int16_t> expected = {0, 1, -1, 0, 1, -1, 32767, -32767, 32767, -32767, 0};
  EXPECT_EQ(samples_from(encode({{Container::kPcm, 24000, 0}, 0}, in, 3), 0), expected);
}

TEST(PcmEncoder, NothingInNothingOut) { EXPECT_TRUE(encode({{Container::kPcm, 24000, 0}, 0}, {}, 1).empty()); }

}  // namespace
}  // namespace tts::audio
