#include "listener.h"

#include <array>
#include <cstddef>
#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <spdlog/spdlog.h>

namespace tts::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kAcceptPause{100};  // when the process is out of descriptors
constexpr std::size_t kMaxTurnedAway = 128;             // sockets that stay open so that a refusal can be read
constexpr std::size_t kTurnedAwayBytes = 1024 * 1024;   // read and discarded of each

std::string describe(const HttpOptions& options) { return options.host + ":" + std::to_string(options.port); }

}  // namespace

Listener::Listener(std::shared_ptr<asio::io_context> context, const HttpOptions& options, const Router& router,
                   observability::Metrics& metrics)
    : context_(std::move(context)), options_(options), router_(router), metrics_(metrics), acceptor_(asio::make_strand(*context_)) {
  error_code error;
  const auto address = asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error) throw std::runtime_error("'" + options.host + "' is not an IP address to listen on, nor localhost");
  const tcp::endpoint endpoint(address, options.port);
  acceptor_.open(endpoint.protocol());
  acceptor_.set_option(tcp::acceptor::reuse_address(true));
  if (options.reuse_port) acceptor_.set_option(asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>(true));
  acceptor_.bind(endpoint, error);
  if (error) throw std::runtime_error("cannot use " + describe(options) + ": " + error.message());
  port_ = acceptor_.local_endpoint().port();
}

void Listener::open() {
  error_code error;
  acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw std::runtime_error("cannot listen on " + describe(options_) + ": " + error.message());
  // The loop touches only members that outlive the context's threads, and ends when the acceptor is closed.
  asio::co_spawn(acceptor_.get_executor(), accept_loop(), asio::detached);
}

Awaitable<void> Listener::accept_loop() {
  while (acceptor_.is_open()) {
    const auto strand = asio::any_io_executor(asio::make_strand(*context_));
    auto [error, socket] = co_await acceptor_.async_accept(strand, kAwait);
    if (!error) {
      admit(std::move(socket));
    } else if (acceptor_.is_open()) {
      spdlog::warn("cannot accept a connection: {}", error.message());
      asio::steady_timer pause(acceptor_.get_executor(), kAcceptPause);
      co_await pause.async_wait(kAwait);
    }
  }
}

void Listener::admit(tcp::socket socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(options_.send_buffer_bytes), ignored);
  std::shared_ptr<Wire> wire;
  {
    const std::lock_guard lock(mutex_);
    if (!finishing_ && wires_.size() < options_.max_connections) {
      wire = std::make_shared<Wire>(context_, std::move(socket));
      wires_.insert(wire);
    }
  }
  if (!wire) {
    turn_away(std::move(socket));
    return;
  }
  metrics_.add_connections(1);
  asio::co_spawn(wire->strand, router_.serve(wire), [this, wire](std::exception_ptr failure) {
    if (failure) {
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& exception) {
        spdlog::error("a connection ended by an error: {}", exception.what());
      }
    }
    wire->close();
    forget(wire);
  });
}

void Listener::turn_away(tcp::socket socket) {
  constexpr std::string_view kBody =
      R"({"error":{"message":"too many connections","type":"server_error","param":null,"code":"unavailable"}})";
  const std::string reply =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: " +
      std::to_string(kBody.size()) + "\r\n\r\n" + std::string(kBody);
  metrics_.rejected("too_many_connections");
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(reply), ignored);  // an empty send buffer always holds this
  socket.shutdown(tcp::socket::shutdown_send, ignored);

  // Closed at once, the socket would answer the request still on its way by a reset, and clients report that instead of the refusal.
  auto wire = std::make_shared<Wire>(context_, std::move(socket));
  {
    const std::lock_guard lock(mutex_);
    if (cut_ || turned_away_.size() >= kMaxTurnedAway) return;
    turned_away_.insert(wire);
  }
  asio::co_spawn(wire->strand, discard_input(wire), [this, wire](const std::exception_ptr&) {
    wire->close();
    const std::lock_guard lock(mutex_);
    turned_away_.erase(wire);
  });
}

Awaitable<void> Listener::discard_input(std::shared_ptr<Wire> wire) const {
  wire->arm(options_.linger_timeout);
  std::array<std::byte, 4096> discarded;
  for (std::size_t total = 0; total < kTurnedAwayBytes;) {
    const auto [error, count] = co_await wire->socket.async_read_some(asio::buffer(discarded), kAwait);
    if (error) break;
    total += count;
  }
}

void Listener::forget(const std::shared_ptr<Wire>& wire) {
  metrics_.add_connections(-1);
  const std::lock_guard lock(mutex_);
  wires_.erase(wire);
  changed_.notify_all();
}

std::size_t Listener::connections() const {
  const std::lock_guard lock(mutex_);
  return wires_.size();
}

void Listener::stop_accepting() {
  std::promise<void> closed;
  asio::post(acceptor_.get_executor(), [this, &closed] {
    error_code ignored;
    acceptor_.close(ignored);
    closed.set_value();
  });
  closed.get_future().wait();
}

void Listener::finish_all() {
  const std::lock_guard lock(mutex_);
  finishing_ = true;
  for (const auto& wire : wires_) asio::post(wire->strand, [wire] { wire->finish(); });
}

void Listener::cut_all() {
  const std::lock_guard lock(mutex_);
  finishing_ = cut_ = true;
  for (const auto* wires : {&wires_, &turned_away_}) {
    for (const auto& wire : *wires) asio::post(wire->strand, [wire] { wire->close(); });
  }
  changed_.notify_all();
}

bool Listener::wait_until_empty(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return wires_.empty() || cut_; });
  return wires_.empty() && !cut_;
}

}  // namespace tts::net
