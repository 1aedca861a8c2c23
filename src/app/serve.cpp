#include "serve.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "local_server.h"
#include "signal_watch.h"

namespace tts::app {
namespace {

using Seconds = std::chrono::duration<double>;

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
  LocalServer server(config, program);
  const auto& catalog = server.catalog();
  const Seconds load_time = std::chrono::steady_clock::now() - begun;
  progress.line(
      fmt::format("model:   {} ({}, {}), loaded in {:.1f} s", catalog.model_title, catalog.model, catalog.license, load_time.count()));
  progress.line("engine:  " + server.speech().devices());
  progress.line("voices:  " + voices_line(catalog));
  if (stopped_early()) return 0;

  const auto report = server.warm_up();
  progress.line(fmt::format("warm-up: {:.1f} s, first sound after {:.0f} ms", report.total.count(), report.first_packet.count() * 1000));
  if (stopped_early()) return 0;
  server.open();
  progress.line(fmt::format("admin:   {}/metrics", server.admin_url()));
  progress.line(
      fmt::format("ready: {}/ — try: curl {}/synthesize -d '{{\"text\":\"你好！Hello!\"}}' -o hello.wav", server.url(), server.url()));

  stop.wait();
  auto& http = server.http();
  draining = &http;
  progress.line(fmt::format("stopping: {} connections may finish within {:.0f} s; a second signal cuts them", http.connections(),
                            Seconds(config.drain).count()));
  const bool finished = http.drain(config.drain);
  draining = nullptr;
  server.speech().service().stop_accepting();
  http.stop();
  progress.line(finished ? "stopped" : "stopped; some requests were cut");
  return finished ? 0 : 1;
}

}  // namespace tts::app
