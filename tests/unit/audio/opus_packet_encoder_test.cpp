#include <array>

#include <gtest/gtest.h>
#include <opus/opus.h>

#include "signals.h"
#include "tts/audio/encoder.h"

namespace tts::audio {
namespace {

using test::Samples;
using test::snr_db;
using test::u16_at;
using test::voice;

// What stands behind the lengths; fails when they do not add up.
std::vector<Bytes> packets_of(const Bytes& stream) {
  std::vector<Bytes> packets;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t length = u16_at(stream, at);
    EXPECT_GT(length, 0U);
    EXPECT_LE(at + 2 + length, stream.size());
    if (length == 0 || at + 2 + length > stream.size()) return packets;
    const auto begin = stream.begin() + static_cast<std::ptrdiff_t>(at + 2);
    packets.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(length));
    at += 2 + length;
  }
  return packets;
}

// Everything a decoder gives, the lag at the start included.
Samples decode(const std::vector<Bytes>& packets, std::uint32_t rate) {
  OpusDecoder* decoder = opus_decoder_create(static_cast<opus_int32>(rate), 1, nullptr);
  Samples all;
  std::array<float, 5760> pcm;
  for (const Bytes& packet : packets) {
    const int got = opus_decode_float(decoder, packet.data(), static_cast<opus_int32>(packet.size()), pcm.data(), pcm.size(), 0);
    EXPECT_EQ(got, static_cast<int>(rate / 50)) << "20 ms";
    all.insert(all.end(), pcm.begin(), pcm.begin() + std::max(got, 0));
  }
  opus_decoder_destroy(decoder);
  return all;
}

