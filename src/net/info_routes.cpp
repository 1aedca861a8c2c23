#include "info_routes.h"

#include <nlohmann/json.hpp>

namespace tts::net {
namespace {

constexpr std::string_view kJson = "application/json";

Route document(std::string_view path, std::string_view content_type, std::function<std::string_view()> body) {
  return {"GET", path, [content_type, body = std::move(body)](Exchange& exchange) { return exchange.reply(200, content_type, body()); }};
}

Awaitable<void> ready(const ServerParts& parts, Exchange& exchange) {
  const auto state = parts.readiness.check();
  parts.metrics.set_ready(state.ready);
  nlohmann::ordered_json document{{"ready", state.ready}};
  if (!state.ready) document["reason"] = state.reason;
  const auto body = document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  co_await exchange.reply(state.ready ? 200 : 503, kJson, body);
}

Awaitable<void> metrics(const ServerParts& parts, Exchange& exchange) {
  parts.metrics.set_ready(parts.readiness.check().ready);
  const auto body = parts.metrics.render();
  co_await exchange.reply(200, "text/plain; version=0.0.4; charset=utf-8", body);
}

}  // namespace

std::vector<Route> document_routes(const ServerParts& parts) {
  return {document("/v1/voices", kJson, [&parts] { return std::string_view(parts.api.voices_json()); }),
          document("/v1/models", kJson, [&parts] { return std::string_view(parts.api.models_json()); }),
          document("/openapi.json", kJson, [&parts] { return std::string_view(parts.api.openapi_json()); })};
}

std::vector<Route> admin_routes(const ServerParts& parts) {
  std::vector<Route> routes{
      document("/livez", kJson, [] { return std::string_view(R"({"live":true})"); }),  // an I/O thread answering is the proof
      {"GET", "/readyz", [&parts](Exchange& exchange) { return ready(parts, exchange); }},
      {"GET", "/metrics", [&parts](Exchange& exchange) { return metrics(parts, exchange); }}};
  for (auto& route : routes) route.probe = true;
  return routes;
}

}  // namespace tts::net
