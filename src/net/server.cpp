#include "tts/net/server.h"

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "info_routes.h"
#include "listener.h"
#include "page_routes.h"
#include "router.h"
#include "speech_routes.h"
#include "stream_route.h"

namespace tts::net {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kBetweenSweeps{1};

std::vector<Route> public_routes(const ServerParts& parts, const StreamSocket::Parts& stream) {
  auto routes = page_routes();
  for (auto& route : document_routes(parts)) routes.push_back(std::move(route));
  for (auto& route : speech_routes(parts)) routes.push_back(std::move(route));
  routes.push_back(stream_route(stream));
  return routes;
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerParts parts, const ServerOptions& options)
      : parts_(std::move(parts)),
        options_(options),
        context_(std::make_shared<asio::io_context>(static_cast<int>(options.io_threads))),
        work_(context_->get_executor()),
        stream_api_(parts_.api.catalog()),
        sessions_(std::in_place,
                  stream::StreamParts{.start = parts_.start,
                                      .catalog = parts_.api.catalog(),
                                      .clock = parts_.clock,
                                      .metrics = parts_.metrics,
                                      .post = [context = context_](std::function<void()> task) { asio::post(*context, std::move(task)); }},
                  options_.stream),
        stream_parts_{options_.socket, stream_api_, *sessions_, parts_.metrics},
        sweep_timer_(*context_),
        public_router_(public_routes(parts_, stream_parts_), options_.http, parts_.metrics, parts_.clock),
        admin_router_(admin_routes(parts_), options_.admin, parts_.metrics, parts_.clock),
        public_listener_(context_, options_.http, public_router_, parts_.metrics),
        admin_listener_(context_, options_.admin, admin_router_, parts_.metrics) {
    admin_listener_.open();
    sweep_later();
    for (std::uint32_t i = 0; i < options_.io_threads; ++i) threads_.emplace_back([context = context_] { context->run(); });
  }

  ~Impl() { stop(); }

  void stop() {
    if (threads_.empty()) return;
    public_listener_.stop_accepting();
    admin_listener_.stop_accepting();
    public_listener_.cut_all();
    admin_listener_.cut_all();
    asio::post(*context_, [this] {
      stopping_ = true;
      sweep_timer_.cancel();
    });
    work_.reset();
    for (auto& thread : threads_) thread.join();  // run() returns when the last coroutine and handler have ended
    threads_.clear();
    sessions_.reset();
  }

  bool drain(std::chrono::milliseconds grace) {
    parts_.readiness.set_draining();
    public_listener_.stop_accepting();
    sessions_->drain(parts_.clock.now() + grace);
    public_listener_.finish_all();
    const bool finished = public_listener_.wait_until_empty(grace);
    if (!finished) public_listener_.cut_all();
    return finished;
  }

  Listener& public_listener() noexcept { return public_listener_; }
  Listener& admin_listener() noexcept { return admin_listener_; }

 private:
  // One at a time, on whichever I/O thread is free.
  void sweep_later() {
    sweep_timer_.expires_after(kBetweenSweeps);
    sweep_timer_.async_wait([this](const boost::system::error_code& cancelled) {
      if (cancelled || stopping_) return;
      sessions_->sweep();
      sweep_later();
    });
  }

  const ServerParts parts_;
  const ServerOptions options_;
  const std::shared_ptr<asio::io_context> context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  const api::StreamApi stream_api_;
  std::optional<stream::Sessions> sessions_;
  const StreamSocket::Parts stream_parts_;
  asio::steady_timer sweep_timer_;
  std::atomic<bool> stopping_{false};
  const Router public_router_, admin_router_;
  Listener public_listener_, admin_listener_;
  std::vector<std::thread> threads_;
};

Server::Server(ServerParts parts, const ServerOptions& options) : impl_(std::make_unique<Impl>(std::move(parts), options)) {}
Server::~Server() = default;

void Server::open() { impl_->public_listener().open(); }
std::uint16_t Server::port() const noexcept { return impl_->public_listener().port(); }
std::uint16_t Server::admin_port() const noexcept { return impl_->admin_listener().port(); }
std::size_t Server::connections() const { return impl_->public_listener().connections(); }
bool Server::drain(std::chrono::milliseconds grace) { return impl_->drain(grace); }
void Server::cut() { impl_->public_listener().cut_all(); }
void Server::stop() { impl_->stop(); }

}  // namespace tts::net
