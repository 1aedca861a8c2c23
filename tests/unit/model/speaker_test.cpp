#include "speaker.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include <c10/util/Half.h>

#include "tts/model/model.h"

#include "base16384.h"
#include "lzma2.h"

namespace tts::model {
namespace {

std::string string_of_halves(const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes;
  for (const float value : values) {
    const std::uint16_t bits = c10::Half(value).x;
    bytes.push_back(static_cast<std::uint8_t>(bits & 0xFF));
    bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
  }
  return encode_base16384(store_lzma2(bytes));
}

std::string reference_string(std::uint16_t rows, std::uint16_t frames, std::size_t codes, std::uint16_t code) {
  std::vector<std::uint8_t> content, packed;
  const auto append = [](std::vector<std::uint8_t>& to, std::uint16_t value) {
    to.push_back(static_cast<std::uint8_t>(value & 0xFF));
    to.push_back(static_cast<std::uint8_t>(value >> 8));
  };
  append(packed, rows);
  append(packed, frames);
  for (std::size_t i = 0; i < codes; ++i) append(content, code);
  for (const std::uint8_t byte : store_lzma2(content)) packed.push_back(byte);
  return encode_base16384(packed);
}

TEST(Speaker, AStringComesBack) {
  std::vector<float> speaker(768);
  for (std::size_t i = 0; i < speaker.size(); ++i) speaker[i] = static_cast<float>(static_cast<int>(i) - 300) / 16.0F;
  const auto parsed = parse_speaker_string(format_speaker_string(speaker), 768);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(**parsed, speaker);
}

TEST(Speaker, RefusesOtherSizesAndValuesThatAreNotFinite) {
  EXPECT_FALSE(parse_speaker_string(string_of_halves(std::vector<float>(8)), 7).ok());
  EXPECT_FALSE(parse_speaker_string(string_of_halves(std::vector<float>(8)), 9).ok());
  EXPECT_FALSE(parse_speaker_string("", 8).ok());
  EXPECT_FALSE(parse_speaker_string("hello", 8).ok());
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(8);
    values[5] = bad;
    EXPECT_FALSE(parse_speaker_string(string_of_halves(values), 8).ok()) << bad;
  }
  EXPECT_TRUE(parse_speaker_string(string_of_halves(std::vector<float>(8, 65504.0F)), 8).ok());
}

TEST(Speaker, ALongStringIsRefusedBeforeItIsDecoded) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "\u4E00";
  const auto parsed = parse_speaker_string(text, 8);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, ErrorCode::kTooLarge);
}

TEST(Speaker, ReferenceStringsAreBounded) {
  EXPECT_TRUE(parse_reference_string(reference_string(4, 3, 12, 624), 3).ok());
  EXPECT_EQ(parse_reference_string(reference_string(4, 3, 12, 624), 2).error().code, ErrorCode::kTooLarge);
  for (const std::string& text : {reference_string(4, 3, 12, 625), reference_string(3, 4, 12, 0), reference_string(4, 0, 0, 0),
                                  reference_string(4, 3, 11, 0), reference_string(4, 3, 13, 0), reference_string(4, 0xFFFF, 12, 0),
                                  std::string(), encode_base16384(std::vector<std::uint8_t>{4, 0, 1})}) {
    EXPECT_FALSE(parse_reference_string(text, 100).ok());
  }
}

TEST(Speaker, ReferenceStringsComeBackInOrder) {
  std::vector<engine::CodeFrame> frames;
  for (std::uint16_t t = 0; t < 20; ++t)
    frames.push_back({t, static_cast<std::uint16_t>(100 + t), static_cast<std::uint16_t>(200 + t), 624});
  const auto parsed = parse_reference_string(format_reference_string(frames), 20);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(*parsed, frames);
}

TEST(Speaker, StatisticsMustFitTheModel) {
  const std::string four(encode_base16384(std::vector<std::uint8_t>(16)));
  EXPECT_TRUE(parse_speaker_statistics(four, 4).ok());
  EXPECT_FALSE(parse_speaker_statistics(four, 3).ok());
  EXPECT_FALSE(parse_speaker_statistics(four, 5).ok());
  EXPECT_FALSE(parse_speaker_statistics(encode_base16384(std::vector<std::uint8_t>(16, 0xFF)), 4).ok());  // NaN
}

TEST(Speaker, OneSeedIsOneVoice) {
  const SpeakerStatistics statistics{std::vector<float>(768, 2.0F), std::vector<float>(768, 1.0F)};
  const std::vector<float> a = random_speaker(statistics, 42);
  EXPECT_EQ(a, random_speaker(statistics, 42));
  EXPECT_NE(a, random_speaker(statistics, 43));
  for (const float value : a) EXPECT_EQ(value, static_cast<float>(c10::Half(value)));
}

TEST(Speaker, RandomSpeakersFollowTheStatistics) {
  const SpeakerStatistics statistics{std::vector<float>(4096, 2.0F), std::vector<float>(4096, 1.0F)};
  double sum = 0, squares = 0, count = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (const float value : random_speaker(statistics, seed)) {
      sum += value;
      squares += double{value} * value;
      ++count;
    }
  }
  const double mean = sum / count;
  EXPECT_NEAR(mean, 1.0, 0.05);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 2.0, 0.05);
}

}  // namespace
}  // namespace tts::model
