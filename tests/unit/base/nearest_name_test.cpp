#include "tts/base/nearest_name.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace tts {
namespace {

constexpr std::array<std::string_view, 4> kKnown{"text", "voice", "sample_rate", "port"};

TEST(NearestName, FindsTyposOnly) {
  EXPECT_EQ(nearest_name("txt", kKnown), "text");
  EXPECT_EQ(nearest_name("txet", kKnown), "text");
  EXPECT_EQ(nearest_name("samplerate", kKnown), "sample_rate");
  EXPECT_EQ(nearest_name("pört", kKnown), "");
  EXPECT_EQ(nearest_name("quality", kKnown), "");
  EXPECT_EQ(nearest_name("", kKnown), "");
}

TEST(NearestName, LongInputIsRefusedCheaply) { EXPECT_EQ(nearest_name(std::string(1'000'000, 'a'), kKnown), ""); }

TEST(NearestName, LongestAllowedInputWorks) {
  const std::string name(64, 'a');
  const std::array<std::string_view, 1> known{name};
  EXPECT_EQ(nearest_name(std::string(63, 'a') + "b", known), name);
}

}  // namespace
}  // namespace tts
