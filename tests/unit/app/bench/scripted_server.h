#pragma once
// A server that answers every request with prepared bytes, each request with the next of the script.

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include "bench/http_client.h"

namespace tts::bench {

class ScriptedServer {
 public:
  // The last answer repeats. An empty answer: the connection stays open and nothing comes.
  explicit ScriptedServer(std::vector<std::string> answers) : answers_(std::move(answers)), thread_([this] { serve(); }) {}
  ~ScriptedServer() {
    stopping_ = true;
    boost::asio::io_context context;
    Tcp::socket wake(context);
    boost::system::error_code ignored;
    wake.connect(acceptor_.local_endpoint(), ignored);
    thread_.join();
  }

  Server address() const { return parse_server("http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port())); }

  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  // `chunks` as the body of a 200, as the server sends audio.
  static std::string chunked(const std::vector<std::string>& chunks, const std::string& headers = "X-Sample-Rate: 1000\r\n") {
    auto reply = "HTTP/1.1 200 OK\r\n" + headers + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    for (const auto& chunk : chunks) {
      char size[24];
      std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
      reply += size + chunk + "\r\n";
    }
    return reply + "0\r\n\r\n";
  }

 private:
  using Tcp = boost::asio::ip::tcp;

  void serve() {
    std::vector<Tcp::socket> silent;
    for (std::size_t index = 0;; ++index) {
      Tcp::socket socket(context_);
      acceptor_.accept(socket);
      if (stopping_) return;
      const auto& answer = answers_[std::min(index, answers_.size() - 1)];
      std::string request;
      boost::system::error_code error;
      boost::asio::read_until(socket, boost::asio::dynamic_buffer(request), "}", error);  // the bodies are flat JSON objects
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      if (answer.empty()) {
        silent.push_back(std::move(socket));
        continue;
      }
      boost::asio::write(socket, boost::asio::buffer(answer), error);
      socket.shutdown(Tcp::socket::shutdown_send, error);
    }
  }

  const std::vector<std::string> answers_;
  boost::asio::io_context context_;
  Tcp::acceptor acceptor_{context_, Tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace tts::bench
