#include "connection.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

namespace tts::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kWriteSlice = 64 * 1024;
constexpr std::size_t kReadStep = 4 * 1024;
constexpr std::size_t kLingerBytes = 1024 * 1024;
constexpr int kMaxLeadingBreaks = 2;  // RFC 9112 2.2: an empty line before the request line is skipped

std::string_view view(const boost::beast::flat_buffer& buffer) { return {static_cast<const char*>(buffer.data().data()), buffer.size()}; }

std::string text(boost::beast::string_view value) { return {value.data(), value.size()}; }

std::string path_of(std::string_view target) {
  target = target.substr(0, target.find('?'));
  for (const std::string_view scheme : {"http://", "https://"}) {  // absolute form, as sent to proxies
    const auto start = target.substr(0, scheme.size());
    if (!boost::beast::iequals({start.data(), start.size()}, {scheme.data(), scheme.size()})) continue;
    const auto slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  return std::string(target);
}

HeadProblem body_problem(const error_code& error, const HttpOptions& options) {
  if (error == http::error::body_limit)
    return {.status = 413, .message = "the body exceeds " + std::to_string(options.max_body_bytes) + " bytes"};
  return {.status = 400, .message = "the body is malformed: " + error.message()};
}

}  // namespace

Connection::Connection(std::shared_ptr<Wire> wire, const HttpOptions& options)
    : wire_(std::move(wire)), options_(options), buffer_(options.max_header_bytes + kWriteSlice) {}

Connection::~Connection() {
  if (watching_) *watching_ = false;
}

bool Connection::must_close() const noexcept { return peer_gone_ || !keep_alive_ || wire_->finishing || !wire_->socket.is_open(); }

// Moves the raw head out of the buffer. The idle time runs until the first byte, the header time from there on.
Awaitable<std::optional<HeadProblem>> Connection::read_head(std::string& head, bool& closed) {
  wire_->arm(first_request_ ? options_.header_timeout : options_.idle_timeout);
  bool started = first_request_;
  int leading_breaks = 0;
  std::size_t searched = 0;
  for (;;) {
    while (leading_breaks < kMaxLeadingBreaks && view(buffer_).starts_with("\r\n")) {
      buffer_.consume(2);
      ++leading_breaks;
      searched = 0;
    }
    const auto received = view(buffer_);
    if (!started && !received.empty()) {
      started = true;
      wire_->arm(options_.header_timeout);
    }
    const auto end = received.find("\r\n\r\n", searched);
    if (end != std::string_view::npos && end + 4 <= options_.max_header_bytes) {
      head.assign(received.substr(0, end + 4));
      co_return std::nullopt;
    }
    if (received.size() >= options_.max_header_bytes) {
      co_return HeadProblem{.status = 431,
                            .message = "the request line and headers exceed " + std::to_string(options_.max_header_bytes) + " bytes"};
    }
    searched = received.size() < 3 ? 0 : received.size() - 3;
    const auto [error, count] = co_await wire_->socket.async_read_some(buffer_.prepare(kReadStep), kAwait);
    if (error) {
      closed = true;
      co_return std::nullopt;
    }
    buffer_.commit(count);
  }
}

