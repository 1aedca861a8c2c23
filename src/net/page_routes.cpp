#include "page_routes.h"

namespace tts::net {
namespace {

// Everything comes from here and nothing else is allowed: no inline scripts or styles, no foreign hosts, no frames around it.
constexpr std::string_view kContentSecurityPolicy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

Awaitable<void> send_file(const PageFile& file, Exchange& exchange) {
  HeaderList headers{{"Cache-Control", "no-cache"}, {"ETag", std::string(file.etag)}};
  if (is_still_fresh(exchange.request.if_none_match, file.etag)) {
    co_await exchange.reply(304, {}, {}, std::move(headers));
    co_return;
  }
  headers.emplace_back("Content-Security-Policy", kContentSecurityPolicy);
  headers.emplace_back("Referrer-Policy", "no-referrer");
  co_await exchange.reply(200, file.content_type, file.bytes, std::move(headers));
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

bool is_still_fresh(std::string_view if_none_match, std::string_view etag) {
  while (!if_none_match.empty()) {
    const auto comma = if_none_match.find(',');  // our tags hold none
    auto tag = trimmed(if_none_match.substr(0, comma));
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag || tag == "*") return true;
    if_none_match.remove_prefix(comma == std::string_view::npos ? if_none_match.size() : comma + 1);
  }
  return false;
}

std::vector<Route> page_routes() {
  std::vector<Route> routes;
  for (const auto& file : page_files()) {
    routes.push_back({"GET", file.path, [&file](Exchange& exchange) { return send_file(file, exchange); }});
    routes.back().probe = file.path != "/";  // a visit is one line in the log
  }
  return routes;
}

}  // namespace tts::net
