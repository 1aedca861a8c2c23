#include "validate.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tts::synthesis {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SynthesisRequest good() {
  SynthesisRequest request;
  request.text = "Hello.";
  return request;
}

std::optional<Error> refused(const SynthesisRequest& request, bool has_refine = false) { return refusal(request, {}, has_refine); }

TEST(ServiceOptionsCheck, DefaultsAreFine) { EXPECT_THAT(problems(ServiceOptions{}), IsEmpty()); }

TEST(ServiceOptionsCheck, EveryProblemIsListed) {
  ServiceOptions options;
  options.workers = 0;
  options.max_requests = 0;
  options.max_text_chars = 0;
  options.crossfade_ms = 501;
  options.opus_complexity = 11;
  options.max_audio_seconds = 0;
  options.max_ahead_seconds = 0;
  options.max_backlog_seconds = 0;
  options.log.high_water_bytes = 0;
  EXPECT_EQ(problems(options).size(), 10U);
}

TEST(Refusal, AGoodRequestPasses) { EXPECT_FALSE(refused(good()).has_value()); }

TEST(Refusal, TextMustBeThereAndValid) {
  auto request = good();
  for (const char* text : {"", " \n\t ", "\xC3\x28", "\xED\xA0\x80"}) {
    request.text = text;
    ASSERT_TRUE(refused(request).has_value()) << text;
    EXPECT_EQ(refused(request)->code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused(request)->param, "text");
  }
}

TEST(Refusal, TheLimitCountsCodePointsAndIsNamed) {
  auto request = good();
  request.text.clear();
  for (int i = 0; i < 4000; ++i) request.text += "\xE4\xBD\xA0";  // 你
  EXPECT_FALSE(refused(request).has_value());
  request.text += "x";
  EXPECT_EQ(refused(request)->code, ErrorCode::kTooLarge);
  EXPECT_THAT(refused(request)->message, HasSubstr("4000"));
}

TEST(Refusal, TextThatComesInPiecesComesLater) {
  auto request = good();
  request.incremental = true;
  EXPECT_EQ(refused(request)->param, "text");
  request.text.clear();
  EXPECT_FALSE(refused(request).has_value());
  request.whole = true;
  EXPECT_EQ(refused(request)->code, ErrorCode::kInvalidArgument);
}

TEST(Refusal, SpeedIsBounded) {
  auto request = good();
  for (const double speed : {0.49, 2.01, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    request.speed = speed;
    ASSERT_TRUE(refused(request).has_value()) << speed;
    EXPECT_EQ(refused(request)->param, "speed");
  }
  for (const double speed : {0.5, 2.0}) {
    request.speed = speed;
    EXPECT_FALSE(refused(request).has_value());
  }
}

TEST(Refusal, TheContainerMustTakeTheRate) {
  auto request = good();
  request.format = {.container = audio::Container::kOggOpus, .sample_rate = 44100, .bitrate = 0};
  EXPECT_EQ(refused(request)->param, "sample_rate");
  request.format.sample_rate = 48000;
  EXPECT_FALSE(refused(request).has_value());
}

TEST(Refusal, PacketsAreBounded) {
  auto request = good();
  request.packet = milliseconds(0);
  EXPECT_FALSE(refused(request)) << "as it is made";
  for (const auto packet : {milliseconds(9), milliseconds(10001), milliseconds(-5)}) {
    request.packet = packet;
    EXPECT_EQ(refused(request)->param, "packet");
  }
}

TEST(Refusal, RefineOnlyWhereTheModelHasIt) {
  auto request = good();
  request.refine.emplace();
  EXPECT_EQ(refused(request)->code, ErrorCode::kUnsupported);
  EXPECT_FALSE(refused(request, true).has_value());
}

}  // namespace
}  // namespace tts::synthesis