std::unique_ptr<Encoder> make(std::uint32_t rate, std::uint32_t bitrate, bool adaptive = false) {
  auto made = make_encoder({.format = {Container::kOpusPackets, rate, bitrate}, .total_samples = 0, .adaptive_bitrate = adaptive});
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

class OpusPacketRates : public testing::TestWithParam<std::uint32_t> {};

TEST_P(OpusPacketRates, PacketsBehindTheirLengthDecodeToTheInputAfterThePreSkip) {
  const std::uint32_t rate = GetParam();
  for (const std::size_t count : {1U, rate / 50 - 1, rate / 50, rate / 10 + 7, rate}) {
    const auto reference = voice(count, rate);
    const auto encoder = make(rate, 128000);
    Bytes out;
    encoder->start(out);
    EXPECT_TRUE(out.empty()) << "no header";
    encoder->encode(reference, out);
    encoder->finish(out);
    const Samples decoded = decode(packets_of(out), rate);
    ASSERT_GE(decoded.size(), count + encoder->pre_skip());
    EXPECT_LT(decoded.size(), count + encoder->pre_skip() + rate / 50) << "no packet too many";
    EXPECT_EQ(encoder->held(), 0U);
  }
}

TEST_P(OpusPacketRates, TheLagIsTheLibrarysAtTheFormatsRate) {
  EXPECT_EQ(make(GetParam(), 48000)->pre_skip(), GetParam() / 400) << "the transform coder";
  EXPECT_EQ(make(GetParam(), 24000)->pre_skip(), GetParam() / 400 + GetParam() / 250) << "the speech modes";
  EXPECT_EQ(make(GetParam(), 48000, true)->pre_skip(), GetParam() / 400 + GetParam() / 250);
}

TEST_P(OpusPacketRates, HeldIsWhatThePacketsSoFarDoNotPlay) {
  const std::uint32_t rate = GetParam();
  const auto encoder = make(rate, 48000);
  Bytes out;
  std::uint64_t given = 0;
  for (const std::size_t count : {rate / 100, rate / 50, rate / 3, rate / 7}) {
    encoder->encode(voice(count, rate), out);
    given += count;
    const std::uint64_t decoded = packets_of(out).size() * (rate / 50);
    EXPECT_EQ(given - encoder->held(), decoded - std::min<std::uint64_t>(decoded, encoder->pre_skip())) << given;
  }
}

TEST_P(OpusPacketRates, AtAPauseEverythingLeavesAndThePositionsStayTrue) {
  const std::uint32_t rate = GetParam();
  const auto encoder = make(rate, 128000);
  Bytes out;
  EXPECT_EQ(encoder->settle(out), 0U);
  EXPECT_TRUE(out.empty());
  Samples given;
  for (const std::size_t count : {rate / 3, rate / 50, rate / 4 + 11}) {
    const auto sound = voice(count, rate);
    encoder->encode(sound, out);
    given.insert(given.end(), sound.begin(), sound.end());
    const std::uint64_t silence = encoder->settle(out);
    EXPECT_LT(silence, rate / 50 + encoder->pre_skip() + 1) << "a packet and the lag";
    EXPECT_GE(decode(packets_of(out), rate).size(), given.size() + encoder->pre_skip()) << "all of the sound is there";
    given.resize(given.size() + silence);
    EXPECT_EQ(encoder->settle(out), 0U) << "once is enough";
  }
  const std::size_t before = out.size();
  encoder->finish(out);
  EXPECT_EQ(out.size(), before) << "nothing was left";
  Samples played = decode(packets_of(out), rate);
  ASSERT_GE(played.size(), given.size());
  played.erase(played.begin(), played.begin() + encoder->pre_skip());
  EXPECT_GT(snr_db(std::span(given).first(played.size()), played), 6) << "a shift by the lag would be near 0";
}

INSTANTIATE_TEST_SUITE_P(Rates, OpusPacketRates, testing::Values(8000, 12000, 16000, 24000, 48000), testing::PrintToStringParamName());

TEST(OpusPacketEncoder, SpeechSurvivesInPlace) {
  const auto reference = voice(96000, 48000);
  const auto encoder = make(48000, 128000);
  Bytes out;
  encoder->encode(reference, out);
  encoder->finish(out);
  Samples played = decode(packets_of(out), 48000);
  played.erase(played.begin(), played.begin() + encoder->pre_skip());
  EXPECT_GT(snr_db(reference, played), 15);
}

TEST(OpusPacketEncoder, NothingInNothingOut) {
  const auto encoder = make(24000, 0);
  Bytes out;
  encoder->start(out);
  encoder->finish(out);
  EXPECT_TRUE(out.empty());
}

TEST(OpusPacketEncoder, TheBitrateChangesFromTheNextPacketOn) {
  constexpr std::uint32_t kRate = 24000;
  const auto encoder = make(kRate, 64000, true);
  Bytes all;
  std::vector<double> used;
  for (const std::uint32_t bitrate : {64000U, 16000U, 40000U, 1U, 4000000000U}) {  // the last two are forced to what Opus takes
    encoder->set_bitrate(bitrate);
    Bytes out;
    encoder->encode(voice(kRate * 2, kRate), out);
    std::size_t bytes = 0;
    for (const Bytes& packet : packets_of(out)) bytes += packet.size();
    used.push_back(static_cast<double>(bytes) * 8 / 2);
    all.insert(all.end(), out.begin(), out.end());
  }
  EXPECT_LT(used[0], 1.15 * 64000);
  EXPECT_LT(used[1], 1.15 * 16000);
  EXPECT_LT(used[2], 1.15 * 40000);
  EXPECT_LT(used[3], 1.2 * 6000);
  EXPECT_GT(used[0], used[2]);
  EXPECT_GT(used[2], used[1]);
  EXPECT_GT(used[1], used[3]);
  EXPECT_GT(used[4], used[0]);
  EXPECT_EQ(decode(packets_of(all), kRate).size(), kRate * 10) << "one decoder plays it all";
}

TEST(OpusPacketEncoder, WhereTheBitrateWillChangeTheSpeechModesAreThereFromTheStart) {
  const auto modes = [](bool adaptive) {
    const auto encoder = make(24000, 48000, adaptive);
    Bytes out;
    encoder->encode(voice(24000, 24000), out);
    std::size_t transform = 0, others = 0;
    // Configurations 16 to 31 of RFC 6716, section 3.1, are the transform coder's.
    for (const Bytes& packet : packets_of(out)) ++((packet[0] >> 3) >= 16 ? transform : others);
    return std::pair(transform, others);
  };
  EXPECT_EQ(modes(false), std::pair(std::size_t{50}, std::size_t{0}));
  EXPECT_EQ(modes(true), std::pair(std::size_t{0}, std::size_t{50}));
}

}  // namespace
}  // namespace tts::audio
