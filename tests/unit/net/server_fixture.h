#pragma once
// A server on ephemeral loopback ports over syntheses that the test speaks.

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "tts/net/server.h"

#include "fake_speech.h"
#include "raw_client.h"
#include "support/manual_clock.h"

namespace tts::net {

class IdleEngine final : public engine::UtteranceEngine {
 public:
  Result<engine::UtteranceId> submit(engine::UtteranceRequest, std::shared_ptr<engine::UtteranceSink>) override {
    return Error{.code = ErrorCode::kUnavailable, .message = {}, .param = {}, .retry_after = {}};
  }
  void cancel(engine::UtteranceId) noexcept override {}
  void set_paused(engine::UtteranceId, bool) noexcept override {}
  void set_runs_dry_at(engine::UtteranceId, TimePoint) noexcept override {}
  engine::EngineLoad load() const override { return load_now; }
  engine::EngineHealth health() const override { return health_now; }

  engine::EngineLoad load_now{};
  engine::EngineHealth health_now{.ready = true, .last_progress = {}, .detail = {}};
};

inline api::Catalog small_catalog() {
  api::Catalog catalog;
  catalog.version = "9.9.9";
  catalog.model = "nano";
  catalog.voices = {{"mei", "Mei", "female", {"zh"}}};
  catalog.default_voice = "mei";
  catalog.sampling.max_steps = 700;
  catalog.max_text_chars = 1000;
  return catalog;
}

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    options_.http.port = options_.admin.port = 0;
    spdlog::set_level(spdlog::level::off);
    options_.http.linger_timeout = options_.admin.linger_timeout = std::chrono::milliseconds(200);
  }

  void start() {
    readiness_.set_warmed_up();
    server_ = std::make_unique<Server>(
        ServerParts{.start = [this](synthesis::SynthesisRequest request) { return speech_.start(std::move(request)); },
                    .api = api_,
                    .readiness = readiness_,
                    .metrics = metrics_,
                    .clock = clock_},
        options_);
    server_->open();
  }
  RawClient connect() { return RawClient(server_->port()); }

  // A client that has asked for a stream, and the voice that answers it.
  std::pair<std::unique_ptr<RawClient>, std::shared_ptr<Voice>> ask(std::string_view path = "/synthesize_stream",
                                                                    std::string_view version = "HTTP/1.1") {
    auto client = std::make_unique<RawClient>(server_->port());
    client->send(post(path, R"({"text":"hi","format":"pcm"})", "", version));
    return {std::move(client), speech_.wait_for_voice()};
  }

  test::ManualClock clock_;
  observability::Metrics metrics_;
  api::SpeechApi api_{small_catalog()};
  IdleEngine engine_;
  Readiness readiness_{engine_, clock_, std::chrono::seconds(10)};
  FakeSpeech speech_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

}  // namespace tts::net
