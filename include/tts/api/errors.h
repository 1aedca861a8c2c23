#pragma once
// Errors as clients see them.

#include <cstdint>
#include <string>
#include <string_view>

#include "tts/base/result.h"

namespace tts::api {

// 400 invalid or unsupported, 404, 413, 429, 499 cancelled (never sent: nobody is there), 500, 503, 504.
int http_status(ErrorCode code) noexcept;

// {"error":{"message","type","param","code"}}. Messages of 500s are replaced by one that names the request id under which the
// log has the cause.
std::string error_json(const Error& error, std::string_view request_id);

// Seconds for Retry-After, rounded up; 0 = send none. 429 and 503 always advise at least one second.
std::uint32_t retry_after_seconds(const Error& error) noexcept;

// One server-sent event (OpenAI's stream_format "sse"), with its blank line.
std::string sse_audio_delta(std::string_view bytes);  // base64 inside
std::string sse_audio_done(std::uint64_t input_characters, std::uint64_t steps);
std::string sse_error(const Error& error, std::string_view request_id);

}  // namespace tts::api