Awaitable<std::variant<Request, HeadProblem, Closed>> Connection::read_request() {
  std::string head;
  bool closed = false;
  auto problem = co_await read_head(head, closed);
  first_request_ = false;
  body_bytes_sent_ = 0;
  http10_ = false;
  if (closed || !wire_->socket.is_open()) co_return Closed{};
  wire_->busy = true;
  keep_alive_ = false;  // until the request is known to be sound
  if (!problem) problem = find_head_problem(head);
  if (problem) co_return *problem;

  http::request_parser<http::string_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(options_.max_header_bytes, UINT32_MAX)));
  parser.body_limit(options_.max_body_bytes);
  std::size_t chunks = 0;
  auto count_chunk = [&chunks, this](std::uint64_t, boost::beast::string_view, error_code& error) {
    if (++chunks > options_.max_body_chunks) error = http::error::bad_chunk;
  };
  parser.on_chunk_header(count_chunk);

  error_code error;
  buffer_.consume(parser.put(buffer_.data(), error));
  if (error && error != http::error::need_more) co_return body_problem(error, options_);
  if (!parser.is_header_done()) co_return HeadProblem{.status = 400, .message = "the request head is malformed"};

  // Taken before the body: a chunked body may bring trailers, which must not change these.
  Request request;
  const auto& fields = parser.get();
  request.method = text(fields.method_string());
  request.target = text(fields.target());
  request.path = path_of(request.target);
  request.origin = text(fields[http::field::origin]);
  request.host = text(fields[http::field::host]);
  request.request_id = text(fields["x-request-id"]);
  request.if_none_match = text(fields[http::field::if_none_match]);
  if (boost::beast::websocket::is_upgrade(fields)) {
    auto upgrade = std::make_shared<UpgradeRequest>();
    upgrade->base() = fields.base();
    request.upgrade = std::move(upgrade);
  }
  request.http10 = http10_ = fields.version() == 10;
  request.keep_alive = !request.http10 && fields.keep_alive();
  const auto expect = text(fields[http::field::expect]);

  wire_->arm(options_.body_timeout);
  if (!expect.empty() && !request.http10) {
    if (!boost::beast::iequals(expect, "100-continue"))
      co_return HeadProblem{.status = 417, .message = "the only expectation met is 100-continue"};
    if (!parser.is_done() && buffer_.size() == 0 && !co_await write("HTTP/1.1 100 Continue\r\n\r\n", {}, {})) co_return Closed{};
    wire_->arm(options_.body_timeout);
  }
  if (!parser.is_done()) {
    const auto [body_error, count] = co_await http::async_read(wire_->socket, buffer_, parser, kAwait);
    if (body_error == asio::error::operation_aborted || !wire_->socket.is_open()) co_return Closed{};
    if (body_error == http::error::end_of_stream || body_error == http::error::partial_message || body_error == asio::error::eof)
      co_return Closed{};
    if (body_error) co_return body_problem(body_error, options_);
  }
  wire_->disarm();
  request.body = std::move(parser.get().body());
  keep_alive_ = request.keep_alive;
  watch_peer();
  co_return request;
}

std::string Connection::head_text(const ReplyHead& head, std::string_view framing) const {
  std::string out = http10_ ? "HTTP/1.0 " : "HTTP/1.1 ";
  out += std::to_string(head.status);
  out += ' ';
  out += text(http::obsolete_reason(static_cast<http::status>(head.status)));
  out += "\r\n";
  for (const auto& [name, value] : head.headers) {
    out += name;
    out += ": ";
    out += value;
    out += "\r\n";
  }
  out += must_close() ? "Connection: close\r\n" : "";
  out += framing;
  out += "\r\n";
  return out;
}

// Each slice has the write time to itself: a slow reader that reads is not cut.
Awaitable<bool> Connection::write(std::string_view prefix, std::span<const std::uint8_t> bytes, std::string_view suffix) {
  do {
    const auto slice = bytes.first(std::min(bytes.size(), kWriteSlice));
    bytes = bytes.subspan(slice.size());
    const std::array<asio::const_buffer, 3> buffers{asio::buffer(prefix.data(), prefix.size()), asio::buffer(slice.data(), slice.size()),
                                                    asio::buffer(suffix.data(), bytes.empty() ? suffix.size() : 0)};
    prefix = {};
    if (!wire_->socket.is_open()) {
      peer_gone_ = true;
      co_return false;
    }
    wire_->arm(options_.write_timeout);
    const auto [error, count] = co_await asio::async_write(wire_->socket, buffers, kAwait);
    wire_->disarm();
    if (error) {
      peer_gone_ = true;
      co_return false;
    }
  } while (!bytes.empty());
  co_return true;
}

Awaitable<bool> Connection::send(const ReplyHead& head, std::span<const std::uint8_t> body, bool no_body) {
  const bool has_length = head.status != 204 && head.status != 304;
  const auto text = head_text(head, has_length ? "Content-Length: " + std::to_string(body.size()) + "\r\n" : std::string());
  if (no_body) body = {};
  body_bytes_sent_ += body.size();
  const bool sent = co_await write(text, body, {});
  stop_watching();
  co_return sent;
}

