#pragma once
// Limits of one listener and its connections.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tts::net {

struct HttpOptions {
  std::string host = "127.0.0.1";                    // address to listen on, or "localhost"; "0.0.0.0" or "::" = every interface
  std::uint16_t port = 8080;                         // 0 = any free one
  bool reuse_port = false;                           // other processes may listen on the same port; the kernel shares connections out
  std::size_t max_connections = 1024;                // beyond: 503 and close
  std::size_t max_header_bytes = 8 * 1024;           // request line and headers; beyond: 431
  std::size_t max_body_bytes = 256 * 1024;           // beyond: 413
  std::size_t max_body_chunks = 1024;                // of a chunked body; beyond: 400
  std::chrono::milliseconds header_timeout{10'000};  // from a request's first byte (a connection's start) to its last header
  std::chrono::milliseconds body_timeout{30'000};    // for the whole body
  std::chrono::milliseconds idle_timeout{60'000};    // between requests of one connection
  std::chrono::milliseconds write_timeout{30'000};   // for the next 64 KiB (or one packet) to leave
  std::chrono::milliseconds linger_timeout{2'000};   // for the client to read the last reply before the socket closes
  // The engine enforces a request's deadline; this much later the connection stops believing that it will and answers 504.
  std::chrono::milliseconds deadline_grace{5'000};
  int send_buffer_bytes = 64 * 1024;                 // SO_SNDBUF; small, so that a slow reader is noticed and pauses its synthesis
  std::string cors_origin{};                         // Access-Control-Allow-Origin: an origin or "*"; empty = no CORS headers
};

struct StreamSocketOptions {
  std::size_t max_message_bytes = 64 * 1024;         // of a client; beyond: closed with 1009
  std::chrono::milliseconds ping_interval{20'000};   // a client from which nothing comes for two of them is gone
  std::chrono::milliseconds stall_timeout{10'000};   // nothing leaves for so long: closed with 4008
  std::chrono::milliseconds close_timeout{5'000};    // for the opening handshake, and for the client to answer a closing one
  std::vector<std::string> allowed_origins{};        // of pages that may connect besides the server's own; "*" = all
};

}  // namespace tts::net
