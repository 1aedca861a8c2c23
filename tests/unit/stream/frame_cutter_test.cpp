#include "frame_cutter.h"

#include <gtest/gtest.h>

namespace tts::stream {
namespace {

std::shared_ptr<const resume::Packet> packet(std::uint64_t first_sample, std::vector<std::uint8_t> bytes) {
  auto made = std::make_shared<resume::Packet>();
  made->first_sample = first_sample;
  made->bytes = std::move(bytes);
  return made;
}

std::vector<std::uint8_t> opus_packets(int count, std::uint8_t size) {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < count; ++i) {
    bytes.push_back(size);
    bytes.push_back(0);
    bytes.insert(bytes.end(), size, static_cast<std::uint8_t>(i));
  }
  return bytes;
}

std::vector<std::uint8_t> joined(const std::vector<Piece>& pieces) {
  std::vector<std::uint8_t> all;
  for (const auto& piece : pieces) all.insert(all.end(), piece.payload.bytes().begin(), piece.payload.bytes().end());
  return all;
}

TEST(FrameCutter, OpusIsCutBetweenPacketsAndThePreSkipComesBeforeSampleZero) {
  FrameCutter cutter({.container = audio::Container::kOpusPackets, .sample_rate = 24000, .bitrate = 0}, 312);
  std::vector<Piece> pieces;
  const auto bytes = opus_packets(7, 40);
  cutter.cut(packet(0, bytes), pieces);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(joined(pieces), bytes);
  EXPECT_EQ(pieces[0].payload.size, 3U * 42U);
  EXPECT_EQ(pieces[0].first_sample, 0U);
  EXPECT_EQ(pieces[0].end_sample, 3U * 480U - 312U);
  EXPECT_EQ(pieces[1].first_sample, pieces[0].end_sample);
  EXPECT_EQ(pieces[2].end_sample, 7U * 480U - 312U);
  pieces.clear();
  cutter.cut(packet(99, opus_packets(1, 3)), pieces);
  EXPECT_EQ(pieces.front().first_sample, 7U * 480U - 312U) << "goes on over packets of the log";
}

TEST(FrameCutter, OpusWithABrokenLengthStaysWithinItsPacket) {
  FrameCutter cutter({.container = audio::Container::kOpusPackets, .sample_rate = 48000, .bitrate = 0}, 0);
  for (const auto& bytes : {std::vector<std::uint8_t>{255, 255, 1}, {7}, {0, 0}}) {
    std::vector<Piece> pieces;
    cutter.cut(packet(0, bytes), pieces);
    EXPECT_EQ(joined(pieces), bytes);
  }
}

TEST(FrameCutter, SamplesAreNeverCutInTwo) {
  FrameCutter cutter({.container = audio::Container::kPcm, .sample_rate = 24000, .bitrate = 0}, 0);
  std::vector<Piece> pieces;
  const std::vector<std::uint8_t> bytes(2 * 4000, 5);
  cutter.cut(packet(100, bytes), pieces);
  EXPECT_EQ(joined(pieces), bytes);
  std::uint64_t at = 100;
  for (const auto& piece : pieces) {
    EXPECT_EQ(piece.payload.size % 2, 0U);
    EXPECT_EQ(piece.first_sample, at);
    at = piece.end_sample;
    EXPECT_EQ(piece.end_sample - piece.first_sample, piece.payload.size / 2);
    EXPECT_LE(piece.payload.size, 2U * 1500U) << "a sixteenth of a second";
  }
  EXPECT_EQ(at, 4100U);
  EXPECT_EQ(cutter.end_sample(), 4100U);
}

TEST(FrameCutter, TheLawsHaveAByteASample) {
  FrameCutter cutter({.container = audio::Container::kMulaw, .sample_rate = 8000, .bitrate = 0}, 0);
  std::vector<Piece> pieces;
  cutter.cut(packet(0, std::vector<std::uint8_t>(700, 1)), pieces);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].end_sample, 500U);
  EXPECT_EQ(cutter.end_sample(), 700U);
}

TEST(FrameCutter, OnlyMarksMakeNoPiece) {
  FrameCutter cutter({.container = audio::Container::kPcm, .sample_rate = 24000, .bitrate = 0}, 0);
  std::vector<Piece> pieces;
  cutter.cut(packet(7, {}), pieces);
  EXPECT_TRUE(pieces.empty());
}

}  // namespace
}  // namespace tts::stream
