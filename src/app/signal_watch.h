#pragma once
// SIGINT and SIGTERM as calls on an ordinary thread.

#include <functional>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

namespace tts::app {

class SignalWatch {
 public:
  // `on_signal(n)` runs on the watch's thread for the n-th signal, counted from 1.
  explicit SignalWatch(std::function<void(int)> on_signal);
  ~SignalWatch();

 private:
  void wait();

  std::function<void(int)> on_signal_;
  int count_ = 0;
  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
  std::thread thread_;
};

}  // namespace tts::app
