#include <algorithm>
#include <array>
#include <cstring>

#include <gtest/gtest.h>
#include <ogg/ogg.h>
#include <opus/opus.h>

#include "opus_packets.h"
#include "signals.h"

namespace tts::audio {
namespace {

using test::encode;
using test::Samples;
using test::snr_db;
using test::u16_at;
using test::u32_at;
using test::voice;

constexpr std::size_t kHeaderPages = 2;

struct Page {
  std::int64_t granule;
  int packets;
  bool first, last;
};

struct Demuxed {
  std::vector<Page> pages;
  std::vector<Bytes> packets;
};

Demuxed demux(const Bytes& file) {
  Demuxed out;
  ogg_sync_state sync;
  ogg_sync_init(&sync);
  std::memcpy(ogg_sync_buffer(&sync, static_cast<long>(file.size())), file.data(), file.size());
  ogg_sync_wrote(&sync, static_cast<long>(file.size()));
  ogg_stream_state stream;
  ogg_page page;
  while (ogg_sync_pageout(&sync, &page) == 1) {
    if (out.pages.empty()) ogg_stream_init(&stream, ogg_page_serialno(&page));
    EXPECT_EQ(ogg_page_pageno(&page), static_cast<long>(out.pages.size()));
    out.pages.push_back({ogg_page_granulepos(&page), ogg_page_packets(&page), ogg_page_bos(&page) != 0, ogg_page_eos(&page) != 0});
    EXPECT_EQ(ogg_stream_pagein(&stream, &page), 0);
    ogg_packet packet;
    while (ogg_stream_packetout(&stream, &packet) == 1) out.packets.emplace_back(packet.packet, packet.packet + packet.bytes);
  }
  if (!out.pages.empty()) ogg_stream_clear(&stream);
  ogg_sync_clear(&sync);
  return out;
}

// What a player hears: everything decoded at 48 kHz, without pre-skip and without what the last granule trims.
Samples play(const Demuxed& demuxed) {
  OpusDecoder* decoder = opus_decoder_create(48000, 1, nullptr);
  Samples all;
  std::array<float, 5760> pcm;
  for (std::size_t i = kHeaderPages; i < demuxed.packets.size(); ++i) {
    const auto& packet = demuxed.packets[i];
    const int got = opus_decode_float(decoder, packet.data(), static_cast<opus_int32>(packet.size()), pcm.data(), pcm.size(), 0);
    EXPECT_EQ(got, 960);
    all.insert(all.end(), pcm.begin(), pcm.begin() + std::max(got, 0));
  }
  opus_decoder_destroy(decoder);
  const auto end = static_cast<std::size_t>(demuxed.pages.back().granule);
  EXPECT_LE(end, all.size());
  EXPECT_GT(end + 960, all.size()) << "a whole packet would be trimmed";
  const std::size_t pre_skip = u16_at(demuxed.packets.at(0), 10);
  return {all.begin() + static_cast<std::ptrdiff_t>(pre_skip), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

class OggOpus : public testing::TestWithParam<std::uint32_t> {};

TEST_P(OggOpus, LengthIsExactAtEveryRateAndCount) {
  const std::uint32_t rate = GetParam();
  for (const std::size_t count : {0U, 1U, rate / 50 - 1, rate / 50, rate / 50 + 1, rate / 10, rate, rate + 7}) {
    const Demuxed demuxed = demux(encode({{Container::kOggOpus, rate, 0}, 0}, voice(count, rate), 0));
    EXPECT_EQ(play(demuxed).size(), count * (48000 / rate)) << count;
  }
}

TEST_P(OggOpus, GranulesCountPacketsAndTheLastPageEnds) {
  const std::uint32_t rate = GetParam();
  const Demuxed demuxed = demux(encode({{Container::kOggOpus, rate, 0}, 0}, voice(rate + 7, rate), 333));
  ASSERT_GT(demuxed.pages.size(), kHeaderPages);
  EXPECT_TRUE(demuxed.pages[0].first);
  EXPECT_EQ(demuxed.pages[0].granule, 0);
  EXPECT_EQ(demuxed.pages[0].packets, 1);
  EXPECT_EQ(demuxed.pages[1].granule, 0);
  EXPECT_EQ(demuxed.pages[1].packets, 1);
  std::int64_t packets = 0;
  for (std::size_t i = kHeaderPages; i < demuxed.pages.size(); ++i) {
    packets += demuxed.pages[i].packets;
    const bool last = i + 1 == demuxed.pages.size();
    EXPECT_EQ(demuxed.pages[i].last, last);
    EXPECT_TRUE(last || demuxed.pages[i].granule == packets * 960);
    EXPECT_LE(demuxed.pages[i].packets, 5);
  }
  EXPECT_EQ(demuxed.pages.back().granule, 120 + std::int64_t{rate + 7} * (48000 / rate));
}

TEST_P(OggOpus, HeadNamesRateAndPreSkipAt48Kilohertz) {
  const std::uint32_t rate = GetParam();
  const Bytes head = demux(encode({{Container::kOggOpus, rate, 0}, 0}, {}, 1)).packets.at(0);
  ASSERT_EQ(head.size(), 19U);
  EXPECT_EQ(std::string(head.begin(), head.begin() + 8), "OpusHead");
  EXPECT_EQ(head[8], 1);
  EXPECT_EQ(head[9], 1);
  EXPECT_EQ(u16_at(head, 10), 120U);
  EXPECT_EQ(u32_at(head, 12), rate);
  EXPECT_EQ(u16_at(head, 16), 0U);
  EXPECT_EQ(head[18], 0);
}

INSTANTIATE_TEST_SUITE_P(Rates, OggOpus, testing::Values(8000, 12000, 16000, 24000, 48000), testing::PrintToStringParamName());

TEST(OggOpusEncoder, TagsNameTheVendorAndSayThatTheSpeechIsSynthetic) {
  const Bytes tags = demux(encode({{Container::kOggOpus, 24000, 0}, 0}, {}, 1)).packets.at(1);
  EXPECT_EQ(std::string(tags.begin(), tags.begin() + 8), "OpusTags");
  std::size_t at = 8;
  const auto text = [&] {
    const std::size_t length = u32_at(tags, at);
    at += 4 + length;
    return std::string(tags.begin() + static_cast<std::ptrdiff_t>(at - length), tags.begin() + static_cast<std::ptrdiff_t>(at));
  };
  EXPECT_EQ(text(), opus_get_version_string());
  ASSERT_EQ(u32_at(tags, at), 2U);
  at += 4;
  EXPECT_EQ(text(), "ENCODER=chattts-server");
  EXPECT_EQ(text(), "SYNTHETIC=true");
  EXPECT_EQ(at, tags.size());
}

TEST(OggOpusEncoder, SpeechSurvivesInPlace) {
  const auto reference = voice(96000, 48000);
  const Demuxed demuxed = demux(encode({{Container::kOggOpus, 48000, 128000}, 0}, reference, 0));
  EXPECT_GT(snr_db(reference, play(demuxed)), 15);  // a shift by one packet, or even by the pre-skip, would be near 0
}

TEST(OggOpusEncoder, TailIsSpokenToTheEnd) {
  auto reference = voice(48000, 48000);
  const Samples played = play(demux(encode({{Container::kOggOpus, 48000, 128000}, 0}, reference, 0)));
  ASSERT_EQ(played.size(), reference.size());
  EXPECT_GT(snr_db(std::span(reference).last(480), std::span(played).last(480)), 6);
}

TEST(OggOpusEncoder, BitrateIsKept) {
  constexpr std::size_t kSeconds = 5;
  double before = 0;
  for (const std::uint32_t bitrate : {16000U, 32000U, 64000U}) {
    const Demuxed demuxed = demux(encode({{Container::kOggOpus, 24000, bitrate}, 0}, voice(24000 * kSeconds, 24000), 0));
    std::size_t bytes = 0;
    for (std::size_t i = kHeaderPages; i < demuxed.packets.size(); ++i) bytes += demuxed.packets[i].size();
    const double used = static_cast<double>(bytes) * 8 / kSeconds;
    EXPECT_LT(used, 1.1 * bitrate);
    EXPECT_GT(used, 0.5 * bitrate);  // variable: an easy signal takes less
    EXPECT_GT(used, before);
    before = used;
  }
}

TEST(OggOpusEncoder, AnyComplexityIsDecodedAlikeAndNoOther) {
  for (const std::uint32_t complexity : {0U, 1U, 10U}) {
    const auto encoder = make_encoder({.format = {Container::kOggOpus, 24000, 32000}, .total_samples = 0, .opus_complexity = complexity});
    ASSERT_TRUE(encoder.ok());
    Bytes out;
    (*encoder)->start(out);
    (*encoder)->encode(voice(24000, 24000), out);
    (*encoder)->finish(out);
    EXPECT_EQ(demux(out).packets.size(), kHeaderPages + 51) << complexity;
  }
  EXPECT_EQ(make_encoder({.format = {Container::kOggOpus, 24000, 0}, .total_samples = 0, .opus_complexity = 11}).error().param,
            "opus_complexity");
}

TEST(OggOpusEncoder, PagesHold20MillisecondsAtFirstThen100) {
  auto encoder = make_encoder({{Container::kOggOpus, 24000, 0}, 0});
  ASSERT_TRUE(encoder.ok());
  Bytes out;
  (*encoder)->start(out);
  EXPECT_EQ(demux(out).pages.size(), kHeaderPages);
  (*encoder)->encode(voice(480, 24000), out);
  EXPECT_EQ(demux(out).pages.size(), kHeaderPages + 1);
  (*encoder)->encode(voice(12000 - 480, 24000), out);
  EXPECT_EQ(demux(out).pages.size(), kHeaderPages + 25);
  for (std::size_t tenths = 6; tenths <= 10; ++tenths) {
    (*encoder)->encode(voice(1200, 24000), out);
    EXPECT_EQ(demux(out).pages.size(), kHeaderPages + 25 + tenths - 6) << "a page is not full";
    (*encoder)->encode(voice(1200, 24000), out);
    EXPECT_EQ(demux(out).pages.size(), kHeaderPages + 25 + tenths - 5);
    EXPECT_EQ(demux(out).packets.size(), kHeaderPages + 5 * tenths);
  }
}

TEST_P(OggOpus, HeldIsWhatThePagesSoFarDoNotPlay) {
  const std::uint32_t rate = GetParam();
  auto encoder = make_encoder({{Container::kOggOpus, rate, 0}, 0});
  ASSERT_TRUE(encoder.ok());
  Bytes out;
  (*encoder)->start(out);
  EXPECT_EQ((*encoder)->held(), 0U);
  std::uint64_t given = 0;
  for (const std::size_t count : {rate / 100, rate / 50, rate / 3, rate / 2, rate / 7, rate / 100}) {
    (*encoder)->encode(voice(count, rate), out);
    given += count;
    const std::int64_t granule = demux(out).pages.back().granule;
    EXPECT_EQ(given - (*encoder)->held(), static_cast<std::uint64_t>(std::max<std::int64_t>(0, granule - 120)) / (48000 / rate)) << given;
  }
  (*encoder)->finish(out);
  EXPECT_EQ((*encoder)->held(), 0U);
}

TEST_P(OggOpus, AfterAPauseEverythingCanBeHeardAndTheLengthCountsTheSilence) {
  const std::uint32_t rate = GetParam();
  auto encoder = make_encoder({{Container::kOggOpus, rate, 0}, 0});
  ASSERT_TRUE(encoder.ok());
  Bytes out;
  (*encoder)->start(out);
  EXPECT_EQ((*encoder)->settle(out), 0U) << "nothing to put out";
  std::uint64_t given = 0;
  for (const std::size_t count : {rate + rate / 30, rate / 50, rate / 7}) {  // the first ends within a page of five packets
    (*encoder)->encode(voice(count, rate), out);
    given += count;
    const std::uint64_t silence = (*encoder)->settle(out);
    EXPECT_GT(silence, 0U);
    EXPECT_LT(silence, rate / 50 + rate / 400 + 1) << "a packet and the lookahead";
    given += silence;
    EXPECT_LE((*encoder)->held(), silence) << "of the silence alone";
    EXPECT_EQ((*encoder)->settle(out), 0U);
    EXPECT_EQ(demux(out).packets.size() - kHeaderPages, given / (rate / 50)) << "every page has left";
  }
  (*encoder)->finish(out);
  EXPECT_EQ(play(demux(out)).size(), given * (48000 / rate));
}

TEST(OggOpusEncoder, EmptyStreamIsOnePacketThatPlaysNothing) {
  const Demuxed demuxed = demux(encode({{Container::kOggOpus, 24000, 0}, 0}, {}, 1));
  EXPECT_EQ(demuxed.packets.size(), kHeaderPages + 1);
  EXPECT_TRUE(play(demuxed).empty());
}

TEST(OpusPackets, AllPacketsTogetherCoverTheInputAndTheLookahead) {
  for (const std::size_t count : {0U, 1U, 168U, 169U, 324U, 325U, 480U, 5000U}) {  // 480 - 156 = 324 samples fit beside the lookahead
    auto opus = OpusPackets::create({.sample_rate = 24000, .bitrate = 32000});
    ASSERT_NE(opus, nullptr);
    std::size_t packets = 0;
    const auto count_packet = [&](std::span<const std::uint8_t> packet) {
      ++packets;
      EXPECT_FALSE(packet.empty());
    };
    opus->encode(voice(count, 24000), count_packet);
    opus->finish(count_packet);
    EXPECT_EQ(opus->granules_in(), count * 2);
    EXPECT_EQ(packets, (count * 2 + opus->pre_skip() + 959) / 960) << count;
  }
}

TEST(OpusPackets, ATransformCoderFrom48KilobitsOn) {
  for (const std::uint32_t bitrate : {32000U, 47999U, 48000U, 128000U}) {
    auto opus = OpusPackets::create({.sample_rate = 24000, .bitrate = bitrate});
    ASSERT_NE(opus, nullptr);
    const bool transform = bitrate >= 48000;
    EXPECT_EQ(opus->pre_skip(), transform ? 120U : 312U) << bitrate;
    std::size_t others = 0;
    // Configurations 16 to 31 of RFC 6716, section 3.1, are the transform coder's.
    const auto look = [&](std::span<const std::uint8_t> packet) { others += (packet[0] >> 3) >= 16 ? 0 : 1; };
    opus->encode(voice(24000, 24000), look);
    EXPECT_EQ(others == 0, transform) << bitrate;
  }
}

TEST(OpusPackets, RefusesARateThatOpusDoesNotKnow) { EXPECT_EQ(OpusPackets::create({.sample_rate = 44100, .bitrate = 32000}), nullptr); }

}  // namespace
}  // namespace tts::audio