Awaitable<bool> Connection::begin_stream(const ReplyHead& head, std::span<const std::uint8_t> first) {
  if (http10_) keep_alive_ = false;
  auto prefix = head_text(head, http10_ ? "" : "Transfer-Encoding: chunked\r\n");
  std::string_view suffix;
  if (!http10_ && !first.empty()) {
    std::array<char, 16> size{};
    const auto length = std::snprintf(size.data(), size.size(), "%zx\r\n", first.size());
    prefix.append(size.data(), static_cast<std::size_t>(length));
    suffix = "\r\n";
  }
  body_bytes_sent_ += first.size();
  co_return co_await write(prefix, first, suffix);
}

Awaitable<bool> Connection::write_stream(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) co_return !peer_gone_;
  body_bytes_sent_ += bytes.size();
  if (http10_) co_return co_await write({}, bytes, {});
  std::array<char, 16> size{};
  const auto length = std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  const std::string_view prefix(size.data(), static_cast<std::size_t>(length));
  co_return co_await write(prefix, bytes, "\r\n");
}

Awaitable<bool> Connection::end_stream() {
  const bool sent = http10_ ? !peer_gone_ : co_await write("0\r\n\r\n", {}, {});
  stop_watching();
  co_return sent;
}

void Connection::limit_waits(std::chrono::milliseconds total) { wire_->wake.expires_after(total); }

Awaitable<bool> Connection::wait_for(resume::StreamLog& log, std::uint32_t seq) {
  // The log calls back on the thread that makes packets; only a flag on our strand may follow from it.
  const auto there = std::make_shared<bool>(false);
  log.notify_when(seq, [wire = wire_, there] {
    asio::post(wire->strand, [wire, there] {
      *there = true;
      wire->wake.cancel();
    });
  });
  while (!*there) {
    if (peer_gone_ || !wire_->socket.is_open()) {
      peer_gone_ = true;
      co_return false;
    }
    const auto [error] = co_await wire_->wake.async_wait(kAwait);
    if (!error) co_return false;
  }
  co_return true;
}

// While a reply is made nothing is read, so the client's leaving shows only as readability followed by end-of-file. Bytes of a
// pipelined request are kept, within the buffer's limit; when it is full, only failing writes tell.
void Connection::watch_peer() {
  watching_ = std::make_shared<bool>(true);
  struct Watch {
    std::shared_ptr<Wire> wire;
    std::shared_ptr<bool> alive;
    Connection* connection;  // valid while *alive

    void operator()(error_code error) {
      if (error || !*alive) return;
      auto& self = *connection;
      const auto room = std::min(kReadStep, self.buffer_.max_size() - self.buffer_.size());
      if (room == 0) return;
      error_code read_error;
      wire->socket.non_blocking(true, read_error);
      const auto count = wire->socket.read_some(self.buffer_.prepare(room), read_error);
      if (!read_error) {
        self.buffer_.commit(count);
      } else if (read_error != asio::error::would_block && read_error != asio::error::try_again) {
        self.peer_gone_ = true;
        wire->close();
        return;
      }
      wire->socket.async_wait(asio::ip::tcp::socket::wait_read, std::move(*this));
    }
  };
  wire_->socket.async_wait(asio::ip::tcp::socket::wait_read, Watch{wire_, watching_, this});
}

void Connection::stop_watching() {
  if (!watching_) return;
  *watching_ = false;
  watching_.reset();
  error_code ignored;
  wire_->socket.cancel(ignored);  // nothing else is pending between two requests
}

bool Connection::hand_over() {
  stop_watching();
  if (buffer_.size() > 0) return false;
  buffer_.shrink_to_fit();
  return true;
}

Awaitable<void> Connection::close_gracefully() {
  stop_watching();
  error_code error;
  wire_->socket.shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (!error) {
    // Closing with unread input would reset the connection, and the reset can overtake the reply.
    wire_->arm(options_.linger_timeout);
    std::array<std::uint8_t, kReadStep> discarded;
    for (std::size_t total = 0; total < kLingerBytes;) {
      const auto [read_error, count] = co_await wire_->socket.async_read_some(asio::buffer(discarded), kAwait);
      if (read_error) break;
      total += count;
    }
  }
  wire_->close();
}

}  // namespace tts::net
