#include "local_server.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tts/base/utf8.h"

#include "pull.h"

namespace tts::app {
namespace {

// Both kinds of sounds the bundled voices make, so that every code path has run once before the first client waits for it.
constexpr const char* kWarmUpText = "你好，很高兴认识你。Nice to meet you.";
// Streams of each engine that speak it together afterwards, so that the scheduler knows what company costs before a crowd comes.
constexpr std::uint32_t kWarmUpStreams = 4;

// What a limit of the configuration cuts short is warm nevertheless. Throws std::runtime_error for all else.
void check_warm_up(const Error& error) {
  const bool by_a_limit = error.code == ErrorCode::kQueueFull || error.code == ErrorCode::kTooLarge;
  if (!by_a_limit) throw std::runtime_error("the warm-up failed: " + error.message);
}

// Reports of those that were let in: a machine that is too slow for so many, or whose queue is short, refuses some.
std::vector<synthesis::SynthesisReport> speak_together(synthesis::Service& service, const synthesis::SynthesisRequest& request,
                                                       std::uint32_t streams) {
  std::vector<std::unique_ptr<synthesis::Synthesis>> all;
  for (std::uint32_t i = 0; i < streams; ++i) {
    if (auto started = service.start(request)) {
      all.push_back(std::move(*started));
    } else {
      check_warm_up(started.error());
    }
  }
  std::vector<synthesis::SynthesisReport> reports;
  for (const auto& one : all) {
    if (const auto status = pull(*one, [](const resume::Packet&) {}); !status) check_warm_up(status.error());
    reports.push_back(one->report());
  }
  return reports;
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
  request.text = encode_utf8(decode_utf8(kWarmUpText).substr(0, config_.synthesis.max_text_chars));
  request.voice = speech_.manifest().default_voice;
  request.format = {.container = audio::Container::kPcm, .sample_rate = speech_.manifest().architecture.sample_rate, .bitrate = 0};
  request.seed = 1;
  const auto alone = speak_together(service, request, 1);
  if (alone.empty() || alone.front().samples == 0) throw std::runtime_error("the warm-up made no sound");
  const auto of_each = std::min({kWarmUpStreams, config_.engine.max_batch, config_.engine.max_queue});
  speak_together(service, request, std::min(of_each * speech_.engines(), config_.synthesis.max_requests));
  return alone.front();
}

void LocalServer::open() {
  readiness_.set_warmed_up();
  http_->open();
}

std::string LocalServer::url() const { return url_of(config_.server.http, http_->port()); }
std::string LocalServer::admin_url() const { return url_of(config_.server.admin, http_->admin_port()); }

}  // namespace tts::app
