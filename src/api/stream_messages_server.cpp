#include <algorithm>

#include <nlohmann/json.hpp>

#include "tts/api/stream_messages.h"

#include "error_text.h"
#include "stream_wire.h"

namespace tts::api {
namespace {

using nlohmann::ordered_json;

constexpr std::chrono::milliseconds kLeastAdvice{1'000};  // to those who are refused for load

ordered_json message(std::string_view type) { return {{"type", type}}; }

ordered_json about(std::string_view type, std::string_view context) { return {{"type", type}, {"context", context}}; }

std::chrono::milliseconds retry_after(const Error& error) {
  if (error.retry_after.count() > 0) return error.retry_after;
  const bool load = error.code == ErrorCode::kQueueFull || error.code == ErrorCode::kUnavailable;
  return load ? kLeastAdvice : std::chrono::milliseconds(0);
}

ordered_json going_on(std::string_view type, const std::string& session, std::uint64_t epoch, std::uint32_t from,
                      const std::vector<KnownContext>& contexts) {
  auto told = ordered_json::array();
  for (const auto& known : contexts) {
    told.push_back({{"context", known.context}, {"id", known.id}, {"characters", known.characters}, {"ended", known.ended}});
  }
  return {{"type", type}, {"session", session}, {"epoch", epoch}, {"from", from}, {"contexts", std::move(told)}};
}

}  // namespace

std::string ready_message(const ReadyMessage& ready) {
  return dump({{"type", "ready"},
               {"session", ready.session},
               {"resume_token", ready.resume_token},
               {"epoch", ready.epoch},
               {"server", ready.server},
               {"limits",
                {{"max_text_characters", ready.max_text_chars},
                 {"max_contexts", ready.max_contexts},
                 {"max_message_bytes", ready.max_message_bytes},
                 {"resume_ms", ready.resume_ms}}}});
}

std::string started_message(const StartedMessage& started) {
  const auto& format = stream_format(started.format.container);
  auto body = about("started", started.context);
  body["id"] = started.id;
  body["voice"] = started.voice;
  body["format"] = format.name;
  body["sample_rate"] = started.format.sample_rate;
  body["seed"] = started.seed;
  if (format.opus) {
    body["bitrate"] = started.bitrate;
    body["pre_skip"] = started.pre_skip;
  }
  return dump(body);
}

std::string sentence_message(std::string_view context, std::uint64_t index, std::uint64_t begin, std::uint64_t end,
                             std::uint64_t first_sample) {
  auto body = about("sentence", context);
  body["index"] = index;
  body["begin"] = begin;
  body["end"] = end;
  body["first_sample"] = first_sample;
  return dump(body);
}

std::string flushed_message(std::string_view context, std::uint64_t characters) {
  auto body = about("flushed", context);
  body["characters"] = characters;
  return dump(body);
}

std::string done_message(std::string_view context, std::uint64_t characters, std::uint64_t samples) {
  auto body = about("done", context);
  body["characters"] = characters;
  body["samples"] = samples;
  return dump(body);
}

std::string cancelled_message(std::string_view context, std::uint64_t characters, std::uint64_t samples) {
  auto body = about("cancelled", context);
  body["characters"] = characters;
  body["samples"] = samples;
  return dump(body);
}

std::string stream_error_message(const ErrorMessage& given) {
  const auto& error = given.error;
  auto body = message("error");
  body["code"] = given.code.empty() ? stream_error_code(error) : given.code;
  body["message"] = message_for_client(error, given.request_id);
  if (!given.context.empty()) {
    body["context"] = given.context;
    body["ended"] = given.ended;
  }
  if (!error.param.empty()) body["field"] = error.param;
  if (const auto wait = retry_after(error); wait.count() > 0) body["retry_after_ms"] = wait.count();
  return dump(body);
}

std::string resumed_message(const ResumedMessage& resumed) {
  return dump(going_on("resumed", resumed.session, resumed.epoch, resumed.from, resumed.contexts));
}

std::string resume_gap_message(const ResumeGapMessage& gap) {
  auto body = going_on("resume_gap", gap.session, gap.epoch, gap.from, gap.contexts);
  if (!gap.context.empty()) {
    body["context"] = gap.context;
    body["first_sample"] = gap.first_sample;
  }
  return dump(body);
}

std::string resume_unknown_message() { return dump(message("resume_unknown")); }
std::string resume_expired_message() { return dump(message("resume_expired")); }

std::string draining_message(std::uint64_t deadline_ms) {
  auto body = message("draining");
  body["deadline_ms"] = deadline_ms;
  return dump(body);
}

std::string_view stream_error_code(const Error& error) noexcept {
  const bool names_a_field = !error.param.empty() && error.param != "type";
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      if (error.param == "text") return stream_code::kNothingToSay;
      return names_a_field ? stream_code::kInvalidField : stream_code::kInvalidMessage;
    case ErrorCode::kUnsupported: return names_a_field ? stream_code::kInvalidField : stream_code::kInvalidMessage;
    case ErrorCode::kNotFound: return error.param == "context" ? stream_code::kUnknownContext : stream_code::kInvalidField;
    case ErrorCode::kTooLarge:
      if (error.param == "context") return stream_code::kTooManyContexts;
      return error.param.empty() ? stream_code::kInvalidMessage : stream_code::kTextTooLong;
    case ErrorCode::kQueueFull: return stream_code::kQueueFull;
    case ErrorCode::kUnavailable: return stream_code::kUnavailable;
    case ErrorCode::kDeadlineExceeded: return stream_code::kDeadlineExceeded;
    case ErrorCode::kEngineFailure: return stream_code::kEngineFailure;
    case ErrorCode::kCancelled:
    case ErrorCode::kInternal: return stream_code::kInternal;
  }
  return stream_code::kInternal;
}

std::string_view wrong_message_code(const Error& error) noexcept {
  if (error.param.empty() || error.param == "type") return stream_code::kInvalidMessage;
  return error.code == ErrorCode::kTooLarge ? stream_code::kTextTooLong : stream_code::kInvalidField;
}

void write_frame_header(const FrameHeader& header, std::span<std::uint8_t, kFrameHeaderBytes> out) noexcept {
  constexpr std::uint8_t kVersion = 1, kLast = 1;
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  };
  out[0] = kVersion;
  out[1] = header.last ? kLast : 0;
  put(2, header.context, 2);
  put(4, header.seq, 4);
  put(8, header.first_sample, 8);
}

}  // namespace tts::api
