#pragma once
// Messages of the WebSocket protocol (src/docs/websocket.md): JSON of clients to validated types, what the server says to JSON, and the
// header of binary frames. What clients send is hostile until it has passed here.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tts/api/catalog.h"
#include "tts/audio/format.h"
#include "tts/base/result.h"
#include "tts/synthesis/synthesis.h"

namespace tts::api {

inline constexpr std::size_t kMaxStreamMessageBytes = 64 * 1024;

// ---------------------------------------------------------------- from the client

struct StreamStart {
  std::string context;
  synthesis::SynthesisRequest request;  // complete but for request_id and deadline; incremental, without text
  bool adaptive_bitrate = false;        // bitrate "auto"; request.format.bitrate is then only the first
  bool timestamps = true;
  bool realtime = false;
};

struct StreamText {
  std::string context, text;  // empty text only with flush
  bool flush = false;
};

struct StreamFlush {
  std::string context;
};

struct StreamEnd {
  std::string context;
};

struct StreamCancel {
  std::string context;
  std::optional<std::uint64_t> samples;  // that the listener has heard
};

struct StreamUpdate {
  std::string context;
  synthesis::SpeechChange change;  // never without any
};

struct StreamAck {
  std::uint32_t seq = 0;
  std::optional<std::string> context;
  std::optional<std::uint32_t> buffered_ms;
};

struct StreamResume {
  std::string session, token;
  std::uint32_t seq = 0;
};

using StreamMessage =
    std::variant<StreamStart, StreamText, StreamFlush, StreamEnd, StreamCancel, StreamUpdate, StreamAck, StreamResume>;

// Immutable after construction, so every call is thread-safe.
class StreamApi {
 public:
  explicit StreamApi(const Catalog& catalog);
  ~StreamApi();

  // Error::param names the field ("type" for an unknown type); it is empty where the whole message is wrong. kInvalidArgument, or kTooLarge
  // for more text than may wait in a context.
  Result<StreamMessage> parse(std::string_view json) const;

  // The context that a message names which parse() refused, so that a client with several can tell which one it was; empty = it cannot be
  // told.
  std::string context_of(std::string_view json) const;

  // JSON Schema of the messages of both sides. That of the client's is generated from the tables that parse; src/docs/websocket.schema.json
  // holds the same bytes.
  const std::string& schema_json() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

// ---------------------------------------------------------------- from the server
// All of them give one JSON object.

struct ReadyMessage {
  std::string session, resume_token;
  std::uint64_t epoch = 1;
  std::string server;
  std::uint64_t max_contexts = 0, max_text_chars = 0;
  std::uint64_t max_message_bytes = kMaxStreamMessageBytes;
  std::uint64_t resume_ms = 0;  // that the session waits for another socket; 0 = it does not
};
std::string ready_message(const ReadyMessage& message);

struct StartedMessage {
  std::string context;
  std::uint16_t id = 0;
  std::string voice;
  audio::AudioFormat format;
  std::uint64_t seed = 0;
  std::uint32_t bitrate = 0, pre_skip = 0;  // Opus only
};
std::string started_message(const StartedMessage& message);

std::string sentence_message(std::string_view context, std::uint64_t index, std::uint64_t begin, std::uint64_t end,
                             std::uint64_t first_sample);
std::string flushed_message(std::string_view context, std::uint64_t characters);
std::string done_message(std::string_view context, std::uint64_t characters, std::uint64_t samples);
std::string cancelled_message(std::string_view context, std::uint64_t characters, std::uint64_t samples);

struct ErrorMessage {
  std::string_view code{};  // empty = stream_error_code(error)
  Error error;              // its causes are not told when they are ours: the log has them, under request_id
  std::string_view context{};
  bool ended = true;        // the context, if one is named
  std::string_view request_id{};
};
std::string stream_error_message(const ErrorMessage& message);

// What of a context has reached the server.
struct KnownContext {
  std::string context;
  std::uint16_t id = 0;
  std::uint64_t characters = 0;  // of its text
  bool ended = false;            // no more text can come
};

struct ResumedMessage {
  std::string session;
  std::uint64_t epoch = 1;
  std::uint32_t from = 0;
  std::vector<KnownContext> contexts{};
};
std::string resumed_message(const ResumedMessage& message);

struct ResumeGapMessage {
  std::string session;
  std::uint64_t epoch = 1;
  std::uint32_t from = 0;
  std::vector<KnownContext> contexts{};
  std::string context{};  // of the frame `from`; empty = that frame has not been made, or its context is not known any more
  std::uint64_t first_sample = 0;
};
std::string resume_gap_message(const ResumeGapMessage& message);

std::string resume_unknown_message();
std::string resume_expired_message();
std::string draining_message(std::uint64_t deadline_ms);

// The protocol's `code` of an error that ended a context or refused to begin one.
std::string_view stream_error_code(const Error& error) noexcept;
// The same of an error of StreamApi::parse: invalid_message, invalid_field or text_too_long.
std::string_view wrong_message_code(const Error& error) noexcept;

// ---------------------------------------------------------------- binary frames

struct FrameHeader {
  bool last = false;  // of its context
  std::uint16_t context = 0;
  std::uint32_t seq = 0;
  std::uint64_t first_sample = 0;
};
inline constexpr std::size_t kFrameHeaderBytes = 16;
void write_frame_header(const FrameHeader& header, std::span<std::uint8_t, kFrameHeaderBytes> out) noexcept;

}  // namespace tts::api
