#pragma once
// Just enough HTTP/1.1 to ask a server for speech and to see each byte when it comes.

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tts::bench {

struct Server {
  std::string url;   // as given, for messages
  std::string host;  // for the Host header, port included
  boost::asio::ip::tcp::endpoint endpoint;
};

// "http://host[:port]", a path is not allowed. Resolves the name, which may block. Throws std::runtime_error.
Server parse_server(std::string_view url);

// Blocks. The body of a 200; throws std::runtime_error saying what came instead.
std::string get(const Server& server, const std::string& path);

struct ReplyHead {
  int status = 0;
  std::uint32_t sample_rate = 0;  // X-Sample-Rate; 0 = absent
  double retry_after = 0;         // seconds; 0 = absent
};

class ReplySink {
 public:
  virtual ~ReplySink() = default;
  virtual void head(const ReplyHead& head) = 0;
  virtual void body(std::span<const std::uint8_t> bytes) = 0;  // as soon as they come; never empty
};

// A connection of its own, one request, and the reply into `sink`. Throws boost::system::system_error when the connection or the reply
// breaks, or when nothing comes for `patience`; what the sink throws passes through. The arguments must live until it is done.
boost::asio::awaitable<void> post(const Server& server, const std::string& path, std::string body, std::chrono::milliseconds patience,
                                  ReplySink& sink);

}  // namespace tts::bench
