#include "g711.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "signals.h"

namespace tts::audio {
namespace {

// The expanders of G.711, written from its tables: the middle of each step.
int from_mulaw(std::uint8_t code) {
  const unsigned bits = static_cast<std::uint8_t>(~code);
  const unsigned segment = bits >> 4U & 7U;
  const int magnitude = static_cast<int>((((bits & 15U) * 2 + 33) << (segment + 2)) - 132);
  return (bits & 0x80U) != 0 ? -magnitude : magnitude;
}

int from_alaw(std::uint8_t code) {
  const unsigned bits = code ^ 0x55U;
  const unsigned segment = bits >> 4U & 7U;
  const unsigned step = bits & 15U;
  const int magnitude = static_cast<int>(segment == 0 ? step * 16 + 8 : (step * 16 + 264) << (segment - 1));
  return (bits & 0x80U) != 0 ? magnitude : -magnitude;
}

struct Known {
  std::int16_t sample;
  std::uint8_t code;
};

TEST(Mulaw, KnownValues) {
  for (const auto& [sample, code] : {Known{0, 0xFF}, Known{-1, 0x7F}, Known{3, 0xFF}, Known{4, 0xFE}, Known{-4, 0x7E}, Known{8, 0xFE},
                                     Known{123, 0xF0}, Known{124, 0xEF}, Known{1000, 0xCE}, Known{-1000, 0x4E}, Known{32635, 0x80},
                                     Known{32767, 0x80}, Known{-32635, 0x00}, Known{-32768, 0x00}}) {
    EXPECT_EQ(to_mulaw(sample), code) << sample;
  }
}

TEST(Alaw, KnownValues) {
  for (const auto& [sample, code] : {Known{0, 0xD5}, Known{15, 0xD5}, Known{16, 0xD4}, Known{-1, 0x55}, Known{-16, 0x55}, Known{-17, 0x54},
                                     Known{255, 0xDA}, Known{256, 0xC5}, Known{1000, 0xFA}, Known{-1000, 0x7A}, Known{32767, 0xAA},
                                     Known{-32768, 0x2A}}) {
    EXPECT_EQ(to_alaw(sample), code) << sample;
  }
}

TEST(Mulaw, RoundTripStaysWithinHalfAStep) {
  for (int sample = -32635; sample <= 32635; ++sample) {
    const std::uint8_t code = to_mulaw(static_cast<std::int16_t>(sample));
    const int step = 8 << (~code >> 4U & 7U);
    ASSERT_LE(std::abs(from_mulaw(code) - sample), step / 2) << sample;
  }
}

TEST(Alaw, RoundTripStaysWithinHalfAStep) {
  for (int sample = -32768; sample <= 32767; ++sample) {
    const std::uint8_t code = to_alaw(static_cast<std::int16_t>(sample));
    const int segment = (code ^ 0x55) >> 4 & 7;
    const int step = 16 << std::max(segment - 1, 0);
    ASSERT_LE(std::abs(from_alaw(code) - sample), step / 2) << sample;
  }
}

TEST(Mulaw, EveryCodeIsTheCodeOfItsValue) {
  for (int code = 0; code < 256; ++code) {
    if (code == 0x7F) continue;  // minus zero
    EXPECT_EQ(to_mulaw(static_cast<std::int16_t>(from_mulaw(static_cast<std::uint8_t>(code)))), code);
  }
}

TEST(Alaw, EveryCodeIsTheCodeOfItsValue) {
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(to_alaw(static_cast<std::int16_t>(from_alaw(static_cast<std::uint8_t>(code)))), code);
  }
}

TEST(G711Encoder, IsAByteASample) {
  const test::Samples samples{0.0F, 1.0F, -1.0F, 0.5F};
  EXPECT_EQ(test::encode({{Container::kMulaw, 8000, 0}, 0}, samples, 3), (Bytes{0xFF, 0x80, 0x00, 0x8F}));
  EXPECT_EQ(test::encode({{Container::kAlaw, 8000, 0}, 0}, samples, 3), (Bytes{0xD5, 0xAA, 0x2A, 0xA5}));
}

TEST(G711Encoder, HoldsNothingBack) {
  for (const Container container : {Container::kMulaw, Container::kAlaw}) {
    auto encoder = make_encoder({{container, 8000, 0}, 0});
    ASSERT_TRUE(encoder.ok());
    Bytes out;
    (*encoder)->start(out);
    (*encoder)->encode(test::voice(777, 8000), out);
    EXPECT_EQ((*encoder)->held(), 0U);
    EXPECT_EQ((*encoder)->settle(out), 0U);
    EXPECT_EQ(out.size(), 777U);
    EXPECT_EQ((*encoder)->pre_skip(), 0U);
  }
}

}  // namespace
}  // namespace tts::audio
