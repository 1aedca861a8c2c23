#pragma once
// One WebSocket of the streaming protocol: frames and messages out of a session, messages into it, pings, slow readers, closing.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "tts/api/stream_messages.h"
#include "tts/net/http_options.h"
#include "tts/observability/metrics.h"
#include "tts/stream/sessions.h"

#include "connection.h"
#include "wire.h"

namespace tts::net {

// Runs on the wire's strand.
class StreamSocket {
 public:
  struct Parts {  // not owned
    const StreamSocketOptions& options;
    const api::StreamApi& api;
    stream::Sessions& sessions;
    observability::Metrics& metrics;
  };

  StreamSocket(std::shared_ptr<Wire> wire, Parts parts);

  // What next() of a session's attachment should call when there is something new.
  std::function<void()> waker() const;

  // Answers the upgrade and serves the socket until it has closed. false = the handshake failed. `headers` go into the answer.
  Awaitable<bool> run(const UpgradeRequest& upgrade, const HeaderList& headers, std::unique_ptr<stream::Attachment> attachment);

 private:
  using Socket = boost::beast::websocket::stream<boost::asio::ip::tcp::socket&, false>;

  struct Waking;

  Awaitable<void> read_messages();
  Awaitable<void> write_items();
  Awaitable<bool> write(stream::Next& next);
  Awaitable<bool> wait_until_writable();
  Awaitable<bool> ping_if_due();
  Awaitable<void> wait_for_news(Duration look_again_in);
  Awaitable<void> close(stream::CloseCode code, std::string reason);
  std::size_t waiting_in_kernel() const;
  void limit_unsent() const;

  const std::shared_ptr<Wire> wire_;
  const Parts parts_;
  const std::shared_ptr<Waking> waking_;
  Socket socket_;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer slow_, writer_ended_;
  std::unique_ptr<stream::Attachment> attachment_;
  std::chrono::steady_clock::time_point ping_at_;
  std::uint32_t unanswered_ = 0;  // pings since anything came
  bool reading_ = true, writing_ = true;
  bool closing_ = false;  // by us
};

}  // namespace tts::net
