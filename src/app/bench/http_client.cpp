#include "http_client.h"

#include <array>
#include <charconv>
#include <stdexcept>

#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace tts::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr std::size_t kReadBytes = 16 * 1024;

template <class T>
T number_of(std::string_view text) {
  T value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

template <class Fields>
std::string_view field(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : std::string_view(found->value().data(), found->value().size());
}

}  // namespace

Server parse_server(std::string_view url) {
  const auto wrong = [&] {
    return std::runtime_error("'" + std::string(url) + "' is not the address of a server; write http://host:port");
  };
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) throw wrong();
  auto rest = url.substr(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.empty() || rest.find('/') != std::string_view::npos) throw wrong();
  const auto colon = rest.rfind(':');
  const bool has_port = colon != std::string_view::npos && rest.find(']', colon) == std::string_view::npos;
  auto name = rest.substr(0, has_port ? colon : rest.size());
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  const auto port = has_port ? std::string(rest.substr(colon + 1)) : std::string("80");

  asio::io_context context;
  boost::system::error_code error;
  const auto found = tcp::resolver(context).resolve(std::string(name), port, error);
  if (error || found.empty()) throw std::runtime_error("cannot find the server " + std::string(url) + ": " + error.message());
  return {.url = std::string(url), .host = std::string(rest), .endpoint = found.begin()->endpoint()};
}

std::string get(const Server& server, const std::string& path) {
  try {
    asio::io_context context;
    beast::tcp_stream stream(context);
    stream.connect(server.endpoint);
    http::request<http::empty_body> request(http::verb::get, path, 11);
    request.set(http::field::host, server.host);
    request.set(http::field::connection, "close");
    http::write(stream, request);
    beast::flat_buffer buffer;
    http::response<http::string_body> reply;
    http::read(stream, buffer, reply);
    if (reply.result() != http::status::ok)
      throw std::runtime_error(server.url + path + " answers " + std::to_string(reply.result_int()) + ": " + reply.body().substr(0, 300));
    return std::move(reply.body());
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error("no answer from " + server.url + path + ": " + error.code().message());
  }
}

asio::awaitable<void> post(const Server& server, const std::string& path, std::string body, std::chrono::milliseconds patience,
                           ReplySink& sink) {
  beast::tcp_stream stream(co_await asio::this_coro::executor);
  stream.expires_after(patience);
  co_await stream.async_connect(server.endpoint, asio::use_awaitable);
  stream.socket().set_option(tcp::no_delay(true));

  http::request<http::string_body> request(http::verb::post, path, 11);
  request.set(http::field::host, server.host);
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "close");
  request.body() = std::move(body);
  request.prepare_payload();
  co_await http::async_write(stream, request, asio::use_awaitable);

  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  co_await http::async_read_header(stream, buffer, parser, asio::use_awaitable);
  const auto& reply = parser.get();
  sink.head({.status = static_cast<int>(reply.result_int()),
             .sample_rate = number_of<std::uint32_t>(field(reply, "X-Sample-Rate")),
             .retry_after = number_of<double>(field(reply, "Retry-After"))});

  // What one read brings goes to the sink as one piece, however many chunks it is cut into: that is what arrives at one moment.
  std::array<std::uint8_t, kReadBytes> piece;
  for (;;) {
    std::size_t filled = 0;
    boost::system::error_code error;
    while (!parser.is_done() && buffer.size() > 0) {
      parser.get().body() = {.data = piece.data() + filled, .size = piece.size() - filled, .more = true};
      buffer.consume(parser.put(buffer.data(), error));
      filled = piece.size() - parser.get().body().size;
      if (error == http::error::need_buffer && filled < piece.size()) continue;
      if (error) break;
    }
    if (error && error != http::error::need_more && error != http::error::need_buffer) throw boost::system::system_error(error);
    if (filled > 0) sink.body(std::span(piece.data(), filled));
    if (parser.is_done()) co_return;
    if (error == http::error::need_buffer) continue;
    stream.expires_after(patience);
    const auto room = buffer.prepare(kReadBytes);
    const auto read = co_await stream.async_read_some(room, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::eof) parser.put_eof(error);
    if (error) throw boost::system::system_error(error);
    buffer.commit(read);
  }
}

}  // namespace tts::bench
