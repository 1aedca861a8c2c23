#include "validate.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "tts/base/utf8.h"

namespace tts::synthesis {
namespace {

constexpr std::chrono::milliseconds kShortestPacket{10};
constexpr std::chrono::milliseconds kLongestPacket{10000};
constexpr std::chrono::milliseconds kLongestBufferDelay{600000};

Error invalid(std::string param, std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), std::move(param), {}}; }

bool blank(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
}

std::optional<Error> refused_text(const std::string& text, const ServiceOptions& options) {
  if (find_invalid_utf8(text)) return invalid("text", "the text is not valid UTF-8");
  if (blank(text)) return invalid("text", "the text is empty");
  if (const auto length = count_code_points(text); length > options.max_text_chars) {
    return Error{ErrorCode::kTooLarge,
                 "the text has " + std::to_string(length) + " characters; the limit is " + std::to_string(options.max_text_chars),
                 "text",
                 {}};
  }
  return std::nullopt;
}

std::optional<Error> refused_increments(const SynthesisRequest& request) {
  if (!request.text.empty()) return invalid("text", "text that comes in pieces cannot come with the request too");
  if (request.whole) return invalid("text", "text that comes in pieces cannot make one whole file");
  if (request.max_buffer_delay.count() < 0 || request.max_buffer_delay > kLongestBufferDelay) {
    return invalid("max_buffer_delay", "text can wait for its sentence's end for 0 to 600000 ms, where 0 is for ever");
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> problems(const ServiceOptions& options) {
  std::vector<std::string> found;
  const auto require = [&](bool fine, const char* what) {
    if (!fine) found.emplace_back(what);
  };
  require(options.workers > 0, "workers must be at least 1");
  require(options.max_requests > 0, "max_requests must be at least 1");
  require(options.max_text_chars > 0, "max_text_chars must be at least 1");
  require(options.opus_complexity <= 10, "opus_complexity must be at most 10");
  require(options.crossfade_ms <= 500, "crossfade_ms must be at most 500");
  require(options.max_audio_seconds > 0, "max_audio_seconds must be at least 1");
  require(options.max_ahead_seconds > 0, "max_ahead_seconds must be at least 1");
  require(options.max_backlog_seconds > 0, "max_backlog_seconds must be at least 1");
  require(options.log.high_water_bytes > 0, "log.high_water_bytes must be at least 1");
  require(options.log.low_water_bytes <= options.log.high_water_bytes, "log.low_water_bytes must not exceed log.high_water_bytes");
  return found;
}

std::optional<Error> refused_speed(double speed) {
  if (std::isfinite(speed) && speed >= 0.5 && speed <= 2.0) return std::nullopt;
  return invalid("speed", "speed must be from 0.5 to 2.0");
}

std::optional<Error> refusal(const SynthesisRequest& request, const ServiceOptions& options, bool has_refine) {
  if (auto wrong = request.incremental ? refused_increments(request) : refused_text(request.text, options)) return wrong;
  if (auto wrong = refused_speed(request.speed)) return wrong;
  if (!audio::sample_rate_supported(request.format.container, request.format.sample_rate)) {
    return invalid("sample_rate", std::string(audio::to_string(request.format.container)) + " does not take a sample rate of " +
                                      std::to_string(request.format.sample_rate) + " Hz");
  }
  if (request.packet.count() != 0 && (request.packet < kShortestPacket || request.packet > kLongestPacket)) {
    return invalid("packet", "a packet must last from 10 ms to 10 s, or 0: as it is made");
  }
  if (request.refine && !has_refine) return Error{ErrorCode::kUnsupported, "this model has no refine pass", "refine", {}};
  return std::nullopt;
}

}  // namespace tts::synthesis
