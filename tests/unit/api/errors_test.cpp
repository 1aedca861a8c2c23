#include "tts/api/errors.h"

#include <array>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tts::api {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Error error(ErrorCode code, std::string message = "what", std::string param = "", int retry_ms = 0) {
  return {.code = code, .message = std::move(message), .param = std::move(param), .retry_after = std::chrono::milliseconds(retry_ms)};
}

TEST(Errors, EveryCodeHasItsStatus) {
  const std::array<std::pair<ErrorCode, int>, 10> table{{{ErrorCode::kInvalidArgument, 400},
                                                         {ErrorCode::kUnsupported, 400},
                                                         {ErrorCode::kNotFound, 404},
                                                         {ErrorCode::kTooLarge, 413},
                                                         {ErrorCode::kQueueFull, 429},
                                                         {ErrorCode::kCancelled, 499},
                                                         {ErrorCode::kEngineFailure, 500},
                                                         {ErrorCode::kInternal, 500},
                                                         {ErrorCode::kUnavailable, 503},
                                                         {ErrorCode::kDeadlineExceeded, 504}}};
  for (const auto& [code, status] : table) EXPECT_EQ(http_status(code), status) << to_string(code);
}

TEST(Errors, JsonHasTheFourKeys) {
  const auto parsed = json::parse(error_json(error(ErrorCode::kInvalidArgument, "bad", "speed"), "id1")).at("error");
  EXPECT_EQ(parsed, (json{{"message", "bad"}, {"type", "invalid_request_error"}, {"param", "speed"}, {"code", "invalid_argument"}}));
  EXPECT_TRUE(json::parse(error_json(error(ErrorCode::kQueueFull), "id1")).at("error").at("param").is_null());
}

TEST(Errors, OurOwnFailuresAreNotSpelledOut) {
  const auto text = error_json(error(ErrorCode::kInternal, "/etc/secret: 0x7fff"), "req-7");
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(text, HasSubstr("req-7"));
}

TEST(Errors, InvalidUtf8InAMessageStillMakesAReply) {
  EXPECT_NO_THROW(json::parse(error_json(error(ErrorCode::kInvalidArgument, "\xFF"), "id")));
}

TEST(Errors, RetryAfterRoundsUp) {
  EXPECT_EQ(retry_after_seconds(error(ErrorCode::kQueueFull, "", "", 0)), 1U);
  EXPECT_EQ(retry_after_seconds(error(ErrorCode::kQueueFull, "", "", 1001)), 2U);
  EXPECT_EQ(retry_after_seconds(error(ErrorCode::kUnavailable)), 1U);
  EXPECT_EQ(retry_after_seconds(error(ErrorCode::kInvalidArgument, "", "", 5000)), 0U);
}

TEST(Errors, ServerSentEvents) {
  EXPECT_EQ(sse_audio_delta("M"), "data: {\"type\":\"speech.audio.delta\",\"audio\":\"TQ==\"}\n\n");
  EXPECT_EQ(sse_audio_delta("Ma"), "data: {\"type\":\"speech.audio.delta\",\"audio\":\"TWE=\"}\n\n");
  EXPECT_EQ(sse_audio_delta("Man\xFF\x00"), "data: {\"type\":\"speech.audio.delta\",\"audio\":\"TWFu/w==\"}\n\n");
  EXPECT_EQ(sse_audio_done(3, 40),
            "data: {\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":3,\"output_tokens\":40,\"total_tokens\":43}}\n\n");
  const auto failed = sse_error(error(ErrorCode::kDeadlineExceeded, "late"), "id");
  EXPECT_THAT(failed, HasSubstr("\"type\":\"speech.audio.error\""));
  EXPECT_THAT(failed, HasSubstr("\"code\":\"deadline_exceeded\""));
}

}  // namespace
}  // namespace tts::api
