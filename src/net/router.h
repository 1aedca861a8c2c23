#pragma once
// Which handler answers which method and path, and what every reply has in common.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tts/base/clock.h"
#include "tts/base/result.h"
#include "tts/observability/metrics.h"

#include "connection.h"

namespace tts::net {

// One request and the means to answer it. A handler answers exactly once: reply, reply_error, or a stream.
class Exchange {
 public:
  Exchange(Connection& link, const Request& asked, const HttpOptions& options) : connection(link), request(asked), options_(options) {}

  Awaitable<void> reply(int status, std::string_view content_type, std::string_view body, HeaderList headers = {});
  Awaitable<void> reply_error(const Error& error, HeaderList headers = {});

  // Sends head and first bytes; the rest goes through `connection`.
  Awaitable<bool> begin_stream(std::string_view content_type, HeaderList headers, std::span<const std::uint8_t> first);

  const HttpOptions& options() const noexcept { return options_; }

  Connection& connection;
  const Request& request;
  int status = 0;  // what was answered, 499 when the client left first; 0 = nothing yet

 private:
  HeaderList headers_with(std::string_view content_type, HeaderList more) const;
  bool head_only() const { return request.method == "HEAD"; }

  const HttpOptions& options_;
};

struct Route {
  std::string_view method, path;
  std::function<Awaitable<void>(Exchange&)> handler;
  bool probe = false;  // asked for by machines, again and again: logged at debug level
};

class Router {
 public:
  Router(std::vector<Route> routes, const HttpOptions& options, observability::Metrics& metrics, const Clock& clock);

  // Serves requests of one connection until either side ends it.
  Awaitable<void> serve(std::shared_ptr<Wire> wire) const;

 private:
  Awaitable<void> answer(Connection& connection, Request request) const;
  Awaitable<void> answer_problem(Connection& connection, const HeadProblem& problem) const;
  Awaitable<void> answer_unrouted(Exchange& exchange, const std::string& allowed) const;

  const std::vector<Route> routes_;
  const HttpOptions& options_;
  observability::Metrics& metrics_;
  const Clock& clock_;
};

}  // namespace tts::net
