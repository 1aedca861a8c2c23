// The scheduler with its thread: only what needs one.
#include "tts/scheduling/scheduler.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_engine.h"
#include "support/gate.h"
#include "support/manual_clock.h"
#include "support/recording_sink.h"

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;
using test::FakeVoice;
using test::RecordingSink;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

engine::UtteranceRequest request_of(std::size_t prompt_tokens, std::uint64_t seed = 1) {
  engine::UtteranceRequest request;
  for (std::size_t i = 0; i < prompt_tokens; ++i) request.prompt.tokens.push_back(static_cast<std::int32_t>(i + 1));
  request.sampling.seed = seed;
  return request;
}

class SchedulerTest : public ::testing::Test {
 protected:
  void start(SchedulerOptions options = {.max_batch = 8, .max_queue = 64, .batch_window = milliseconds(0)}) {
    scheduler_ =
        std::make_unique<Scheduler>(std::make_unique<test::FakeEngine>(test::FakeEngineOptions{}, control_), options, clock_, metrics_);
  }
  void TearDown() override {
    scheduler_.reset();
    EXPECT_THAT(control_->breaches(), IsEmpty());
    EXPECT_EQ(control_->slots_in_use, 0U);
    EXPECT_EQ(control_->parked, 0U);
  }

  test::Gate gate_;
  std::shared_ptr<test::FakeEngineControl> control_ = std::make_shared<test::FakeEngineControl>();
  SteadyClock clock_;
  observability::Metrics metrics_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, RefusesBadOptionsNamingAll) {
  try {
    start({.max_batch = 99, .max_queue = 0});
    FAIL() << "no exception";
  } catch (const std::invalid_argument& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("max_batch"));
    EXPECT_THAT(failure.what(), HasSubstr("max_queue"));
  }
  EXPECT_THROW(Scheduler(nullptr, {}, clock_, metrics_), std::invalid_argument);
}

TEST_F(SchedulerTest, SpeaksAndGoesBackToSleep) {
  start();
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto request = request_of(12, seed);
    const auto sink = std::make_shared<RecordingSink>();
    ASSERT_TRUE(scheduler_->submit(request, sink).ok());
    sink->wait();
    EXPECT_EQ(sink->pcm(), FakeVoice(request.prompt, request.sampling).all(24));
  }
  EXPECT_TRUE(scheduler_->health().ready);
  EXPECT_EQ(scheduler_->load().queued, 0U);
  EXPECT_EQ(scheduler_->load().max_active, 8U);
  EXPECT_EQ(scheduler_->load().max_queued, 64U);
  EXPECT_EQ(scheduler_->info().model, "fake");
}

TEST_F(SchedulerTest, ABatchWindowEndsByItself) {
  start({.max_batch = 8, .max_queue = 64, .batch_window = milliseconds(1)});
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler_->submit(request_of(3), sink).ok());
  sink->wait();
  EXPECT_TRUE(sink->summary().has_value());
}

TEST_F(SchedulerTest, LoadQueueBoundAndCancelWhileTheEngineIsBusy) {
  control_->before_step = [&](std::uint64_t) { gate_.pass(); };
  start({.max_batch = 1, .max_queue = 2, .batch_window = milliseconds(0)});
  const auto running = std::make_shared<RecordingSink>();
  const auto running_id = scheduler_->submit(request_of(500), running);
  gate_.wait_until_reached();
  const auto waiting = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler_->submit(request_of(3), waiting).ok());
  ASSERT_TRUE(scheduler_->submit(request_of(3), std::make_shared<RecordingSink>()).ok());
  EXPECT_EQ(scheduler_->load().active, 1U);
  EXPECT_EQ(scheduler_->load().queued, 2U);
  const auto refused = scheduler_->submit(request_of(3), std::make_shared<RecordingSink>());
  EXPECT_EQ(refused.error().code, ErrorCode::kQueueFull);
  EXPECT_GT(refused.error().retry_after.count(), 0);
  scheduler_->cancel(*running_id);
  gate_.open();
  running->wait();
  EXPECT_EQ(running->error()->code, ErrorCode::kCancelled);
  EXPECT_TRUE(running->pcm().empty());
  waiting->wait();
  EXPECT_TRUE(waiting->summary().has_value());
}

TEST_F(SchedulerTest, WhoPausesMakesRoomAndGoesOnAfterwards) {
  SchedulerOptions options{.max_batch = 1, .max_queue = 64, .batch_window = milliseconds(0)};
  options.park_after = milliseconds(0);
  start(options);
  const auto request = request_of(400);
  const auto slow = std::make_shared<RecordingSink>();
  slow->pcm_hook = [&](std::size_t) {
    if (slow->pieces().size() == 1) scheduler_->set_paused(1, true);
  };
  ASSERT_EQ(*scheduler_->submit(request, slow), 1U);
  const auto other = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler_->submit(request_of(12), other).ok());
  other->wait();
  EXPECT_TRUE(other->summary().has_value());
  EXPECT_EQ(scheduler_->load().parked, 1U);
  EXPECT_EQ(scheduler_->load().queued, 0U);
  EXPECT_EQ(slow->pieces().size(), 1U);
  scheduler_->set_paused(1, false);
  slow->wait();
  EXPECT_EQ(slow->pcm(), FakeVoice(request.prompt, request.sampling).all(800));
}

