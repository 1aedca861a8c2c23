#include "tts/observability/log.h"

#include <array>
#include <ctime>
#include <memory>
#include <stdexcept>

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "tts/base/utf8.h"

namespace tts::observability {
namespace {

constexpr std::array<std::string_view, 7> kLevels{"trace", "debug", "info", "warning", "error", "critical", "off"};

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const bool escape_high = find_invalid_utf8(text).has_value();
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte == 0x7F || (escape_high && byte >= 0x80)) {
      out += "\\u00";
      out.push_back(kDigits[byte >> 4U]);
      out.push_back(kDigits[byte & 15U]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

// A line break inside a message must not start a new record in the text format either.
void append_one_line(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out.push_back(' ');
    } else {
      out.push_back(c);
    }
  }
}

std::string utc(spdlog::log_clock::time_point time) {
  const auto since_epoch = time.time_since_epoch();
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count();
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                     parts.tm_min, parts.tm_sec, millis);
}

class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& record, spdlog::memory_buf_t& out) override {
    const auto level_name = spdlog::level::to_string_view(record.level);
    const std::string_view level(level_name.data(), level_name.size());
    const std::string_view message(record.payload.data(), record.payload.size());
    std::string line;
    if (format_ == LogFormat::kJson) {
      line = to_json_line(utc(record.time), level, message);
    } else {
      line = fmt::format("{} {:<8} ", utc(record.time), level);
      append_one_line(line, message);
    }
    line.push_back('\n');
    out.append(line.data(), line.data() + line.size());
  }

  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<LineFormatter>(format_); }

 private:
  LogFormat format_;
};

}  // namespace

bool is_log_level(std::string_view name) noexcept {
  for (const auto level : kLevels) {
    if (level == name) return true;
  }
  return false;
}

std::string to_json_line(std::string_view time_utc, std::string_view level, std::string_view message) {
  std::string line = "{\"time\":";
  append_json_string(line, time_utc);
  line += ",\"level\":";
  append_json_string(line, level);
  line += ",\"message\":";
  append_json_string(line, message);
  line.push_back('}');
  return line;
}

void configure_logging(const LogOptions& options) {
  if (!is_log_level(options.level)) {
    throw std::invalid_argument("log level '" + options.level + "' is none of trace, debug, info, warning, error, critical, off");
  }
  auto logger = std::make_shared<spdlog::logger>("tts", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::make_unique<LineFormatter>(options.format));
  logger->set_level(spdlog::level::from_str(options.level));
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace tts::observability
