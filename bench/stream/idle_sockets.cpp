// Opens WebSockets and keeps them open: what an idle listener costs a server, and whether it is forgotten.
//
// Every socket sends its handshake, reads `ready`, answers pings and does nothing else. Sockets come from several loopback addresses,
// because one address has too few ports for tens of thousands. Prints JSON at the end; progress on stderr.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using tcp = asio::ip::tcp;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

struct Options {
  std::uint16_t port = 8080;
  std::uint32_t sockets = 1000, per_second = 2000, addresses = 4;
  double seconds = 60;
};

struct Counts {
  std::uint32_t tried = 0, open = 0, refused = 0, dropped = 0;
  std::uint64_t pings = 0;
};

using Socket = websocket::stream<tcp::socket, false>;

class Crowd {
 public:
  explicit Crowd(const Options& options) : options_(options) {}

  Counts run() {
    asio::co_spawn(context_, open_all(), asio::detached);
    context_.run();
    return counts_;
  }

 private:
  asio::awaitable<void> open_all() {
    const auto began = std::chrono::steady_clock::now();
    asio::steady_timer timer(context_);
    for (std::uint32_t i = 0; i < options_.sockets; ++i) {
      asio::co_spawn(context_, hold(i), asio::detached);
      if (i % 50 == 49) {
        timer.expires_at(began + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(i + 1.0) / options_.per_second));
        co_await timer.async_wait(kAwait);
      }
    }
    timer.expires_after(std::chrono::seconds(2));
    co_await timer.async_wait(kAwait);
    std::fprintf(stderr, "%u open, %u refused\n", counts_.open, counts_.refused);
    std::cout << "open" << std::endl;  // whoever measures the server does so now
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.seconds);
    while (std::chrono::steady_clock::now() < end) {
      timer.expires_after(std::chrono::seconds(5));
      co_await timer.async_wait(kAwait);
      std::fprintf(stderr, "%u open, %u dropped, %lu pings\n", counts_.open, counts_.dropped, counts_.pings);
    }
    context_.stop();
  }

  asio::awaitable<void> hold(std::uint32_t number) {
    ++counts_.tried;
    Socket socket(context_);
    auto& transport = socket.next_layer();
    boost::system::error_code error;
    transport.open(tcp::v4(), error);
    transport.bind({asio::ip::address_v4(asio::ip::address_v4::loopback().to_uint() + number % options_.addresses), 0}, error);
    const auto [failed] = co_await transport.async_connect({asio::ip::address_v4::loopback(), options_.port}, kAwait);
    if (failed) {
      ++counts_.refused;
      co_return;
    }
    socket.control_callback([this](websocket::frame_type type, boost::beast::string_view) { counts_.pings += type == websocket::frame_type::ping ? 1 : 0; });
    const auto [no_upgrade] = co_await socket.async_handshake("127.0.0.1", "/v1/stream", kAwait);
    if (no_upgrade) {
      ++counts_.refused;
      co_return;
    }
    ++counts_.open;
    boost::beast::flat_buffer buffer;
    for (;;) {
      const auto [ended, count] = co_await socket.async_read(buffer, kAwait);
      if (ended) break;
      buffer.consume(buffer.size());
    }
    --counts_.open;
    ++counts_.dropped;
  }

  const Options options_;
  asio::io_context context_{1};
  Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Opens WebSockets to a server on this machine and keeps them open.");
  app.add_option("--port", options.port, "of the server")->capture_default_str();
  app.add_option("--sockets", options.sockets, "how many")->capture_default_str();
  app.add_option("--per-second", options.per_second, "opened in a second")->capture_default_str();
  app.add_option("--addresses", options.addresses, "loopback addresses they come from")->capture_default_str();
  app.add_option("--seconds", options.seconds, "that they stay")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < options.sockets + 16U) {
    std::cerr << "this process may have " << limit.rlim_cur << " open files (ulimit -Hn), too few for " << options.sockets << " sockets\n";
    return 1;
  }
  const auto counts = Crowd(options).run();
  std::cout << nlohmann::json({{"tried", counts.tried}, {"open", counts.open}, {"refused", counts.refused}, {"dropped", counts.dropped}, {"pings", counts.pings}}).dump()
            << '\n';
  return counts.open == options.sockets ? 0 : 1;
}
