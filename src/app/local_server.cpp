#include "local_server.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pull.h"

namespace tts::app {
namespace {

// Both kinds of sounds the bundled voices make, so that every code path has run once before the first client waits for it.
constexpr const char* kWarmUpText = "你好，很高兴认识你。Nice to meet you.";
// Streams that speak it together afterwards, so that the scheduler knows what company costs before a crowd comes.
constexpr std::uint32_t kWarmUpStreams = 4;

// `streams` >= 1. Throws std::runtime_error.
synthesis::SynthesisReport speak_together(synthesis::Service& service, const synthesis::SynthesisRequest& request, std::uint32_t streams) {
  std::vector<std::unique_ptr<synthesis::Synthesis>> all;
  for (std::uint32_t i = 0; i < streams; ++i) {
    auto started = service.start(request);
    if (!started) throw std::runtime_error("the warm-up was refused: " + started.error().message);
    all.push_back(std::move(*started));
  }
  for (const auto& one : all) {
    if (const auto status = pull(*one, [](const resume::Packet&) {}); !status)
      throw std::runtime_error("the warm-up failed: " + status.error().message);
    if (one->report().samples == 0) throw std::runtime_error("the warm-up made no sound");
  }
  return all.front()->report();
}

std::string url_of(const net::HttpOptions& options, std::uint16_t port) {
  const auto everywhere = options.host == "0.0.0.0" || options.host == "::";
  const auto host = everywhere ? "127.0.0.1" : options.host;
  const auto is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("http://{}:{}", is_ipv6 ? "[" + host + "]" : host, port);
}

}  // namespace

LocalServer::LocalServer(const config::Config& config, const std::filesystem::path& program)
    : config_(config),
      speech_(load_parts(config, program), config),
      api_(speech_.catalog()),
      readiness_(speech_.engine(), speech_.clock(), config.engine.hang_limit) {}

synthesis::SynthesisReport LocalServer::warm_up() {
  auto& service = speech_.service();
  http_ = std::make_unique<net::Server>(
      net::ServerParts{.start = [&service](synthesis::SynthesisRequest request) { return service.start(std::move(request)); },
                       .api = api_,
                       .readiness = readiness_,
                       .metrics = speech_.metrics(),
                       .clock = speech_.clock()},
      config_.server);

  synthesis::SynthesisRequest request;
  request.request_id = "warm-up";
  request.text = kWarmUpText;
  request.voice = speech_.manifest().default_voice;
  request.format = {.container = audio::Container::kPcm, .sample_rate = speech_.manifest().architecture.sample_rate, .bitrate = 0};
  request.seed = 1;
  const auto report = speak_together(service, request, 1);
  const auto free = config_.synthesis.max_requests - 1;  // the first one may be leaving still
  if (const auto streams = std::min({kWarmUpStreams, config_.engine.max_batch, free}); streams > 0)
    speak_together(service, request, streams);
  return report;
}

void LocalServer::open() {
  readiness_.set_warmed_up();
  http_->open();
}

std::string LocalServer::url() const { return url_of(config_.server.http, http_->port()); }
std::string LocalServer::admin_url() const { return url_of(config_.server.admin, http_->admin_port()); }

}  // namespace tts::app
