#include "validate.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "tts/base/utf8.h"

namespace tts::synthesis {
namespace {

constexpr std::chrono::milliseconds kShortestPacket{10};
constexpr std::chrono::milliseconds kLongestPacket{10000};

Error invalid(std::string param, std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), std::move(param), {}}; }

bool blank(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
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

std::optional<Error> refusal(const SynthesisRequest& request, const ServiceOptions& options, bool has_refine) {
  if (find_invalid_utf8(request.text)) return invalid("text", "the text is not valid UTF-8");
  if (blank(request.text)) return invalid("text", "the text is empty");
  if (const auto length = count_code_points(request.text); length > options.max_text_chars) {
    return Error{ErrorCode::kTooLarge,
                 "the text has " + std::to_string(length) + " characters; the limit is " + std::to_string(options.max_text_chars),
                 "text",
                 {}};
  }
  if (!std::isfinite(request.speed) || request.speed < 0.5 || request.speed > 2.0) return invalid("speed", "speed must be from 0.5 to 2.0");
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
