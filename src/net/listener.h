#pragma once
// Accepts connections on one port, up to a cap, and keeps track of every one of them until it has ended.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "tts/net/http_options.h"
#include "tts/observability/metrics.h"

#include "router.h"
#include "wire.h"

namespace tts::net {

class Listener {
 public:
  // Binds; throws std::runtime_error naming address and port. `options` and `router` must outlive the io_context's threads.
  Listener(std::shared_ptr<boost::asio::io_context> context, const HttpOptions& options, const Router& router,
           observability::Metrics& metrics);

  std::uint16_t port() const noexcept { return port_; }
  std::size_t connections() const;

  void open();            // listens and accepts; throws std::runtime_error
  void stop_accepting();  // any thread but an I/O thread; returns when the port is released

  // Any thread. finish: connections end after their present request. cut: they end now.
  void finish_all();
  void cut_all();

  // Blocks until no connection is left, cut_all() is called, or the time is over. Returns whether all ended by themselves.
  bool wait_until_empty(std::chrono::milliseconds most);

 private:
  Awaitable<void> accept_loop();
  void admit(boost::asio::ip::tcp::socket socket);
  void turn_away(boost::asio::ip::tcp::socket socket);
  Awaitable<void> discard_input(std::shared_ptr<Wire> wire) const;
  void forget(const std::shared_ptr<Wire>& wire);

  const std::shared_ptr<boost::asio::io_context> context_;
  const HttpOptions& options_;
  const Router& router_;
  observability::Metrics& metrics_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::shared_ptr<Wire>> wires_;
  std::set<std::shared_ptr<Wire>> turned_away_;  // refused, and read until the refusal has been taken
  bool finishing_ = false;
  bool cut_ = false;
};

}  // namespace tts::net
