#include "lzma2.h"

#include <array>
#include <random>

#include <gtest/gtest.h>
#include <lzma.h>

namespace tts::model {
namespace {

using Bytes = std::vector<std::uint8_t>;

// As the reference writes it: preset 9 extreme.
Bytes compress(const Bytes& bytes) {
  lzma_options_lzma options;
  EXPECT_FALSE(lzma_lzma_preset(&options, 9 | LZMA_PRESET_EXTREME));
  const std::array<lzma_filter, 2> filters{{{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}}};
  Bytes out(bytes.size() + bytes.size() / 2 + 1024);
  std::size_t size = 0;
  EXPECT_EQ(lzma_raw_buffer_encode(filters.data(), nullptr, bytes.data(), bytes.size(), out.data(), &size, out.size()), LZMA_OK);
  out.resize(size);
  return out;
}

Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * i >> 3);
  return bytes;
}

bool refused(const Bytes& stream, std::size_t size) {
  const auto decoded = decode_lzma2(stream, size);
  return !decoded.ok() && decoded.error().code == ErrorCode::kInvalidArgument;
}

TEST(Lzma2, StoredAndCompressedStreamsComeBack) {
  for (const std::size_t size : {0U, 1U, 5U, 512U, 1536U, 65535U, 65536U, 65537U, 140000U}) {
    const Bytes bytes = pattern(size);
    for (const Bytes& stream : {store_lzma2(bytes), compress(bytes)}) {
      const auto decoded = decode_lzma2(stream, size);
      ASSERT_TRUE(decoded.ok()) << size << ": " << decoded.error().message;
      EXPECT_EQ(*decoded, bytes);
    }
  }
}

TEST(Lzma2, StoredFormIsTheDocumentedOne) {
  EXPECT_EQ(store_lzma2({}), (Bytes{0}));
  EXPECT_EQ(store_lzma2(Bytes{'a'}), (Bytes{1, 0, 0, 'a', 0}));
}

TEST(Lzma2, TheSizeMustBeExact) {
  for (const Bytes& stream : {store_lzma2(pattern(100)), compress(pattern(100))}) {
    EXPECT_TRUE(refused(stream, 99));
    EXPECT_TRUE(refused(stream, 101));
    EXPECT_TRUE(refused(stream, 0));
  }
}

TEST(Lzma2, ABombIsStoppedAtTheExpectedSize) { EXPECT_TRUE(refused(compress(Bytes(8U << 20)), 512)); }

TEST(Lzma2, RefusesCutAndContinuedStreams) {
  const Bytes good = compress(pattern(600));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_TRUE(refused(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), 600));
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_TRUE(refused(longer, 600));
}

TEST(Lzma2, SurvivesAnything) {
  std::mt19937 random(3);
  const Bytes good = compress(pattern(600));
  for (int round = 0; round < 3000; ++round) {
    Bytes stream = good;
    for (auto flips = 1 + random() % 3; flips > 0; --flips) stream[random() % stream.size()] = static_cast<std::uint8_t>(random());
    if (const auto decoded = decode_lzma2(stream, 600); decoded.ok()) {
      EXPECT_EQ(decoded->size(), 600U);
    }
  }
}

}  // namespace
}  // namespace tts::model
