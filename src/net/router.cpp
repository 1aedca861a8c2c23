#include "router.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <spdlog/spdlog.h>

#include "tts/api/errors.h"
#include "tts/observability/request_id.h"

namespace tts::net {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kOtherRoute = "other";  // label of everything without a route: paths of strangers never become labels

std::span<const std::uint8_t> bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

bool matches(std::string_view route_method, std::string_view method) {
  return route_method == method || (route_method == "GET" && method == "HEAD");
}

}  // namespace

// `more` replaces what has the same name.
HeaderList Exchange::headers_with(std::string_view content_type, HeaderList more) const {
  HeaderList headers;
  if (!content_type.empty()) headers.emplace_back("Content-Type", content_type);
  headers.emplace_back("X-Request-Id", request.request_id);
  headers.emplace_back("Cache-Control", "no-store");
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (!options_.cors_origin.empty() && (options_.cors_origin == "*" || options_.cors_origin == request.origin)) {
    headers.emplace_back("Access-Control-Allow-Origin", options_.cors_origin);
    headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, X-Seed, X-Sample-Rate, X-Channels, X-Bit-Depth, Retry-After");
    if (options_.cors_origin != "*") headers.emplace_back("Vary", "Origin");
  }
  for (auto& header : more) {
    const auto same = std::find_if(headers.begin(), headers.end(), [&](const auto& common) { return common.first == header.first; });
    if (same == headers.end()) {
      headers.push_back(std::move(header));
    } else {
      *same = std::move(header);
    }
  }
  return headers;
}

Awaitable<void> Exchange::reply(int code, std::string_view content_type, std::string_view body, HeaderList headers) {
  const ReplyHead head{.status = code, .headers = headers_with(content_type, std::move(headers))};
  const bool sent = co_await connection.send(head, bytes_of(body), head_only());
  status = sent ? code : 499;
}

Awaitable<void> Exchange::reply_error(const Error& error, HeaderList headers) {
  const int code = api::http_status(error.code);
  if (code == 500) spdlog::error("request {}: {}: {}", request.request_id, to_string(error.code), error.message);
  if (const auto seconds = api::retry_after_seconds(error); seconds > 0) {
    headers.emplace_back("Retry-After", std::to_string(seconds));
    if (error.retry_after.count() > 0) headers.emplace_back("Retry-After-Ms", std::to_string(error.retry_after.count()));
  }
  const auto body = api::error_json(error, request.request_id);
  co_await reply(code, kJson, body, std::move(headers));
}

Awaitable<bool> Exchange::begin_stream(std::string_view content_type, HeaderList headers, std::span<const std::uint8_t> first) {
  const ReplyHead head{.status = 200, .headers = headers_with(content_type, std::move(headers))};
  const bool sent = co_await connection.begin_stream(head, first);
  status = sent ? 200 : 499;
  co_return sent;
}

Router::Router(std::vector<Route> routes, const HttpOptions& options, observability::Metrics& metrics, const Clock& clock)
    : routes_(std::move(routes)), options_(options), metrics_(metrics), clock_(clock) {}

Awaitable<void> Router::serve(std::shared_ptr<Wire> wire) const {
  Connection connection(std::move(wire), options_);
  for (;;) {
    auto incoming = co_await connection.read_request();
    if (std::holds_alternative<Closed>(incoming)) break;
    if (const auto* problem = std::get_if<HeadProblem>(&incoming)) {
      co_await answer_problem(connection, *problem);
    } else {
      co_await answer(connection, std::move(std::get<Request>(incoming)));
    }
    if (connection.must_close()) break;
    connection.wire().busy = false;
  }
  co_await connection.close_gracefully();
}

Awaitable<void> Router::answer_problem(Connection& connection, const HeadProblem& problem) const {
  metrics_.request_started(kOtherRoute);
  metrics_.rejected(problem.status == 413 ? "too_large" : "framing");
  Request request;
  request.request_id = observability::new_request_id();
  Exchange exchange(connection, request, options_);
  const Error error{.code = problem.status == 413 ? ErrorCode::kTooLarge : ErrorCode::kInvalidArgument,
                    .message = problem.message,
                    .param = {},
                    .retry_after = {}};
  const auto body = api::error_json(error, request.request_id);
  co_await exchange.reply(problem.status, kJson, body);
  metrics_.request_finished(kOtherRoute, exchange.status, std::chrono::duration<double>(0));
  spdlog::info("{} {} refused: {}", request.request_id, exchange.status, problem.message);
}

Awaitable<void> Router::answer(Connection& connection, Request request) const {
  const auto started = clock_.now();
  request.request_id = observability::choose_request_id(request.request_id);
  const Route* chosen = nullptr;
  std::string allowed;
  for (const auto& route : routes_) {
    if (route.path != request.path) continue;
    if (matches(route.method, request.method)) chosen = &route;
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  if (request.method == "OPTIONS" && request.path == "*") allowed = "GET, HEAD, POST";
  const auto label = allowed.empty() ? kOtherRoute : chosen != nullptr ? chosen->path : kOtherRoute;

  metrics_.request_started(label);
  Exchange exchange(connection, request, options_);
  std::optional<std::string> failure;
  try {
    if (chosen != nullptr) {
      co_await chosen->handler(exchange);
    } else {
      co_await answer_unrouted(exchange, allowed);
    }
  } catch (const std::exception& exception) {
    failure = exception.what();
  }
  if (failure) {
    if (exchange.status == 0) {
      const Error error{.code = ErrorCode::kInternal, .message = *failure, .param = {}, .retry_after = {}};
      co_await exchange.reply_error(error);
    } else {
      spdlog::error("request {}: {}", request.request_id, *failure);
      connection.wire().close();  // in the middle of a stream only a broken connection tells the truth
    }
  }
  const std::chrono::duration<double> took = clock_.now() - started;
  metrics_.request_finished(label, exchange.status, took);
  const auto level = chosen != nullptr && chosen->probe ? spdlog::level::debug : spdlog::level::info;
  spdlog::log(level, "{} {} {} {} {} bytes {:.0f} ms", request.request_id, chosen != nullptr ? chosen->method : "-", label, exchange.status,
              connection.body_bytes_sent(), took.count() * 1000);
}

Awaitable<void> Router::answer_unrouted(Exchange& exchange, const std::string& allowed) const {
  if (allowed.empty()) {
    const Error error{
        .code = ErrorCode::kNotFound, .message = "there is nothing here; GET / lists the endpoints", .param = {}, .retry_after = {}};
    co_await exchange.reply_error(error);
    co_return;
  }
  HeaderList headers{{"Allow", allowed + ", OPTIONS"}};
  if (exchange.request.method == "OPTIONS") {
    if (!options_.cors_origin.empty()) {
      headers.emplace_back("Access-Control-Allow-Methods", allowed);
      headers.emplace_back("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id");
      headers.emplace_back("Access-Control-Max-Age", "600");
    }
    co_await exchange.reply(204, {}, {}, std::move(headers));
    co_return;
  }
  const Error error{
      .code = ErrorCode::kInvalidArgument, .message = "this path answers " + allowed + " only", .param = {}, .retry_after = {}};
  const auto body = api::error_json(error, exchange.request.request_id);
  co_await exchange.reply(405, kJson, body, std::move(headers));
}

}  // namespace tts::net
