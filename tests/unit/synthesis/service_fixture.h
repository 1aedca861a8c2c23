#pragma once
// The service with its workers; the test plays the engine's thread, so that every order of events can be made.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tts/audio/encoder.h"
#include "tts/audio/pcm_pipeline.h"
#include "tts/synthesis/synthesis.h"

#include "support/fake_front_end.h"
#include "support/fake_utterance_engine.h"
#include "support/manual_clock.h"
#include "support/packets.h"

namespace tts::synthesis {

inline std::vector<float> tone(std::size_t samples, float offset = 0) {
  std::vector<float> result(samples);
  for (std::size_t i = 0; i < samples; ++i) result[i] = offset + static_cast<float>(i % 1000) * 0.0004F;
  return result;
}

// PCM bytes of the sentences joined as a request joins them.
inline std::vector<std::uint8_t> expected_pcm(const std::vector<std::vector<float>>& sentences) {
  auto pipeline = audio::make_pcm_pipeline({}).value();
  std::vector<float> samples;
  for (const auto& sentence : sentences) {
    pipeline->push(sentence, samples);
    pipeline->end_utterance(samples);
  }
  pipeline->finish(samples);
  auto encoder = audio::make_encoder({.format = {.container = audio::Container::kPcm, .sample_rate = 24000, .bitrate = 0}}).value();
  std::vector<std::uint8_t> bytes;
  encoder->start(bytes);
  encoder->encode(samples, bytes);
  encoder->finish(bytes);
  return bytes;
}

class ServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    voices_.resize(2);
    voices_[0].id = "plain";
    voices_[1].id = "speaker";
    voices_[1].speaker = std::make_shared<std::vector<float>>(8, 0.5F);
    defaults_.top_k = 17;
  }

  void TearDown() override {
    engine_.stop();
    service_.reset();
  }

  void open(const ServiceOptions& options = {}) {
    service_ = std::make_unique<Service>(ServiceParts{.engine = engine_,
                                                      .front_end = front_end_,
                                                      .voices = voices_,
                                                      .sampling = defaults_,
                                                      .sample_rate = 24000,
                                                      .clock = clock_,
                                                      .metrics = metrics_},
                                         options);
  }

  static SynthesisRequest request(std::string text) {
    SynthesisRequest request;
    request.request_id = "req-1";
    request.text = std::move(text);
    request.voice = "plain";
    request.format.container = audio::Container::kPcm;
    request.seed = 42;
    return request;
  }

  std::unique_ptr<Synthesis> start(SynthesisRequest wanted) {
    if (!service_) open();
    auto started = service_->start(std::move(wanted));
    EXPECT_TRUE(started.ok());
    return std::move(started).value();
  }

  // The engine makes everything of utterance `index` at once.
  void speak(std::size_t index, const std::vector<float>& samples) {
    engine_.pcm(index, samples, true);
    engine_.done(index, {.stop = engine::StopReason::kEndToken,
                         .steps = static_cast<std::uint32_t>(samples.size() / 512),
                         .samples = samples.size(),
                         .text_tokens = {}});
  }

  void wait_cancelled(std::size_t index) {
    engine_.wait_until([index](const auto& all) { return all.size() > index && all[index].cancelled; });
  }
  void wait_paused(std::size_t index, bool paused) {
    engine_.wait_until([=](const auto& all) { return all.size() > index && all[index].pause_seen && all[index].paused == paused; });
  }
  void wait_told(std::size_t index, TimePoint runs_dry_at) {
    engine_.wait_until([=](const auto& all) { return all.size() > index && all[index].runs_dry_at == runs_dry_at; });
  }
  bool exports(const std::string& line) const { return metrics_.render().find(line) != std::string::npos; }

  test::FakeUtteranceEngine engine_;
  test::FakeFrontEnd front_end_{true};
  std::vector<engine::Voice> voices_;
  engine::SamplingParams defaults_;
  test::ManualClock clock_;
  observability::Metrics metrics_;
  std::unique_ptr<Service> service_;
};

}  // namespace tts::synthesis
