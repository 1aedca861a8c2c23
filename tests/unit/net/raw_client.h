#pragma once
// A client that sends exactly the bytes it is told to and reads what comes back, blocking.

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>
#include <sys/time.h>

namespace tts::net {

struct RawReply {
  int status = 0;  // 0 = the connection ended before a head
  std::string version;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool complete = false;  // the body ended as its framing says

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0) : socket_(context_) {
    const boost::asio::ip::tcp::endpoint endpoint(boost::asio::ip::address_v4::loopback(), port);
    socket_.open(endpoint.protocol());
    if (receive_buffer > 0) socket_.set_option(boost::asio::socket_base::receive_buffer_size(receive_buffer));
    const timeval hang{20, 0};
    setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &hang, sizeof hang);
    socket_.connect(endpoint);
  }

  bool send(std::string_view bytes) {  // false: reset. The server may have closed already; mostly what it said is what counts
    boost::system::error_code error;
    boost::asio::write(socket_, boost::asio::buffer(bytes.data(), bytes.size()), error);
    return !error;
  }
  void half_close() { socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send); }
  void close() { socket_.close(); }
  void reset() {  // RST instead of FIN
    socket_.set_option(boost::asio::socket_base::linger(true, 0));
    socket_.close();
  }

  bool at_end() {  // nothing more, and the server has closed
    return held_.empty() && !fill();
  }

  std::string read_head() {
    std::size_t end = 0;
    while ((end = held_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return {};
    }
    return take(end + 4);
  }

  // One chunk's data; empty at the last chunk; nullopt when the connection broke first.
  std::optional<std::string> read_chunk() {
    std::size_t end = 0;
    while ((end = held_.find("\r\n")) == std::string::npos) {
      if (!fill()) return std::nullopt;
    }
    std::size_t size = 0;
    std::from_chars(held_.data(), held_.data() + end, size, 16);
    take(end + 2);
    auto data = read_exactly(size + 2);
    if (!data) return std::nullopt;
    data->resize(size);
    return data;
  }

  std::optional<std::string> read_exactly(std::size_t count) {
    while (held_.size() < count) {
      if (!fill()) return std::nullopt;
    }
    return take(count);
  }

  std::string read_to_end() {
    while (fill()) {
    }
    return take(held_.size());
  }

  RawReply read_reply_head() {
    RawReply reply;
    auto head = read_head();
    if (head.empty()) return reply;
    std::size_t at = head.find("\r\n");
    reply.version = head.substr(0, 8);
    reply.status = std::stoi(head.substr(9, 3));
    for (at += 2; at + 2 < head.size();) {
      const auto end = head.find("\r\n", at);
      const auto colon = head.find(": ", at);
      auto name = head.substr(at, colon - at);
      for (auto& c : name) c = static_cast<char>(std::tolower(c));
      reply.headers[name] += (reply.headers.contains(name) ? " | " : "") + head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    return reply;
  }

  RawReply read_reply(bool head_only = false) {
    auto reply = read_reply_head();
    if (reply.status == 0 || head_only || reply.status == 204) {
      reply.complete = reply.status != 0;
    } else if (reply.headers.contains("content-length")) {
      auto body = read_exactly(std::stoul(reply.headers["content-length"]));
      reply.complete = body.has_value();
      if (body) reply.body = *body;
    } else if (reply.headers.contains("transfer-encoding")) {
      for (;;) {
        auto chunk = read_chunk();
        if (!chunk || chunk->empty()) {
          reply.complete = chunk.has_value();
          break;
        }
        reply.body += *chunk;
      }
    } else {
      reply.body = read_to_end();
      reply.complete = true;
    }
    return reply;
  }

 private:
  bool fill() {
    char bytes[4096];
    boost::system::error_code error;
    const auto count = socket_.read_some(boost::asio::buffer(bytes), error);
    held_.append(bytes, count);
    return !error && count > 0;
  }
  std::string take(std::size_t count) {
    auto taken = held_.substr(0, count);
    held_.erase(0, count);
    return taken;
  }

  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket socket_;
  std::string held_;
};

inline std::string get(std::string_view path, std::string_view more = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + std::string(more) + "\r\n";
}

inline std::string post(std::string_view path, std::string_view body, std::string_view more = "", std::string_view version = "HTTP/1.1") {
  return "POST " + std::string(path) + " " + std::string(version) + "\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + std::string(more) + "\r\n" + std::string(body);
}

}  // namespace tts::net
