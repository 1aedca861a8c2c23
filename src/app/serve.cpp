#include "serve.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "tts/api/speech_api.h"
#include "tts/net/readiness.h"
#include "tts/net/server.h"

#include "composition.h"
#include "pull.h"
#include "signal_watch.h"

namespace tts::app {
namespace {

using Seconds = std::chrono::duration<double>;

// Both kinds of sounds the bundled voices make, so that every code path has run once before the first client waits for it.
constexpr const char* kWarmUpText = "你好，很高兴认识你。Nice to meet you.";

// What a person who starts the server sees; machines that read JSON lines get it as records.
class Progress {
 public:
  explicit Progress(observability::LogFormat format) : json_(format == observability::LogFormat::kJson) {}

  void line(const std::string& text) const {
    if (json_) {
      spdlog::info("{}", text);
    } else {
      std::cerr << text << '\n';
    }
  }

 private:
  bool json_;
};

std::string voices_line(const api::Catalog& catalog) {
  std::string text;
  for (const auto& voice : catalog.voices) {
    if (!text.empty()) text += ", ";
    text += voice.id;
    std::string languages;
    for (const auto& language : voice.languages) {
      if (!languages.empty()) languages += ", ";
      languages += language;
    }
    if (!languages.empty()) text.append(" (").append(languages).append(")");
  }
  return text;
}

std::string url_of(const net::HttpOptions& options, std::uint16_t port) {
  const auto everywhere = options.host == "0.0.0.0" || options.host == "::";
  const auto host = everywhere ? "127.0.0.1" : options.host;
  const auto is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("http://{}:{}", is_ipv6 ? "[" + host + "]" : host, port);
}

// A real request through the whole pipeline; a server that cannot do this must not say that it is ready.
synthesis::SynthesisReport warm_up(Speech& speech) {
  synthesis::SynthesisRequest request;
  request.request_id = "warm-up";
  request.text = kWarmUpText;
  request.voice = speech.manifest().default_voice;
  request.format = {.container = audio::Container::kPcm, .sample_rate = speech.manifest().architecture.sample_rate, .bitrate = 0};
  request.seed = 1;
  auto started = speech.service().start(std::move(request));
  if (!started) throw std::runtime_error("the warm-up was refused: " + started.error().message);
  if (const auto status = pull(**started, [](const resume::Packet&) {}); !status)
    throw std::runtime_error("the warm-up failed: " + status.error().message);
  const auto report = (*started)->report();
  if (report.samples == 0) throw std::runtime_error("the warm-up made no sound");
  return report;
}

}  // namespace

int serve(const config::Config& config, const std::filesystem::path& program) {
  std::promise<void> asked_to_stop;
  std::atomic<net::Server*> draining{nullptr};
  const SignalWatch signals([&](int count) {
    if (count == 1) {
      asked_to_stop.set_value();
    } else if (auto* server = draining.load()) {
      server->cut();
    } else {
      std::_Exit(1);  // still loading, or already closing: there is nobody to disappoint
    }
  });

  const Progress progress(config.log.format);
  const auto stop = asked_to_stop.get_future();
  const auto stopped_early = [&] {
    if (stop.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    progress.line("stopped while starting");
    return true;
  };
  progress.line("chattts-server " TTS_VERSION);
  const auto begun = std::chrono::steady_clock::now();
  Speech speech(load_parts(config, program), config);
  const auto catalog = speech.catalog();
  const api::SpeechApi api(catalog);
  const Seconds load_time = std::chrono::steady_clock::now() - begun;
  progress.line(
      fmt::format("model:   {} ({}, {}), loaded in {:.1f} s", catalog.model_title, catalog.model, catalog.license, load_time.count()));
  progress.line("voices:  " + voices_line(catalog));
  if (stopped_early()) return 0;

  net::Readiness readiness(speech.engine(), speech.clock(), config.engine.hang_limit);
  net::Server server({.start = [&speech](synthesis::SynthesisRequest request) { return speech.service().start(std::move(request)); },
                      .api = api,
                      .readiness = readiness,
                      .metrics = speech.metrics(),
                      .clock = speech.clock()},
                     config.server);
  const auto report = warm_up(speech);
  progress.line(fmt::format("warm-up: {:.1f} s, first sound after {:.0f} ms", report.total.count(), report.first_packet.count() * 1000));
  if (stopped_early()) return 0;
  readiness.set_warmed_up();
  server.open();
  const auto url = url_of(config.server.http, server.port());
  progress.line(fmt::format("admin:   {}/metrics", url_of(config.server.admin, server.admin_port())));
  progress.line(fmt::format("ready: {}/ — try: curl {}/synthesize -d '{{\"text\":\"你好！Hello!\"}}' -o hello.wav", url, url));

  stop.wait();
  draining = &server;
  progress.line(fmt::format("stopping: {} connections may finish within {:.0f} s; a second signal cuts them", server.connections(),
                            Seconds(config.drain).count()));
  const bool finished = server.drain(config.drain);
  draining = nullptr;
  speech.service().stop_accepting();
  server.stop();
  progress.line(finished ? "stopped" : "stopped; some requests were cut");
  return finished ? 0 : 1;
}

}  // namespace tts::app
