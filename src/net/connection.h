#pragma once
// One client connection as straight-line coroutine calls: read a request, answer it whole or as a stream, wait for audio.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>

#include "tts/net/http_options.h"
#include "tts/resume/stream_log.h"

#include "head_guard.h"
#include "wire.h"

namespace tts::net {

template <class T>
using Awaitable = boost::asio::awaitable<T>;

// The head of a request that asks for WebSocket.
using UpgradeRequest = boost::beast::http::request<boost::beast::http::empty_body>;

struct Request {
  std::string method, target, path, body;  // path = target without query
  std::string origin, host, request_id, if_none_match;  // the client's headers, as sent
  std::shared_ptr<const UpgradeRequest> upgrade;          // null = plain HTTP
  bool http10 = false;
  bool keep_alive = true;
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct ReplyHead {
  int status = 200;
  HeaderList headers;  // names and values are ours or checked: no line breaks
};

struct Closed {};  // the client left, fell silent, or the server is stopping

// Everything returns false once the peer is gone; calls after that are harmless. Not movable: coroutines point into it.
class Connection {
 public:
  Connection(std::shared_ptr<Wire> wire, const HttpOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The next request, what is wrong with it (answer and close), or the end. From its return until the reply has been sent the
  // client's leaving is noticed by wait_for().
  Awaitable<std::variant<Request, HeadProblem, Closed>> read_request();

  // A whole reply. `no_body` (HEAD): the length of the body is told, the body is not sent.
  Awaitable<bool> send(const ReplyHead& head, std::span<const std::uint8_t> body, bool no_body);

  // A reply of unknown length: chunked, or ended by closing for HTTP/1.0. The head leaves together with the first bytes.
  Awaitable<bool> begin_stream(const ReplyHead& head, std::span<const std::uint8_t> first);
  Awaitable<bool> write_stream(std::span<const std::uint8_t> bytes);
  Awaitable<bool> end_stream();

  // Returns when packet `seq` is there or the log has ended (true), or when the client has left, the server cuts, or the time
  // set by limit_waits() is over (false).
  Awaitable<bool> wait_for(resume::StreamLog& log, std::uint32_t seq);
  void limit_waits(std::chrono::milliseconds total);

  // Before another protocol takes the socket: reads no longer, keeps no buffer. false = something came that nobody has read.
  bool hand_over();

  // After the last reply: lets the client read it, then closes.
  Awaitable<void> close_gracefully();

  bool peer_gone() const noexcept { return peer_gone_; }
  std::uint64_t body_bytes_sent() const noexcept { return body_bytes_sent_; }
  bool must_close() const noexcept;  // no further request may follow
  Wire& wire() noexcept { return *wire_; }

 private:
  Awaitable<std::optional<HeadProblem>> read_head(std::string& head, bool& closed);
  Awaitable<bool> write(std::string_view prefix, std::span<const std::uint8_t> bytes, std::string_view suffix);
  std::string head_text(const ReplyHead& head, std::string_view framing) const;
  void watch_peer();
  void stop_watching();

  std::shared_ptr<Wire> wire_;
  const HttpOptions& options_;
  boost::beast::flat_buffer buffer_;
  bool first_request_ = true;
  bool http10_ = false;
  bool keep_alive_ = true;
  bool peer_gone_ = false;
  std::shared_ptr<bool> watching_;  // set to false when the present watch is over; null = none
  std::uint64_t body_bytes_sent_ = 0;
};

}  // namespace tts::net
