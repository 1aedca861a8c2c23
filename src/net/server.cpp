#include "tts/net/server.h"

#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "info_routes.h"
#include "listener.h"
#include "page_routes.h"
#include "router.h"
#include "speech_routes.h"

namespace tts::net {
namespace {

namespace asio = boost::asio;

std::vector<Route> public_routes(const ServerParts& parts) {
  auto routes = page_routes();
  for (auto& route : document_routes(parts)) routes.push_back(std::move(route));
  for (auto& route : speech_routes(parts)) routes.push_back(std::move(route));
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
        public_router_(public_routes(parts_), options_.http, parts_.metrics, parts_.clock),
        admin_router_(admin_routes(parts_), options_.admin, parts_.metrics, parts_.clock),
        public_listener_(context_, options_.http, public_router_, parts_.metrics),
        admin_listener_(context_, options_.admin, admin_router_, parts_.metrics) {
    admin_listener_.open();
    for (std::uint32_t i = 0; i < options_.io_threads; ++i) threads_.emplace_back([context = context_] { context->run(); });
  }

  ~Impl() { stop(); }

  void stop() {
    if (threads_.empty()) return;
    public_listener_.stop_accepting();
    admin_listener_.stop_accepting();
    public_listener_.cut_all();
    admin_listener_.cut_all();
    work_.reset();
    for (auto& thread : threads_) thread.join();  // run() returns when the last coroutine and handler have ended
    threads_.clear();
  }

  bool drain(std::chrono::milliseconds grace) {
    parts_.readiness.set_draining();
    public_listener_.stop_accepting();
    public_listener_.finish_all();
    const bool finished = public_listener_.wait_until_empty(grace);
    if (!finished) public_listener_.cut_all();
    return finished;
  }

  Listener& public_listener() noexcept { return public_listener_; }
  Listener& admin_listener() noexcept { return admin_listener_; }

 private:
  const ServerParts parts_;
  const ServerOptions options_;
  const std::shared_ptr<asio::io_context> context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
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
