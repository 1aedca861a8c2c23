#include <algorithm>
#include <array>
#include <string_view>

#include <gtest/gtest.h>
#include <lame/lame.h>

#include "signals.h"

namespace tts::audio {
namespace {

using test::encode;
using test::Samples;
using test::snr_db;
using test::voice;

struct Decoded {
  Samples samples;
  mp3data_struct info{};
  int delay = -1;  // of the encoder, from the gapless tag; -1 = no tag
  int padding = -1;
};

Decoded decode(Bytes file) {
  Decoded decoded;
  hip_t hip = hip_decode_init();
  std::array<short, 1152 * 64> left;
  std::array<short, 1152 * 64> right;
  for (std::size_t at = 0; at < file.size(); at += 64) {
    const std::size_t size = std::min<std::size_t>(64, file.size() - at);
    const int got =
        hip_decode1_headersB(hip, file.data() + at, size, left.data(), right.data(), &decoded.info, &decoded.delay, &decoded.padding);
    EXPECT_GE(got, 0);
    for (int i = 0; i < got; ++i) decoded.samples.push_back(static_cast<float>(left[i]) / 32768.0F);
  }
  for (int got = 1; got > 0;) {
    got = hip_decode1(hip, file.data(), 0, left.data(), right.data());
    for (int i = 0; i < got; ++i) decoded.samples.push_back(static_cast<float>(left[i]) / 32768.0F);
  }
  hip_decode_exit(hip);
  return decoded;
}

// Offset at which the decoded signal fits best, within the first 3000 samples.
std::size_t best_offset(const Samples& reference, const Samples& got) {
  std::size_t best = 0;
  double best_snr = -100;
  for (std::size_t offset = 0; offset < 3000 && offset + reference.size() <= got.size(); ++offset) {
    const double snr = snr_db(reference, std::span(got).subspan(offset));
    if (snr > best_snr) best = offset, best_snr = snr;
  }
  return best;
}

TEST(Mp3Encoder, DefaultIs128KilobitMpeg2Mono) {
  const Decoded decoded = decode(encode({{Container::kMp3, 24000, 0}, 0}, voice(24000, 24000), 2400));
  EXPECT_EQ(decoded.info.samplerate, 24000);
  EXPECT_EQ(decoded.info.stereo, 1);
  EXPECT_EQ(decoded.info.bitrate, 128);
  EXPECT_EQ(decoded.info.framesize, 576);
}

TEST(Mp3Encoder, SpeechSurvives) {
  const auto samples = voice(24000, 24000);
  const Decoded decoded = decode(encode({{Container::kMp3, 24000, 0}, 0}, samples, 2400));
  ASSERT_GT(decoded.samples.size(), samples.size());
  EXPECT_GT(snr_db(samples, std::span(decoded.samples).subspan(best_offset(samples, decoded.samples))), 20);
}

TEST(Mp3Encoder, WholeFileCarriesAGaplessTagAndAStreamDoesNot) {
  const auto samples = voice(24000, 24000);
  const Decoded whole = decode(encode({{Container::kMp3, 24000, 0}, samples.size()}, samples, 2400));
  ASSERT_GT(whole.delay, 0);
  ASSERT_GE(whole.padding, 0);
  const std::size_t frames = (samples.size() + whole.delay + whole.padding) / 576;
  EXPECT_EQ(frames * 576, samples.size() + whole.delay + whole.padding);
  EXPECT_LT(decode(encode({{Container::kMp3, 24000, 0}, 0}, samples, 2400)).delay, 0);
}

TEST(Mp3Encoder, FirstFramesComeSoon) {
  auto encoder = make_encoder({{Container::kMp3, 24000, 0}, 0});
  ASSERT_TRUE(encoder.ok());
  Bytes out;
  (*encoder)->start(out);
  (*encoder)->encode(voice(2400, 24000), out);
  EXPECT_GT(out.size(), 384U);  // one frame of 24 ms at 128 kbit/s
}

TEST(Mp3Encoder, HeldIsWhatTheFramesSoFarDoNotPlay) {
  auto encoder = make_encoder({{Container::kMp3, 24000, 0}, 0});
  ASSERT_TRUE(encoder.ok());
  Bytes out;
  (*encoder)->start(out);
  std::size_t given = 0;
  for (const std::size_t count : {100U, 3000U, 9000U, 1U}) {
    (*encoder)->encode(voice(count, 24000), out);
    given += count;
    EXPECT_NEAR(static_cast<double>(given - (*encoder)->held()), static_cast<double>(decode(out).samples.size()), 576) << given;
    EXPECT_LE((*encoder)->held(), 4 * 576U);
  }
  (*encoder)->finish(out);
  EXPECT_EQ((*encoder)->held(), 0U);
}

TEST(Mp3Encoder, SaysThatTheSpeechIsSynthetic) {
  for (const std::uint64_t total : {0, 2400}) {
    const Bytes file = encode({{Container::kMp3, 24000, 0}, total}, voice(2400, 24000), 2400);
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    EXPECT_TRUE(text.starts_with("ID3"));
    EXPECT_NE(text.substr(0, 4096).find("SYNTHETIC"), std::string_view::npos);
  }
}

TEST(Mp3Encoder, EmptyStreamIsAValidFile) {
  const Decoded decoded = decode(encode({{Container::kMp3, 24000, 0}, 0}, {}, 1));
  for (const float sample : decoded.samples) EXPECT_LT(std::abs(sample), 1e-3F);
}

}  // namespace
}  // namespace tts::audio
