#pragma once
// An engine loop for tests that call every turn themselves and move time themselves.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "engine_loop.h"
#include "support/fake_engine.h"
#include "support/manual_clock.h"
#include "support/recording_sink.h"

namespace tts::scheduling {

inline SchedulerOptions at_once() {
  SchedulerOptions options;
  options.batch_window = std::chrono::milliseconds(0);
  return options;
}

inline engine::UtteranceRequest request_of(std::size_t prompt_tokens, std::uint64_t seed = 1) {
  engine::UtteranceRequest request;
  for (std::size_t i = 0; i < prompt_tokens; ++i) request.prompt.tokens.push_back(static_cast<std::int32_t>(i + 1));
  request.sampling.seed = seed;
  return request;
}

class Bench {
 public:
  explicit Bench(SchedulerOptions options = at_once(), test::FakeEngineOptions engine_options = {})
      : options_(std::move(options)), engine_(std::move(engine_options), control) {}

  std::shared_ptr<test::RecordingSink> submit(engine::UtteranceRequest request) {
    auto sink = std::make_shared<test::RecordingSink>();
    auto id = mailbox.post(std::move(request), sink);
    EXPECT_TRUE(id.ok());
    last_id = *id;
    return sink;
  }

  EngineLoop::Turn turn() { return loop.turn(); }

  void run_until_idle() {
    for (int i = 0; i < 100000; ++i) {
      if (!turn().worked) return;
    }
    FAIL() << "the loop never became idle";
  }

  bool exports(const std::string& line) const { return metrics.render().find(line) != std::string::npos; }

  std::shared_ptr<test::FakeEngineControl> control = std::make_shared<test::FakeEngineControl>();
  test::ManualClock clock;
  observability::Metrics metrics;
  engine::UtteranceId last_id = 0;

 private:
  SchedulerOptions options_;
  test::FakeEngine engine_;

 public:
  Mailbox mailbox{options_.max_queue, options_.max_wait, clock, metrics};
  Progress progress{{}, clock.now()};
  EngineLoop loop{engine_, options_, clock, metrics, mailbox, progress};
};

}  // namespace tts::scheduling
