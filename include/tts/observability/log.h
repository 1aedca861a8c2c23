#pragma once
// Where log lines go and what they look like. Modules log through spdlog's default logger; this sets it up once at start.
// The text of requests is never logged above debug level.

#include <string>
#include <string_view>

namespace tts::observability {

enum class LogFormat { kText, kJson };

struct LogOptions {
  std::string level = "info";  // trace, debug, info, warning, error, critical, off
  LogFormat format = LogFormat::kText;
};

// Replaces the process's default logger: one line a record to standard error. Throws std::invalid_argument for an unknown level.
void configure_logging(const LogOptions& options);

bool is_log_level(std::string_view name) noexcept;

// One record as a JSON object on one line: {"time","level","message"}. Invalid UTF-8 and control characters in the message are
// escaped, so a hostile value can neither break the line nor forge another one.
std::string to_json_line(std::string_view time_utc, std::string_view level, std::string_view message);

}  // namespace tts::observability
