#include "tts/dispatch/engine_pool.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_utterance_engine.h"
#include "support/recording_sink.h"

namespace tts::dispatch {
namespace {

using test::FakeUtteranceEngine;
using test::RecordingSink;
using ::testing::HasSubstr;

const Error kFailure{ErrorCode::kEngineFailure, "device lost", {}, {}};

class EnginePoolTest : public ::testing::Test {
 protected:
  Result<engine::UtteranceId> submit(std::shared_ptr<RecordingSink> sink, std::uint64_t listener = 0) {
    engine::UtteranceRequest request;
    request.listener = listener;
    request.request_id = "r1";
    request.prompt.tokens = {1, 2, 3};
    return pool_.submit(std::move(request), std::move(sink));
  }
  void busy(FakeUtteranceEngine& engine) { engine.set_load({.queued = 3, .active = 4, .max_active = 4, .max_queued = 16}); }
  void sick(FakeUtteranceEngine& engine, std::string why) {
    engine.set_health({.ready = false, .last_progress = {}, .detail = std::move(why)});
  }

  FakeUtteranceEngine a_;
  FakeUtteranceEngine b_;
  EnginePool pool_{{&a_, &b_}};
  std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
};

TEST_F(EnginePoolTest, NeedsEngines) {
  EXPECT_THROW(EnginePool({}), std::invalid_argument);
  EXPECT_THROW(EnginePool({nullptr}), std::invalid_argument);
}

TEST_F(EnginePoolTest, TheLeastLoadedEngineSpeaks) {
  busy(a_);
  ASSERT_TRUE(submit(sink_).ok());
  EXPECT_EQ(a_.submitted(), 0U);
  ASSERT_EQ(b_.submitted(), 1U);
  EXPECT_EQ(b_.utterance(0).request.request_id, "r1");
  const std::vector<float> pcm{0.5F, -0.5F};
  b_.pcm(0, pcm);
  b_.done(0, {.stop = engine::StopReason::kEndToken, .steps = 3, .samples = 2, .text_tokens = {}});
  EXPECT_EQ(sink_->pcm(), pcm);
  EXPECT_EQ(sink_->summary()->steps, 3U);
  EXPECT_EQ(sink_.use_count(), 1);
}

TEST_F(EnginePoolTest, IdsAreThePoolsOwn) {
  const auto first = submit(sink_);
  busy(a_);
  const auto second = submit(std::make_shared<RecordingSink>());
  EXPECT_NE(*first, *second) << "both engines gave their first id";
  pool_.cancel(*second);
  EXPECT_FALSE(a_.utterance(0).cancelled);
  EXPECT_TRUE(b_.utterance(0).cancelled);
  pool_.set_paused(*first, true);
  EXPECT_TRUE(a_.utterance(0).paused);
  pool_.set_paused(*first, false);
  EXPECT_FALSE(a_.utterance(0).paused);
  const TimePoint soon = TimePoint(std::chrono::seconds(7));
  pool_.set_runs_dry_at(*second, soon);
  pool_.set_runs_dry_at(999, soon);
  EXPECT_EQ(b_.utterance(0).runs_dry_at, soon);
  EXPECT_EQ(a_.utterance(0).runs_dry_at, TimePoint{});
}

TEST_F(EnginePoolTest, WhatFollowsForAListenerStaysWithTheEngineThatLetItIn) {
  const auto submit_for = [&](std::uint64_t listener) { ASSERT_TRUE(submit(std::make_shared<RecordingSink>(), listener).ok()); };
  submit_for(5);
  busy(a_);
  submit_for(5);
  EXPECT_EQ(a_.submitted(), 2U);
  submit_for(6);
  submit_for(0);
  submit_for(0);
  EXPECT_EQ(b_.submitted(), 3U) << "others go by load";
  a_.done(0);
  submit_for(5);
  EXPECT_EQ(a_.submitted(), 3U) << "its second utterance is still there";
  a_.refuse_next({ErrorCode::kQueueFull, "full", {}, {}});
  submit_for(5);
  EXPECT_EQ(b_.submitted(), 4U) << "better elsewhere than not at all";
  a_.done(1);
  a_.done(2);
  b_.done(3);
  submit_for(5);
  EXPECT_EQ(b_.submitted(), 5U) << "nothing of it is anywhere";
}

TEST_F(EnginePoolTest, WhatWasReportedFollowsTheUtteranceToItsSecondEngine) {
  const auto id = submit(sink_);
  const TimePoint soon = TimePoint(std::chrono::seconds(7));
  pool_.set_runs_dry_at(*id, soon);
  a_.fail(0, kFailure);
  ASSERT_EQ(b_.submitted(), 1U);
  EXPECT_EQ(b_.utterance(0).runs_dry_at, soon);
}

TEST_F(EnginePoolTest, AFullEngineLetsTheNextOneTry) {
  a_.refuse_next({ErrorCode::kQueueFull, "full", {}, std::chrono::milliseconds(500)});
  ASSERT_TRUE(submit(sink_).ok());
  EXPECT_EQ(b_.submitted(), 1U);
}

TEST_F(EnginePoolTest, WhenAllRefuseTheMostUsefulRefusalIsAnswered) {
  a_.refuse_next({ErrorCode::kUnavailable, "stopping", {}, {}});
  b_.refuse_next({ErrorCode::kQueueFull, "full", {}, std::chrono::milliseconds(500)});
  EXPECT_EQ(submit(sink_).error().message, "full");
  a_.refuse_next({ErrorCode::kQueueFull, "sooner", {}, std::chrono::milliseconds(300)});
  b_.refuse_next({ErrorCode::kQueueFull, "later", {}, std::chrono::milliseconds(500)});
  EXPECT_EQ(submit(sink_).error().message, "sooner");
  EXPECT_EQ(sink_->finals(), 0) << "a refused sink is never called";
  EXPECT_EQ(sink_.use_count(), 1);
}

TEST_F(EnginePoolTest, AWrongRequestIsNotTriedElsewhere) {
  a_.refuse_next({ErrorCode::kInvalidArgument, "bad", {}, {}});
  EXPECT_EQ(submit(sink_).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(b_.submitted(), 0U);
  EXPECT_EQ(pool_.submit({}, nullptr).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(EnginePoolTest, SickEnginesAreSkipped) {
  sick(a_, "no progress");
  ASSERT_TRUE(submit(sink_).ok());
  EXPECT_EQ(b_.submitted(), 1U);
  EXPECT_TRUE(pool_.health().ready);
  EXPECT_EQ(pool_.health().detail, "");
  sick(b_, "failed thrice");
  const auto refused = submit(std::make_shared<RecordingSink>());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("no progress; failed thrice"));
  EXPECT_FALSE(pool_.health().ready);
  EXPECT_EQ(pool_.health().detail, "no progress; failed thrice");
}

TEST_F(EnginePoolTest, AFailureBeforeTheFirstSampleIsRetriedOnAnotherEngine) {
  ASSERT_TRUE(submit(sink_).ok());
  a_.fail(0, kFailure);
  EXPECT_EQ(sink_->finals(), 0);
  ASSERT_EQ(b_.submitted(), 1U);
  EXPECT_EQ(b_.utterance(0).request.prompt.tokens, (std::vector<std::int32_t>{1, 2, 3}));
  b_.pcm(0, std::vector<float>{1.0F});
  b_.done(0);
  EXPECT_EQ(sink_->pcm().size(), 1U);
  EXPECT_EQ(sink_->finals(), 1);
}

TEST_F(EnginePoolTest, OnlyOnce) {
  ASSERT_TRUE(submit(sink_).ok());
  a_.fail(0, kFailure);
  b_.fail(0, kFailure);
  EXPECT_EQ(sink_->error()->code, ErrorCode::kEngineFailure);
  EXPECT_EQ(a_.submitted(), 1U);
  EXPECT_EQ(sink_->finals(), 1);
}

TEST_F(EnginePoolTest, NeverAfterTheFirstSample) {
  ASSERT_TRUE(submit(sink_).ok());
  a_.pcm(0, std::vector<float>{1.0F});
  a_.fail(0, kFailure);
  EXPECT_EQ(sink_->error()->message, "device lost");
  EXPECT_EQ(b_.submitted(), 0U);
}

TEST_F(EnginePoolTest, NorForOtherErrorsNorWhenCancelled) {
  ASSERT_TRUE(submit(sink_).ok());
  a_.fail(0, {ErrorCode::kDeadlineExceeded, "late", {}, {}});
  EXPECT_EQ(sink_->error()->code, ErrorCode::kDeadlineExceeded);
  const auto cancelled = std::make_shared<RecordingSink>();
  const auto id = submit(cancelled);
  pool_.cancel(*id);
  a_.fail(1, kFailure);
  EXPECT_EQ(cancelled->finals(), 1);
  EXPECT_EQ(b_.submitted(), 0U);
}

TEST_F(EnginePoolTest, ALoneEngineGetsTheSecondTry) {
  EnginePool alone({&a_});
  ASSERT_TRUE(alone.submit({}, sink_).ok());
  a_.fail(0, kFailure);
  ASSERT_EQ(a_.submitted(), 2U);
  a_.done(1);
  EXPECT_TRUE(sink_->summary().has_value());
}

TEST_F(EnginePoolTest, WhenTheRetryIsRefusedTheFirstErrorStands) {
  ASSERT_TRUE(submit(sink_).ok());
  b_.refuse_next({ErrorCode::kQueueFull, "full", {}, {}});
  a_.fail(0, kFailure);
  EXPECT_EQ(sink_->error()->message, "device lost");
}

TEST_F(EnginePoolTest, CancelAndPauseFollowTheUtteranceToItsSecondEngine) {
  const auto id = submit(sink_);
  pool_.set_paused(*id, true);
  a_.fail(0, kFailure);
  EXPECT_TRUE(b_.utterance(0).paused);
  pool_.cancel(*id);
  EXPECT_TRUE(b_.utterance(0).cancelled);
  EXPECT_FALSE(a_.utterance(0).cancelled);
}

TEST_F(EnginePoolTest, FinishedIdsAreForgotten) {
  const auto id = submit(sink_);
  a_.done(0);
  pool_.cancel(*id);
  pool_.set_paused(*id, true);
  pool_.cancel(12345);
  EXPECT_FALSE(a_.utterance(0).cancelled);
  EXPECT_FALSE(a_.utterance(0).pause_seen);
}

TEST_F(EnginePoolTest, LoadIsTheSum) {
  a_.set_load({.queued = 1, .active = 2, .parked = 5, .max_active = 3, .max_queued = 4});
  b_.set_load({.queued = 10, .active = 20, .parked = 50, .max_active = 30, .max_queued = 40});
  const auto load = pool_.load();
  EXPECT_EQ(load.queued, 11U);
  EXPECT_EQ(load.active, 22U);
  EXPECT_EQ(load.parked, 55U);
  EXPECT_EQ(load.max_active, 33U);
  EXPECT_EQ(load.max_queued, 44U);
}

TEST_F(EnginePoolTest, CapacityIsTheSumAndTheWaitTheShortest) {
  a_.set_load({.realtime_streams = 5, .expected_wait = std::chrono::milliseconds(300)});
  b_.set_load({.realtime_streams = 7, .expected_wait = std::chrono::milliseconds(100)});
  EXPECT_EQ(pool_.load().realtime_streams, 12U);
  EXPECT_EQ(pool_.load().expected_wait, std::chrono::milliseconds(100));
  b_.set_load({.realtime_streams = 0});
  EXPECT_EQ(pool_.load().realtime_streams, 0U) << "not known yet";
  sick(b_, "no progress");
  EXPECT_EQ(pool_.load().realtime_streams, 5U) << "what is not ready serves nobody";
  EXPECT_EQ(pool_.load().expected_wait, std::chrono::milliseconds(300));
  sick(a_, "no progress");
  EXPECT_EQ(pool_.load().realtime_streams, 0U);
  EXPECT_EQ(pool_.load().expected_wait, std::chrono::milliseconds(0));
}

TEST_F(EnginePoolTest, FinalCallsAfterThePoolsEndAreSafe) {
  auto pool = std::make_unique<EnginePool>(std::vector<engine::UtteranceEngine*>{&a_});
  ASSERT_TRUE(pool->submit({}, sink_).ok());
  pool.reset();
  a_.done(0);
  EXPECT_TRUE(sink_->summary().has_value());
}

TEST_F(EnginePoolTest, NothingIsRetriedAfterThePoolsEnd) {
  auto pool = std::make_unique<EnginePool>(std::vector<engine::UtteranceEngine*>{&a_, &b_});
  ASSERT_TRUE(pool->submit({}, sink_).ok());
  pool.reset();
  a_.fail(0, kFailure);
  EXPECT_EQ(sink_->error()->code, ErrorCode::kEngineFailure);
  EXPECT_EQ(b_.submitted(), 0U);
}

// An engine whose thread ends every utterance at once, often before submit() has returned its id.
class EagerEngine final : public engine::UtteranceEngine {
 public:
  ~EagerEngine() override {
    for (auto& thread : threads_) thread.join();
  }
  Result<engine::UtteranceId> submit(engine::UtteranceRequest, std::shared_ptr<engine::UtteranceSink> sink) override {
    const std::lock_guard lock(mutex_);
    const auto id = ++last_;
    threads_.emplace_back([id, sink = std::move(sink)] {
      if (id % 3 == 0) {
        sink->on_error(kFailure);
      } else {
        sink->on_pcm(std::vector<float>(8), false);
        sink->on_done({});
      }
    });
    return id;
  }
  void cancel(engine::UtteranceId) noexcept override { ++calls; }
  void set_paused(engine::UtteranceId, bool) noexcept override { ++calls; }
  void set_runs_dry_at(engine::UtteranceId, TimePoint) noexcept override { ++calls; }
  engine::EngineLoad load() const override { return {.queued = 0, .active = 0, .max_active = 1, .max_queued = 1}; }
  engine::EngineHealth health() const override { return {.ready = true, .last_progress = {}, .detail = {}}; }
  std::atomic<int> calls{0};

 private:
  std::mutex mutex_;
  engine::UtteranceId last_ = 0;
  std::vector<std::thread> threads_;
};

TEST(EnginePoolRaces, EveryUtteranceEndsOnceWhateverOvertakesWhat) {
  EagerEngine a;
  EagerEngine b;
  EnginePool pool({&a, &b});
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t) {
    clients.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const auto sink = std::make_shared<RecordingSink>();
        const auto id = pool.submit({}, sink);
        ASSERT_TRUE(id.ok());
        pool.set_paused(*id, true);
        pool.set_paused(*id, false);
        pool.set_runs_dry_at(*id, TimePoint(std::chrono::seconds(1)));
        if (i % 2 == 0) pool.cancel(*id);
        sink->wait();
        EXPECT_EQ(sink->finals(), 1);
      }
    });
  }
  for (auto& client : clients) client.join();
}

}  // namespace
}  // namespace tts::dispatch
