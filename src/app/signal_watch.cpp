#include "signal_watch.h"

#include <csignal>
#include <utility>

namespace tts::app {

SignalWatch::SignalWatch(std::function<void(int)> on_signal) : on_signal_(std::move(on_signal)), signals_(context_, SIGINT, SIGTERM) {
  wait();
  thread_ = std::thread([this] { context_.run(); });
}

SignalWatch::~SignalWatch() {
  context_.stop();
  thread_.join();
}

void SignalWatch::wait() {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    on_signal_(++count_);
    wait();
  });
}

}  // namespace tts::app
