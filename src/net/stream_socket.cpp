#include "stream_socket.h"

#include <array>
#include <atomic>
#include <exception>
#include <utility>

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <spdlog/spdlog.h>

#include "tts/base/utf8.h"

namespace tts::net {
namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;
using Steady = std::chrono::steady_clock;
using stream::CloseCode;
using stream::Next;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::uint32_t kMissedPings = 2;
constexpr int kMostUnsent = 16 * 1024;  // bytes in the kernel that are not on the wire, so that a slow reader shows here
constexpr std::size_t kBufferKept = 1024;  // of a socket that waits for its next message

}  // namespace

// Many wakes between two looks are one.
struct StreamSocket::Waking {
  std::atomic<bool> posted{false};
  bool news = true;  // on the strand
};

StreamSocket::StreamSocket(std::shared_ptr<Wire> wire, Parts parts)
    : wire_(std::move(wire)),
      parts_(parts),
      waking_(std::make_shared<Waking>()),
      socket_(wire_->socket),
      buffer_(parts.options.max_message_bytes),
      slow_(wire_->strand),
      writer_ended_(wire_->strand, Steady::time_point::max()),
      ping_at_(Steady::now() + parts.options.ping_interval) {}

std::function<void()> StreamSocket::waker() const {
  return [wire = wire_, waking = waking_] {
    if (waking->posted.exchange(true)) return;
    asio::post(wire->strand, [wire, waking] {
      waking->posted = false;
      waking->news = true;
      wire->wake.cancel();
    });
  };
}

Awaitable<bool> StreamSocket::run(const UpgradeRequest& upgrade, const HeaderList& headers, std::unique_ptr<stream::Attachment> attachment) {
  attachment_ = std::move(attachment);
  socket_.set_option(websocket::stream_base::timeout{
      .handshake_timeout = parts_.options.close_timeout, .idle_timeout = websocket::stream_base::none(), .keep_alive_pings = false});
  socket_.set_option(websocket::stream_base::decorator([&](websocket::response_type& response) {
    for (const auto& [name, value] : headers) response.set(name, value);
  }));
  socket_.read_message_max(parts_.options.max_message_bytes);
  socket_.auto_fragment(false);
  socket_.control_callback([this](websocket::frame_type, boost::beast::string_view) { unanswered_ = 0; });
  if (const auto [error] = co_await socket_.async_accept(upgrade, kAwait); error) {
    attachment_->closed_by_client();  // it never had a session
    attachment_.reset();
    co_return false;
  }
  limit_unsent();
  asio::co_spawn(wire_->strand, write_items(), [this](const std::exception_ptr& failure) {
    if (failure) wire_->close();
    writing_ = false;
    writer_ended_.cancel();
  });
  co_await read_messages();
  reading_ = false;
  waker()();
  while (writing_) co_await writer_ended_.async_wait(kAwait);
  attachment_.reset();
  wire_->close();
  co_return true;
}

Awaitable<void> StreamSocket::read_messages() {
  for (;;) {
    const auto [error, count] = co_await socket_.async_read(buffer_, kAwait);
    unanswered_ = 0;
    if (error) {
      const auto code = socket_.reason().code;
      const bool by_client = error == websocket::error::closed && !closing_;
      if (by_client) attachment_->closed_by_client();
      parts_.metrics.socket_closed(closing_ ? "server" : by_client ? "client" : "broken");
      spdlog::debug("a socket ended: {} (code {})", error.message(), static_cast<unsigned>(code));
      break;
    }
    if (!socket_.got_text()) {
      co_await close(CloseCode::kUnsupportedData, "this server takes text messages only");
      break;
    }
    const auto data = buffer_.cdata();
    const std::string_view text(static_cast<const char*>(data.data()), data.size());
    // Beast looks at the bytes as they come, but not at a character that is still incomplete when an empty last fragment ends the message.
    if (find_invalid_utf8(text)) {
      co_await close(CloseCode::kInvalidText, "the message is not valid UTF-8");
      break;
    }
    auto message = parts_.api.parse(text);
    if (message.ok()) {
      attachment_->receive(std::move(message).value());
    } else {
      attachment_->refuse(message.error(), parts_.api.context_of(text));
    }
    buffer_.consume(buffer_.size());
    if (buffer_.capacity() > kBufferKept) buffer_.shrink_to_fit();
  }
}

Awaitable<void> StreamSocket::write_items() {
  while (reading_) {
    if (!co_await ping_if_due()) co_return wire_->close();
    waking_->news = false;
    Next next = attachment_->next(waiting_in_kernel());
    switch (next.kind) {
      case Next::Kind::kNothing: co_await wait_for_news(next.look_again_in); break;
      case Next::Kind::kClose: co_return co_await close(next.code, std::move(next.text));
      case Next::Kind::kMessage:
      case Next::Kind::kFrame:
        if (!co_await wait_until_writable()) co_return co_await close(CloseCode::kSlow, "nothing was read for too long; resume when you can");
        if (!co_await write(next)) co_return wire_->close();
        break;
    }
  }
}

Awaitable<bool> StreamSocket::write(Next& next) {
  const bool frame = next.kind == Next::Kind::kFrame;
  socket_.binary(frame);
  const std::array<asio::const_buffer, 2> buffers{frame ? asio::buffer(next.header) : asio::buffer(next.text),
                                                  asio::buffer(next.payload.data(), next.payload.size())};
  const auto [error, count] = co_await socket_.async_write(buffers, kAwait);
  co_return !error;
}

// So little may be unsent in the kernel that a write behind this always fits into the socket's buffer: a reader who has stopped never
// leaves us in the middle of a frame, and can still be told why.
Awaitable<bool> StreamSocket::wait_until_writable() {
  using namespace asio::experimental::awaitable_operators;
  pollfd now{.fd = wire_->socket.native_handle(), .events = POLLOUT, .revents = 0};
  if (::poll(&now, 1, 0) > 0) co_return true;
  slow_.expires_after(parts_.options.stall_timeout);
  const auto first = co_await (wire_->socket.async_wait(asio::ip::tcp::socket::wait_write, kAwait) || slow_.async_wait(kAwait));
  co_return first.index() == 0;
}

Awaitable<bool> StreamSocket::ping_if_due() {
  if (Steady::now() < ping_at_) co_return true;
  ping_at_ = Steady::now() + parts_.options.ping_interval;
  if (unanswered_++ >= kMissedPings) co_return false;
  const auto [error] = co_await socket_.async_ping({}, kAwait);
  co_return !error;
}

Awaitable<void> StreamSocket::wait_for_news(Duration look_again_in) {
  if (waking_->news || !reading_) co_return;
  const auto now = Steady::now();
  wire_->wake.expires_at(look_again_in < ping_at_ - now ? now + look_again_in : ping_at_);
  if (!waking_->news) co_await wire_->wake.async_wait(kAwait);
}

Awaitable<void> StreamSocket::close(CloseCode code, std::string reason) {
  if (std::exchange(closing_, true)) co_return;
  parts_.metrics.socket_close_sent(static_cast<std::uint16_t>(code));
  const websocket::close_reason why(static_cast<websocket::close_code>(code), reason);
  co_await socket_.async_close(why, kAwait);
}

std::size_t StreamSocket::waiting_in_kernel() const {
  int bytes = 0;
  return ::ioctl(wire_->socket.native_handle(), SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

void StreamSocket::limit_unsent() const {
  ::setsockopt(wire_->socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMostUnsent, sizeof(kMostUnsent));
}

}  // namespace tts::net
