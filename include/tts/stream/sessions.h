#pragma once
// Sessions of the WebSocket protocol (src/docs/websocket.md) without the socket: messages in, messages and frames out. A session outlives
// its socket for a while, so that another one can go on.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tts/api/stream_messages.h"
#include "tts/base/clock.h"
#include "tts/base/result.h"
#include "tts/observability/metrics.h"
#include "tts/synthesis/synthesis.h"

namespace tts::stream {

struct StreamOptions {
  std::uint32_t max_contexts = 8;                      // running in one session; beyond: error too_many_contexts
  std::uint32_t max_sockets_per_address = 1024;        // beyond: 429
  std::uint32_t max_wrong_messages = 32;               // of one socket; beyond: 4000
  std::size_t max_queued_bytes = 256 * 1024;           // of a session, not sent: at the cap its contexts pause
  std::chrono::milliseconds max_queued{5'000};         // audio, likewise
  std::size_t max_kept_bytes = 1024 * 1024;            // of a session: sent and not acknowledged; all there is once its socket is gone
  std::size_t max_kept_bytes_in_all = 256 * 1024 * 1024;  // of all sessions; beyond: the oldest without a socket end, those with one keep nothing
  std::uint32_t max_waiting_sessions = 4096;           // without a socket; beyond: the oldest end
  std::chrono::milliseconds resume{60'000};            // that a session without a socket is kept; 0 = not at all
  std::chrono::milliseconds realtime_lead{4'000};      // sent ahead of what can have been played, with pace "realtime"
  std::chrono::milliseconds drain_spread{5'000};       // over which idle sockets are closed when the server stops
};

// Close codes of RFC 6455, and of the range for applications.
enum class CloseCode : std::uint16_t {
  kNormal = 1000,
  kUnsupportedData = 1003,
  kInvalidText = 1007,
  kInternal = 1011,
  kRestart = 1012,
  kTryAgain = 1013,
  kTooManyErrors = 4000,
  kTakenOver = 4001,
  kSlow = 4008,
};

// What a socket should do next.
struct Next {
  enum class Kind : std::uint8_t { kNothing, kMessage, kFrame, kClose } kind = Kind::kNothing;
  std::string text;                                       // kMessage: JSON; kClose: the reason
  std::array<std::uint8_t, api::kFrameHeaderBytes> header{};  // kFrame, followed by
  std::span<const std::uint8_t> payload{};                // kept alive by
  std::shared_ptr<const resume::Packet> packet;
  CloseCode code = CloseCode::kNormal;
  Duration look_again_in = Duration::max();               // kNothing: though nobody woke
};

class Session;
class Sessions;

// A socket's hold on a session. Used on the socket's strand; may not outlive its Sessions. Its end without closed_by_client() is a broken
// link: the session waits to be resumed.
class Attachment {
 public:
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  void receive(api::StreamMessage message);
  void refuse(const Error& error, const std::string& context);  // of a message that could not be understood; context: that it names
  // waiting_in_kernel: bytes that were written and have not been acknowledged by the client's machine.
  Next next(std::size_t waiting_in_kernel);
  void closed_by_client();  // it ended the session

 private:
  friend class Sessions;
  Attachment(Sessions& sessions, std::string address, std::function<void()> wake);
  void resume(const api::StreamResume& message);
  void welcome(std::shared_ptr<Session> session, std::string token);

  Sessions& sessions_;
  const std::string address_;
  const std::function<void()> wake_;
  std::shared_ptr<Session> session_;
  std::uint64_t epoch_ = 0;
  bool first_message_ = true;
  bool told_draining_ = false;
  std::uint32_t wrong_messages_ = 0;
  std::vector<std::string> direct_;  // messages that are this socket's business only, in order
  std::size_t direct_sent_ = 0;
  double spread_ = 0;  // 0..1: when in the closing window
};

// Never blocking; see synthesis::Service::start.
using StartSynthesis = std::function<Result<std::unique_ptr<synthesis::Synthesis>>(synthesis::SynthesisRequest)>;

struct StreamParts {  // references are not owned and must outlive the sessions
  StartSynthesis start;
  const api::Catalog& catalog;
  const Clock& clock;
  observability::Metrics& metrics;
  // Runs something soon, on any thread but never inside the call.
  std::function<void(std::function<void()>)> post;
};

// Thread-safe.
class Sessions {
 public:
  Sessions(StreamParts parts, const StreamOptions& options);
  ~Sessions();  // ends all

  // wake: next() has something new; any thread, must only post. kQueueFull: too many sockets of this address.
  Result<std::unique_ptr<Attachment>> open(std::string address, std::function<void()> wake);

  void sweep();  // about once a second: ends what has waited too long or is too much

  // Contexts finish what they were given, no others begin, sockets close within drain_spread after their last context, all by the deadline.
  void drain(TimePoint deadline);

  std::size_t attached() const;
  std::size_t waiting() const;  // sessions without a socket

 private:
  friend class Attachment;
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tts::stream
