#include "base16384.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace tts::model {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kPlenty = 1U << 20;

ErrorCode code_of(std::string_view text, std::size_t max_bytes = kPlenty) {
  const auto decoded = decode_base16384(text, max_bytes);
  EXPECT_FALSE(decoded.ok()) << text;
  return decoded.ok() ? ErrorCode::kInternal : decoded.error().code;
}

TEST(Base16384, WorkedExamples) {
  EXPECT_EQ(encode_base16384({}), "");
  EXPECT_EQ(encode_base16384(Bytes{0xA0}), "\u7600\u3D01");
  EXPECT_EQ(encode_base16384(Bytes{0xA0, 0xA1}), "\u7628\u5E00\u3D02");
  EXPECT_EQ(encode_base16384(Bytes{0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6}), "\u7628\u682A\u5C92\u73A6");
}

TEST(Base16384, EveryLengthComesBack) {
  std::mt19937 random(1);
  for (std::size_t size = 0; size < 60; ++size) {
    Bytes bytes(size);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const auto decoded = decode_base16384(encode_base16384(bytes), size);
    ASSERT_TRUE(decoded.ok()) << size << ": " << decoded.error().message;
    EXPECT_EQ(*decoded, bytes);
  }
}

TEST(Base16384, RefusesTextThatNoEncoderWrites) {
  EXPECT_EQ(code_of("abcd"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of("\u4E00"), ErrorCode::kInvalidArgument);                          // neither 4 characters nor a marker
  EXPECT_EQ(code_of("\u3D01"), ErrorCode::kInvalidArgument);                          // a marker for nothing
  EXPECT_EQ(code_of("\u4E00\u4E00\u3D01"), ErrorCode::kInvalidArgument);              // one byte takes one character
  EXPECT_EQ(code_of("\u4E00\u3D02"), ErrorCode::kInvalidArgument);                    // two bytes take two
  EXPECT_EQ(code_of("\u4E00\u4E00\u4E00\u4E00\u3D07"), ErrorCode::kInvalidArgument);  // seven need no marker
  EXPECT_EQ(code_of("\u4E00\u4E00\u4E00\u4E00\u3D00"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of("\u4E00\u3D01\u4E00\u4E00"), ErrorCode::kInvalidArgument);  // a marker inside
  EXPECT_EQ(code_of("\u4E00\u4E00\u4E00\u8E00"), ErrorCode::kInvalidArgument);  // the first character past the alphabet
  EXPECT_EQ(code_of("\u4DFF\u4E00\u4E00\u4E00"), ErrorCode::kInvalidArgument);  // the last one before it
  EXPECT_EQ(code_of("\u4E00\xE4\xB8"), ErrorCode::kInvalidArgument);            // cut in a character
}

TEST(Base16384, ItsLimitIsExact) {
  const std::string text = encode_base16384(Bytes(100));
  EXPECT_TRUE(decode_base16384(text, 100).ok());
  EXPECT_EQ(code_of(text, 99), ErrorCode::kTooLarge);
  EXPECT_EQ(code_of(encode_base16384(Bytes(100000)), 100), ErrorCode::kTooLarge);
}

TEST(Base16384, SurvivesAnything) {
  std::mt19937 random(2);
  const std::string good = encode_base16384(Bytes(33, 0x5A));
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (auto flips = 1 + random() % 3; flips > 0; --flips) text[random() % text.size()] = static_cast<char>(random());
    text.resize(random() % (text.size() + 1));
    if (const auto decoded = decode_base16384(text, 40); decoded.ok()) {
      EXPECT_LE(decoded->size(), 40U);
    }
  }
}

}  // namespace
}  // namespace tts::model
