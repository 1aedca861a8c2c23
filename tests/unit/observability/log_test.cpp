#include "tts/observability/log.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace tts::observability {
namespace {

TEST(Log, JsonLineSurvivesHostileMessages) {
  const std::string hostile = "quote\" back\\slash\nnew line\x01\x7F 你好";
  const auto line = to_json_line("2026-01-02T03:04:05.006Z", "info", hostile);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  EXPECT_EQ(parsed.at("message").get<std::string>(), hostile);
  EXPECT_EQ(parsed.at("level"), "info");
  EXPECT_EQ(parsed.at("time"), "2026-01-02T03:04:05.006Z");
}

TEST(Log, InvalidUtf8StaysValidJson) {
  const auto parsed = nlohmann::json::parse(to_json_line("t", "info", "bad \xC3( byte"));
  EXPECT_EQ(parsed.at("message").get<std::string>(), "bad \u00C3( byte");
}

TEST(Log, RejectsUnknownLevels) {
  EXPECT_THROW(configure_logging({.level = "loud", .format = LogFormat::kText}), std::invalid_argument);
  EXPECT_TRUE(is_log_level("warning"));
  EXPECT_FALSE(is_log_level(""));
}

TEST(Log, OneRecordIsOneLine) {
  testing::internal::CaptureStderr();
  configure_logging({.level = "info", .format = LogFormat::kText});
  spdlog::debug("hidden");
  spdlog::warn("first\nsecond");
  spdlog::default_logger()->flush();
  const auto output = testing::internal::GetCapturedStderr();
  EXPECT_EQ(output.find("hidden"), std::string::npos);
  EXPECT_NE(output.find("warning  first\\nsecond\n"), std::string::npos);
}

}  // namespace
}  // namespace tts::observability
