#include "tts/api/errors.h"

#include <algorithm>
#include <array>

#include "error_text.h"

namespace tts::api {
namespace {

using nlohmann::ordered_json;

std::string_view type_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kTooLarge:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnsupported:
    case ErrorCode::kCancelled: return "invalid_request_error";
    case ErrorCode::kQueueFull: return "rate_limit_error";
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kEngineFailure:
    case ErrorCode::kInternal: return "server_error";
  }
  return "server_error";
}

ordered_json error_object(const Error& error, std::string_view request_id) {
  return {{"message", message_for_client(error, request_id)},
          {"type", type_of(error.code)},
          {"param", error.param.empty() ? ordered_json(nullptr) : ordered_json(error.param)},
          {"code", to_string(error.code)}};
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](std::size_t k) { return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U; };
    const unsigned group = (at(0) << 16U) | (at(1) << 8U) | at(2);
    const std::array<char, 4> four{kAlphabet[group >> 18U], kAlphabet[(group >> 12U) & 63U],
                                   i + 1 < bytes.size() ? kAlphabet[(group >> 6U) & 63U] : '=',
                                   i + 2 < bytes.size() ? kAlphabet[group & 63U] : '='};
    out.append(four.data(), four.size());
  }
  return out;
}

}  // namespace

int http_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported: return 400;
    case ErrorCode::kTooLarge: return 413;
    case ErrorCode::kNotFound: return 404;
    case ErrorCode::kQueueFull: return 429;
    case ErrorCode::kUnavailable: return 503;
    case ErrorCode::kDeadlineExceeded: return 504;
    case ErrorCode::kCancelled: return 499;
    case ErrorCode::kEngineFailure:
    case ErrorCode::kInternal: return 500;
  }
  return 500;
}

std::string message_for_client(const Error& error, std::string_view request_id) {
  if (http_status(error.code) != 500) return error.message;
  std::string text =
      error.code == ErrorCode::kEngineFailure ? "The speech engine failed on this request" : "The server failed on this request";
  text += "; the log has the cause";
  if (!request_id.empty()) text += " under request id " + std::string(request_id);
  return text + ".";
}

std::string dump(const ordered_json& document) { return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace); }

std::string error_json(const Error& error, std::string_view request_id) { return dump({{"error", error_object(error, request_id)}}); }

std::uint32_t retry_after_seconds(const Error& error) noexcept {
  if (error.code != ErrorCode::kQueueFull && error.code != ErrorCode::kUnavailable) return 0;
  const auto ms = std::max<std::int64_t>(error.retry_after.count(), 0);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>((ms + 999) / 1000, 1, 3600));
}

std::string sse_audio_delta(std::string_view bytes) {
  return "data: {\"type\":\"speech.audio.delta\",\"audio\":\"" + base64(bytes) + "\"}\n\n";
}

std::string sse_audio_done(std::uint64_t input_characters, std::uint64_t steps) {
  const ordered_json event{
      {"type", "speech.audio.done"},
      {"usage", {{"input_tokens", input_characters}, {"output_tokens", steps}, {"total_tokens", input_characters + steps}}}};
  return "data: " + event.dump() + "\n\n";
}

std::string sse_error(const Error& error, std::string_view request_id) {
  return "data: " + dump({{"type", "speech.audio.error"}, {"error", error_object(error, request_id)}}) + "\n\n";
}

}  // namespace tts::api
