#include "stream_route.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

namespace tts::net {
namespace {

namespace http = boost::beast::http;

constexpr std::string_view kProtocol = "tts.v1";

// An origin's host and port, which a page of this very server has in common with the Host header.
std::string_view authority(std::string_view origin) {
  const auto scheme = origin.find("://");
  return scheme == std::string_view::npos ? std::string_view() : origin.substr(scheme + 3);
}

bool origin_allowed(const Request& request, const StreamSocketOptions& options) {
  if (request.origin.empty()) return true;  // no browser
  for (const auto& allowed : options.allowed_origins) {
    if (allowed == "*" || boost::beast::iequals(allowed, request.origin)) return true;
  }
  return boost::beast::iequals(authority(request.origin), request.host);
}

struct Protocols {
  bool offered = false, ours = false;
};

Protocols protocols_of(const UpgradeRequest& upgrade) {
  Protocols protocols;
  for (const auto& field : upgrade) {
    if (field.name() != http::field::sec_websocket_protocol) continue;
    for (const auto& token : http::token_list(field.value())) {
      protocols.offered = true;
      protocols.ours |= token == boost::beast::string_view(kProtocol.data(), kProtocol.size());
    }
  }
  return protocols;
}

// 16 bytes in base64 (RFC 6455 4.1). Nothing depends on them, but whoever sends something else does not speak WebSocket.
bool is_key(boost::beast::string_view key) {
  constexpr std::size_t kLength = 24;
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return key.size() == kLength && key.ends_with("==") &&
         std::string_view(key.data(), kLength - 2).find_first_not_of(kDigits) == std::string_view::npos;
}

Error wrong(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message), {}, {}}; }

Awaitable<void> open(const StreamSocket::Parts& parts, Exchange& exchange) {
  const auto& request = exchange.request;
  if (!request.upgrade || request.method != "GET") {
    HeaderList headers;
    headers.emplace_back("Upgrade", "websocket");
    co_await exchange.reply_error(wrong("this is a WebSocket; connect with one (ws://.../v1/stream, subprotocol tts.v1)"), std::move(headers));
    co_return;
  }
  if (!is_key((*request.upgrade)[http::field::sec_websocket_key])) {
    co_await exchange.reply_error(wrong("Sec-WebSocket-Key must be 16 bytes in base64"));
    co_return;
  }
  const auto protocols = protocols_of(*request.upgrade);
  if (protocols.offered && !protocols.ours) {
    co_await exchange.reply_error(wrong("this server speaks the subprotocol tts.v1 only"));
    co_return;
  }
  if (!origin_allowed(request, parts.options)) {
    parts.metrics.rejected("origin");
    const std::string body =
        R"x({"error":{"message":"this origin may not connect; the operator can allow it (stream.allowed_origins)","type":"invalid_request_error","param":null,"code":"forbidden_origin"}})x";
    co_await exchange.reply(403, "application/json", body);
    co_return;
  }
  if (!exchange.connection.hand_over()) {
    co_await exchange.reply_error(wrong("nothing may follow the request before it has been answered"));
    co_return;
  }
  auto& wire = exchange.connection.wire();
  StreamSocket socket(wire.shared_from_this(), parts);
  boost::system::error_code gone;
  const auto address = wire.socket.remote_endpoint(gone).address().to_string();
  auto attachment = parts.sessions.open(address, socket.waker());
  if (!attachment.ok()) {
    co_await exchange.reply_error(attachment.error());
    co_return;
  }
  HeaderList headers;
  headers.emplace_back("X-Request-Id", request.request_id);
  if (protocols.ours) headers.emplace_back("Sec-WebSocket-Protocol", kProtocol);
  exchange.status = 101;
  if (!co_await socket.run(*request.upgrade, headers, std::move(attachment).value())) exchange.status = 400;
  wire.close();
}

}  // namespace

Route stream_route(const StreamSocket::Parts& parts) {
  return {"GET", "/v1/stream", [&parts](Exchange& exchange) { return open(parts, exchange); }};
}

}  // namespace tts::net