TEST_F(SchedulerTest, StoppingAtOnceEndsParkedUtterances) {
  SchedulerOptions options{.max_batch = 1, .max_queue = 64, .batch_window = milliseconds(0)};
  options.park_after = milliseconds(0);
  start(options);
  const auto slow = std::make_shared<RecordingSink>();
  slow->pcm_hook = [&](std::size_t) { scheduler_->set_paused(1, true); };
  ASSERT_EQ(*scheduler_->submit(request_of(400), slow), 1U);
  const auto other = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler_->submit(request_of(12), other).ok());
  other->wait();
  scheduler_.reset();
  EXPECT_EQ(slow->error()->code, ErrorCode::kUnavailable);
  EXPECT_EQ(slow->finals(), 1);
}

TEST_F(SchedulerTest, StopLetsAcceptedWorkFinish) {
  start();
  const auto request = request_of(300);
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler_->submit(request, sink).ok());
  scheduler_->stop();
  EXPECT_EQ(sink->pcm(), FakeVoice(request.prompt, request.sampling).all(600));
  EXPECT_EQ(scheduler_->submit(request, std::make_shared<RecordingSink>()).error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(scheduler_->health().ready);
  EXPECT_EQ(scheduler_->health().detail, "stopping");
  scheduler_->stop();
}

TEST_F(SchedulerTest, DestructionGivesEveryAcceptedUtteranceItsFinalCall) {
  start({.max_batch = 2, .max_queue = 64, .batch_window = milliseconds(0)});
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 20; ++i) {
    sinks.push_back(std::make_shared<RecordingSink>());
    ASSERT_TRUE(scheduler_->submit(request_of(400), sinks.back()).ok());
  }
  scheduler_.reset();
  for (const auto& sink : sinks) EXPECT_EQ(sink->finals(), 1);
}

TEST_F(SchedulerTest, AHungEngineIsNotReady) {
  test::ManualClock clock;
  control_->before_step = [&](std::uint64_t) { gate_.pass(); };
  Scheduler scheduler(std::make_unique<test::FakeEngine>(test::FakeEngineOptions{}, control_), {.batch_window = milliseconds(0)}, clock,
                      metrics_);
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(scheduler.submit(request_of(3), sink).ok());
  gate_.wait_until_reached();
  EXPECT_TRUE(scheduler.health().ready);
  clock.advance(std::chrono::seconds(11));
  EXPECT_FALSE(scheduler.health().ready);
  EXPECT_THAT(scheduler.health().detail, HasSubstr("no progress"));
  gate_.open();
  sink->wait();
}

// Many threads submit, pause, resume and cancel while steps and decodes fail now and then. Every utterance ends exactly once, and
// whoever was not disturbed heard exactly what it would have heard alone.
TEST_F(SchedulerTest, Stress) {
  control_->before_step = [](std::uint64_t call) {
    if (call % 97 == 0) throw std::runtime_error("injected");
  };
  control_->before_decode = [](std::uint64_t call) {
    if (call % 61 == 0) throw std::runtime_error("injected");
  };
  start({.max_batch = 8, .max_queue = 1000, .batch_window = milliseconds(0), .park_after = milliseconds(0)});
  constexpr int kThreads = 4;
  constexpr int kEach = 60;
  std::atomic<int> undisturbed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      struct Running {
        engine::UtteranceRequest request;
        std::shared_ptr<RecordingSink> sink;
        bool cancelled;
      };
      std::vector<Running> all;
      std::uint32_t seed = static_cast<std::uint32_t>(t) + 1;
      const auto next = [&](std::uint32_t below) {
        seed = seed * 1664525U + 1013904223U;
        return (seed >> 8U) % below;
      };
      for (int i = 0; i < kEach; ++i) {
        auto request = request_of(1 + next(40), seed);
        auto sink = std::make_shared<RecordingSink>();
        const auto id = scheduler_->submit(request, sink);
        ASSERT_TRUE(id.ok());
        const auto what = next(4);
        if (what == 1) {
          scheduler_->set_paused(*id, true);
          scheduler_->set_paused(*id, false);
        }
        if (what == 2) scheduler_->cancel(*id);
        all.push_back({std::move(request), std::move(sink), what == 2});
        scheduler_->load();
        scheduler_->health();
      }
      for (auto& one : all) {
        one.sink->wait();
        EXPECT_EQ(one.sink->finals(), 1);
        EXPECT_EQ(one.sink->calls_after_final(), 0);
        const auto whole =
            FakeVoice(one.request.prompt, one.request.sampling).all(static_cast<std::uint32_t>(one.request.prompt.tokens.size() * 2));
        const auto heard = one.sink->pcm();
        if (one.sink->summary()) {
          EXPECT_EQ(heard, whole);
          ++undisturbed;
        } else {
          ASSERT_LE(heard.size(), whole.size());
          EXPECT_TRUE(std::equal(heard.begin(), heard.end(), whole.begin()));
          const auto code = one.sink->error()->code;
          EXPECT_TRUE(code == ErrorCode::kEngineFailure || (one.cancelled && code == ErrorCode::kCancelled));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(undisturbed, 0);
  EXPECT_EQ(scheduler_->load().queued, 0U);
}

}  // namespace
}  // namespace tts::scheduling
