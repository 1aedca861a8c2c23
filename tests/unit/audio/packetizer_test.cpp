#include "tts/audio/packetizer.h"

#include <gtest/gtest.h>

#include "signals.h"

namespace tts::audio {
namespace {

using test::in_chunks;
using test::Samples;

std::vector<Samples> packets(std::size_t size, const Samples& samples, std::size_t chunk) {
  std::vector<Samples> out;
  const auto sink = [&](std::span<const float> packet) { out.emplace_back(packet.begin(), packet.end()); };
  Packetizer packetizer(size);
  in_chunks(samples, chunk, [&](std::span<const float> piece) { packetizer.push(piece, sink); });
  packetizer.finish(sink);
  return out;
}

Samples ramp(std::size_t count) {
  Samples out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(i);
  return out;
}

class PacketizerChunks : public testing::TestWithParam<std::size_t> {};

TEST_P(PacketizerChunks, PacketsAreConstantAndLoseNothing) {
  for (const std::size_t count : {0U, 1U, 2399U, 2400U, 2401U, 12000U, 12345U}) {
    const Samples samples = ramp(count);
    const auto got = packets(2400, samples, GetParam());
    ASSERT_EQ(got.size(), (count + 2399) / 2400);
    Samples joined;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].size(), i + 1 < got.size() ? 2400 : count - i * 2400);
      joined.insert(joined.end(), got[i].begin(), got[i].end());
    }
    EXPECT_EQ(joined, samples);
  }
}

INSTANTIATE_TEST_SUITE_P(Chunks, PacketizerChunks, testing::Values(0, 1, 512, 2400, 2401, 100000), testing::PrintToStringParamName());

TEST(Packetizer, FullPacketComesWithTheSampleThatFillsIt) {
  Packetizer packetizer(4);
  int calls = 0;
  const auto sink = [&](std::span<const float>) { ++calls; };
  packetizer.push(ramp(3), sink);
  EXPECT_EQ(calls, 0);
  packetizer.push(ramp(1), sink);
  EXPECT_EQ(calls, 1);
  packetizer.finish(sink);
  EXPECT_EQ(calls, 1);
}

TEST(Packetizer, StartsAnewAfterFinish) {
  Packetizer packetizer(4);
  std::vector<std::size_t> sizes;
  const auto sink = [&](std::span<const float> packet) { sizes.push_back(packet.size()); };
  packetizer.push(ramp(3), sink);
  packetizer.finish(sink);
  packetizer.push(ramp(4), sink);
  packetizer.finish(sink);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 4}));
}

TEST(PacketSamples, RoundsDownButNeverToZero) {
  using std::chrono::milliseconds;
  EXPECT_EQ(packet_samples(24000, milliseconds(100)), 2400U);
  EXPECT_EQ(packet_samples(11025, milliseconds(20)), 220U);
  EXPECT_EQ(packet_samples(24000, milliseconds(0)), 1U);
  EXPECT_EQ(packet_samples(24000, milliseconds(-5)), 1U);
}

}  // namespace
}  // namespace tts::audio
