#pragma once
// The HTTP front: a public listener for clients and an admin listener for probes and metrics, on N I/O threads.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tts/api/speech_api.h"
#include "tts/base/clock.h"
#include "tts/base/result.h"
#include "tts/net/http_options.h"
#include "tts/net/readiness.h"
#include "tts/observability/metrics.h"
#include "tts/stream/sessions.h"
#include "tts/synthesis/synthesis.h"

namespace tts::net {

struct ServerOptions {
  HttpOptions http;
  HttpOptions admin{.port = 9090, .max_connections = 64};
  StreamSocketOptions socket;
  stream::StreamOptions stream;
  std::uint32_t io_threads = 2;
};

// Thread-safe and never blocking; synthesis::Service::start is the one in production.
using StartSynthesis = stream::StartSynthesis;

struct ServerParts {  // references are not owned and must outlive stop()
  StartSynthesis start;
  const api::SpeechApi& api;
  Readiness& readiness;
  observability::Metrics& metrics;
  const Clock& clock;
};

class Server {
 public:
  // Binds both ports, so that an address in use is known at once; throws std::runtime_error naming it. Starts the I/O threads
  // and the admin listener; clients are refused by the kernel until open().
  Server(ServerParts parts, const ServerOptions& options);
  ~Server();  // stop()

  void open();  // starts the public listener

  std::uint16_t port() const noexcept;
  std::uint16_t admin_port() const noexcept;
  std::size_t connections() const;  // public ones

  // Stops listening to clients, closes idle connections, lets running requests finish for at most `grace`, then cuts the rest.
  // Blocks; returns whether everything finished by itself. The admin listener stays. cut() ends the wait from another thread.
  bool drain(std::chrono::milliseconds grace);
  void cut();

  // Cuts everything, admin included, and joins the threads. No Synthesis is left afterwards. Blocks shortly. Idempotent.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tts::net
