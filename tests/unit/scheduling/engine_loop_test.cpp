// The recipe without its thread: every turn is called by the test, time moves only when the test says so.
#include "engine_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench.h"

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;
using test::FakeVoice;
using test::RecordingSink;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EngineLoop, SpeaksOneUtteranceExactly) {
  Bench bench;
  const auto request = request_of(10, 42);
  const auto sink = bench.submit(request);
  bench.run_until_idle();
  ASSERT_TRUE(sink->summary().has_value());
  EXPECT_EQ(sink->summary()->stop, engine::StopReason::kEndToken);
  EXPECT_EQ(sink->summary()->steps, 20U);
  EXPECT_EQ(sink->summary()->samples, 39U * 256U);
  EXPECT_EQ(sink->pcm(), FakeVoice(request.prompt, request.sampling).all(20));
  EXPECT_EQ(sink->finals(), 1);
  EXPECT_EQ(sink.use_count(), 1) << "the engine drops its reference right after the final call";
  EXPECT_EQ(bench.control->slots_in_use, 0U);
  EXPECT_THAT(bench.control->breaches(), IsEmpty());
}

TEST(EngineLoop, IdleTurnsDoNothingAndNameNoTime) {
  Bench bench;
  const auto turn = bench.turn();
  EXPECT_FALSE(turn.worked);
  EXPECT_FALSE(turn.finished);
  EXPECT_EQ(turn.wake_at, TimePoint::max());
  EXPECT_EQ(bench.control->step_calls, 0U);
}

TEST(EngineLoop, DeliversAlongTheRamp) {
  Bench bench;
  const auto sink = bench.submit(request_of(60));  // 120 steps
  bench.run_until_idle();
  EXPECT_THAT(sink->pieces(), ElementsAre(8 * 512 - 256, 8 * 512, 12 * 512, 16 * 512, 24 * 512, 24 * 512, 24 * 512, 4 * 512));
}

TEST(EngineLoop, LookaheadDelaysSoundAndLosesNone) {
  test::FakeEngineOptions engine;
  engine.info.lookahead_steps = 52;
  engine.info.max_pending_steps = 32;
  Bench bench(at_once(), engine);
  const auto request = request_of(60);
  const auto sink = bench.submit(request);
  bench.run_until_idle();
  EXPECT_EQ(sink->pieces().front(), 8U * 512U - 256U) << "first sound when the lookahead and 8 steps exist";
  EXPECT_EQ(sink->pcm(), FakeVoice(request.prompt, request.sampling).all(120));
  EXPECT_THAT(bench.control->breaches(), IsEmpty());
}

TEST(EngineLoop, StopsAtMaxSteps) {
  Bench bench;
  auto request = request_of(50);
  request.sampling.max_steps = 9;
  const auto sink = bench.submit(request);
  bench.run_until_idle();
  EXPECT_EQ(sink->summary()->stop, engine::StopReason::kMaxSteps);
  EXPECT_EQ(sink->pcm(), FakeVoice(request.prompt, request.sampling).all(9));
}

TEST(EngineLoop, AnUtteranceThatEndsAtOnceIsDoneWithoutSound) {
  test::FakeEngineOptions engine;
  engine.steps_of = [](const auto&) { return 0U; };
  Bench bench(at_once(), engine);
  auto request = request_of(3);
  request.sampling.min_steps = 0;
  const auto sink = bench.submit(request);
  bench.run_until_idle();
  ASSERT_TRUE(sink->summary().has_value());
  EXPECT_EQ(sink->summary()->samples, 0U);
  EXPECT_EQ(bench.control->decode_calls, 0U);
}

TEST(EngineLoop, ATextStageUtteranceCollectsTokensAndDecodesNothing) {
  Bench bench;
  auto request = request_of(4);
  request.prompt.stage = engine::Stage::kText;
  request.prompt.end_token = 5;
  const auto sink = bench.submit(request);
  bench.run_until_idle();
  const FakeVoice voice(request.prompt, request.sampling);
  ASSERT_TRUE(sink->summary().has_value());
  ASSERT_EQ(sink->summary()->text_tokens.size(), 8U);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(sink->summary()->text_tokens[i], voice.token(i));
  EXPECT_EQ(sink->summary()->samples, 0U);
  EXPECT_EQ(bench.control->decode_calls, 0U);
}

TEST(EngineLoop, BatchMatesDoNotChangeAnUtterance) {
  Bench bench;
  std::vector<engine::UtteranceRequest> requests;
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (std::size_t i = 0; i < 40; ++i) {
    requests.push_back(request_of(1 + (i * 7) % 23, i));
    sinks.push_back(bench.submit(requests.back()));
    if (i % 3 == 0) bench.turn();
  }
  bench.run_until_idle();
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    const auto steps = static_cast<std::uint32_t>(requests[i].prompt.tokens.size() * 2);
    EXPECT_EQ(sinks[i]->pcm(), FakeVoice(requests[i].prompt, requests[i].sampling).all(steps)) << i;
    EXPECT_EQ(sinks[i]->finals(), 1);
  }
  EXPECT_EQ(bench.control->most_slots_in_use, SchedulerOptions{}.max_batch);
  EXPECT_THAT(bench.control->breaches(), IsEmpty());
}

TEST(EngineLoop, ARunningStreamStepsInEveryTurnWhileOthersJoin) {
  Bench bench;
  bench.submit(request_of(200));
  bench.turn();  // 64 prompt positions a step: three more turns
  bench.turn();
  bench.turn();
  bench.turn();
  const auto before = bench.control->step_calls.load();
  for (int i = 0; i < 15; ++i) bench.submit(request_of(1500));
  for (int i = 0; i < 20; ++i) bench.turn();
  EXPECT_EQ(bench.control->step_calls, before + 20);
  EXPECT_TRUE(bench.exports("tts_generated_steps_total 20")) << bench.metrics.render();
}

TEST(EngineLoop, FirstComeFirstServed) {
  auto options = at_once();
  options.max_batch = 1;
  Bench bench(options);
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 4; ++i) sinks.push_back(bench.submit(request_of(5)));
  for (std::size_t served = 0; served < sinks.size(); ++served) {
    while (sinks[served]->finals() == 0) bench.turn();
    for (std::size_t later = served + 1; later < sinks.size(); ++later) EXPECT_TRUE(sinks[later]->pcm().empty());
  }
}

TEST(EngineLoop, AnIdleEngineWaitsForCompanyByTheInjectedClock) {
  SchedulerOptions options;
  options.batch_window = milliseconds(2);
  Bench bench(options);
  bench.submit(request_of(5));
  const auto waiting = bench.turn();
  EXPECT_FALSE(waiting.worked);
  EXPECT_EQ(waiting.wake_at, bench.clock.now() + milliseconds(2));
  EXPECT_EQ(bench.control->step_calls, 0U);
  bench.clock.advance(milliseconds(1));
  bench.submit(request_of(5));
  EXPECT_FALSE(bench.turn().worked);
  bench.clock.advance(milliseconds(1));
  EXPECT_TRUE(bench.turn().worked);
  EXPECT_EQ(bench.loop.active(), 2U) << "both start together";
}

TEST(EngineLoop, CancelInTheQueueTakesNoSlot) {
  auto options = at_once();
  options.max_batch = 1;
  Bench bench(options);
  const auto running = bench.submit(request_of(50));
  bench.turn();
  const auto waiting = bench.submit(request_of(5));
  bench.mailbox.cancel(bench.last_id);
  bench.turn();
  ASSERT_TRUE(waiting->error().has_value());
  EXPECT_EQ(waiting->error()->code, ErrorCode::kCancelled);
  EXPECT_EQ(bench.mailbox.queued(), 0U);
  EXPECT_EQ(bench.control->most_slots_in_use, 1U);
  EXPECT_EQ(running->finals(), 0);
  EXPECT_TRUE(bench.exports("tts_utterances_total{stop_reason=\"cancelled\"} 1"));
}

TEST(EngineLoop, CancelFreesTheSlotWithinOneStepAndBeforeTheNextDecode) {
  Bench bench;
  const auto sink = bench.submit(request_of(100));
  for (int i = 0; i < 8; ++i) bench.turn();  // 100 prompt positions in two turns, then 7 steps: one short of the first chunk
  ASSERT_EQ(bench.control->decode_calls, 0U);
  // The cancel arrives while the step that completes the chunk is running.
  bench.control->before_step = [&](std::uint64_t) { bench.mailbox.cancel(bench.last_id); };
  bench.turn();
  EXPECT_EQ(bench.control->decode_calls, 0U);
  const auto steps = bench.control->step_calls.load();
  bench.turn();
  EXPECT_EQ(bench.control->step_calls, steps);
  EXPECT_EQ(sink->error()->code, ErrorCode::kCancelled);
  EXPECT_EQ(bench.control->slots_in_use, 0U);
  EXPECT_EQ(bench.loop.active(), 0U);
}

TEST(EngineLoop, DeadlinesEndWaitingAndRunningUtterances) {
  auto options = at_once();
  options.max_batch = 1;
  Bench bench(options);
  auto request = request_of(100);
  request.deadline = bench.clock.now() + milliseconds(100);
  const auto running = bench.submit(request);
  request.deadline = bench.clock.now() + milliseconds(50);
  const auto waiting = bench.submit(request);
  bench.turn();
  bench.clock.advance(milliseconds(50));
  bench.turn();
  EXPECT_EQ(waiting->error()->code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(running->finals(), 0);
  bench.clock.advance(milliseconds(50));
  bench.turn();
  EXPECT_EQ(running->error()->code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(bench.control->slots_in_use, 0U);
  EXPECT_TRUE(bench.exports("tts_utterances_total{stop_reason=\"deadline\"} 2"));
}

TEST(EngineLoop, APausedUtteranceKeepsItsSlotAndTheLoopSleepsUntilItsDeadline) {
  Bench bench;
  auto request = request_of(100);
  request.deadline = bench.clock.now() + milliseconds(100);
  const auto sink = bench.submit(request);
  for (int i = 0; i < 12; ++i) bench.turn();
  const auto pieces = sink->pieces().size();
  EXPECT_GT(pieces, 0U);
  bench.mailbox.set_paused(bench.last_id, true);
  const auto paused = bench.turn();
  EXPECT_FALSE(paused.worked);
  EXPECT_EQ(paused.wake_at, request.deadline);
  EXPECT_EQ(sink->pieces().size(), pieces);
  EXPECT_EQ(bench.control->slots_in_use, 1U);
  bench.mailbox.set_paused(bench.last_id, false);
  bench.run_until_idle();
  EXPECT_EQ(sink->pcm(), FakeVoice(request.prompt, request.sampling).all(200));
}

TEST(EngineLoop, CancelReachesAPausedUtterance) {
  Bench bench;
  const auto sink = bench.submit(request_of(100));
  bench.turn();
  bench.mailbox.set_paused(bench.last_id, true);
  bench.mailbox.cancel(bench.last_id);
  bench.turn();
  EXPECT_EQ(sink->error()->code, ErrorCode::kCancelled);
}

TEST(EngineLoop, AFailedStepEndsItsRowsAndTheEngineGoesOn) {
  Bench bench;
  bench.control->before_step = test::fail_on_calls({3});
  const auto a = bench.submit(request_of(30));
  const auto b = bench.submit(request_of(30));
  for (int i = 0; i < 3; ++i) bench.turn();
  for (const auto& sink : {a, b}) {
    ASSERT_TRUE(sink->error().has_value());
    EXPECT_EQ(sink->error()->code, ErrorCode::kEngineFailure);
    EXPECT_THAT(sink->error()->message, HasSubstr("error id "));
    EXPECT_EQ(sink->finals(), 1);
  }
  EXPECT_EQ(a->error()->message, b->error()->message);
  EXPECT_EQ(bench.control->slots_in_use, 0U);
  EXPECT_TRUE(bench.exports("tts_engine_failures_total 1"));
  const auto request = request_of(5);
  const auto after = bench.submit(request);
  bench.run_until_idle();
  EXPECT_EQ(after->pcm(), FakeVoice(request.prompt, request.sampling).all(10));
  EXPECT_THAT(bench.control->breaches(), IsEmpty());
}

TEST(EngineLoop, ValuesThatAreNotFiniteEndTheirRowAlone) {
  test::FakeEngineOptions options;
  options.breaks_at = [](const engine::UtterancePrompt& prompt) {
    return prompt.tokens.size() == 30 ? std::optional(7U) : std::nullopt;
  };
  Bench bench(at_once(), options);
  const auto other = request_of(20, 9);
  const auto broken = bench.submit(request_of(30));
  const auto whole = bench.submit(other);
  bench.run_until_idle();
  ASSERT_TRUE(broken->error().has_value());
  EXPECT_EQ(broken->error()->code, ErrorCode::kEngineFailure);
  EXPECT_THAT(broken->error()->message, HasSubstr("error id "));
  EXPECT_EQ(broken->finals(), 1);
  EXPECT_EQ(whole->pcm(), FakeVoice(other.prompt, other.sampling).all(40));
  EXPECT_TRUE(bench.exports("tts_engine_failures_total 1"));
  EXPECT_EQ(bench.control->slots_in_use, 0U);
  EXPECT_THAT(bench.control->breaches(), IsEmpty());
}

TEST(EngineLoop, AFailedDecodeEndsOnlyTheStreamsInIt) {
  Bench bench;
  bench.control->before_decode = test::fail_on_calls({1});
  const auto first = bench.submit(request_of(30));
  for (int i = 0; i < 4; ++i) bench.turn();
  const auto later = request_of(20, 9);
  const auto second = bench.submit(later);
  bench.run_until_idle();
  EXPECT_EQ(first->error()->code, ErrorCode::kEngineFailure);
  EXPECT_EQ(second->pcm(), FakeVoice(later.prompt, later.sampling).all(40));
  EXPECT_THAT(bench.control->breaches(), IsEmpty());
}

TEST(EngineLoop, RepeatedFailuresShowInHealthUntilOneSucceeds) {
  Bench bench;
  bench.control->before_step = test::fail_on_calls({1, 2, 3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(bench.progress.health(bench.clock.now()).ready);
    bench.submit(request_of(5));
    bench.run_until_idle();
  }
  EXPECT_FALSE(bench.progress.health(bench.clock.now()).ready);
  bench.submit(request_of(5));
  bench.run_until_idle();
  EXPECT_TRUE(bench.progress.health(bench.clock.now()).ready);
}

TEST(EngineLoop, ARejectedPromptGetsItsErrorAndNoSlot) {
  Bench bench;
  auto request = request_of(5);
  request.prompt.tokens[2] = -1;
  const auto bad = bench.submit(request);
  const auto empty = bench.submit(request_of(0));
  const auto good = bench.submit(request_of(5));
  bench.run_until_idle();
  EXPECT_EQ(bad->error()->code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(empty->error()->code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(good->summary().has_value());
  EXPECT_EQ(bench.mailbox.queued(), 0U);
}

TEST(EngineLoop, AnEngineThatCannotTakeAnUtteranceSaysSoAndGoesOn) {
  Bench bench;
  bench.control->before_acquire = [&] {
    if (bench.last_id == 1) throw std::runtime_error("cannot read the speaker");
  };
  const auto lost = bench.submit(request_of(5));
  bench.turn();
  ASSERT_TRUE(lost->error().has_value());
  EXPECT_EQ(lost->error()->code, ErrorCode::kEngineFailure);
  EXPECT_EQ(lost.use_count(), 1);
  EXPECT_EQ(bench.mailbox.queued(), 0U);
  EXPECT_EQ(bench.loop.active(), 0U);
  const auto fine = bench.submit(request_of(5));
  bench.run_until_idle();
  EXPECT_TRUE(fine->summary().has_value());
}

class ThrowingSink final : public engine::UtteranceSink {
 public:
  void on_pcm(std::span<const float>, bool) override { throw std::runtime_error("broken receiver"); }
  void on_done(const engine::UtteranceSummary&) override { ++finals; }
  void on_error(const Error& error) override {
    ++finals;
    code = error.code;
    throw 7;
  }
  int finals = 0;
  ErrorCode code = ErrorCode::kInternal;
};

TEST(EngineLoop, AReceiverThatThrowsIsCancelledAndHarmsNobody) {
  Bench bench;
  const auto broken = std::make_shared<ThrowingSink>();
  ASSERT_TRUE(bench.mailbox.post(request_of(30), broken).ok());
  const auto request = request_of(30, 2);
  const auto fine = bench.submit(request);
  bench.run_until_idle();
  EXPECT_EQ(broken->finals, 1);
  EXPECT_EQ(broken->code, ErrorCode::kCancelled);
  EXPECT_EQ(fine->pcm(), FakeVoice(request.prompt, request.sampling).all(60));
  EXPECT_EQ(bench.control->slots_in_use, 0U);
}

TEST(EngineLoop, StoppingFinishesWhatWasAccepted) {
  SchedulerOptions options;
  options.max_batch = 1;
  options.batch_window = milliseconds(50);
  Bench bench(options);
  const auto a = bench.submit(request_of(5));
  const auto b = bench.submit(request_of(5));
  bench.mailbox.begin_stop(bench.clock.now() + milliseconds(1000));
  EXPECT_TRUE(bench.turn().worked) << "a stopping engine does not wait for company";
  EngineLoop::Turn turn;
  for (int i = 0; i < 1000 && !turn.finished; ++i) turn = bench.turn();
  EXPECT_TRUE(turn.finished);
  EXPECT_TRUE(a->summary().has_value());
  EXPECT_TRUE(b->summary().has_value());
}

TEST(EngineLoop, AfterTheGraceTheRestIsCut) {
  auto options = at_once();
  options.max_batch = 1;
  Bench bench(options);
  const auto running = bench.submit(request_of(500));
  const auto waiting = bench.submit(request_of(5));
  bench.turn();
  bench.mailbox.set_paused(bench.last_id - 1, true);
  bench.mailbox.begin_stop(bench.clock.now() + milliseconds(1000));
  const auto turn = bench.turn();
  EXPECT_FALSE(turn.finished);
  EXPECT_EQ(turn.wake_at, bench.clock.now() + milliseconds(1000)) << "a paused listener does not hold up the stop for ever";
  bench.clock.advance(milliseconds(1000));
  EXPECT_TRUE(bench.turn().finished);
  EXPECT_EQ(running->error()->code, ErrorCode::kUnavailable);
  EXPECT_EQ(waiting->error()->code, ErrorCode::kUnavailable);
  EXPECT_EQ(bench.control->slots_in_use, 0U);
}

TEST(EngineLoop, ASlotThatIsReusedSpeaksOnlyForItsNewOwner) {
  auto options = at_once();
  options.max_batch = 1;
  Bench bench(options);
  const auto first = bench.submit(request_of(100));
  for (int i = 0; i < 20; ++i) bench.turn();
  bench.mailbox.cancel(bench.last_id);
  const auto request = request_of(10, 77);
  const auto second = bench.submit(request);
  bench.run_until_idle();
  EXPECT_EQ(first->error()->code, ErrorCode::kCancelled);
  EXPECT_EQ(first->calls_after_final(), 0);
  EXPECT_EQ(second->pcm(), FakeVoice(request.prompt, request.sampling).all(20));
}

TEST(EngineLoop, PassesOnWhatTheEngineCounted) {
  Bench bench;
  bench.control->stats = {.prefix_cache_hits = 2, .prefix_cache_misses = 3, .prefix_cache_bytes = 500};
  bench.submit(request_of(5));
  bench.run_until_idle();
  bench.control->stats = {.prefix_cache_hits = 4, .prefix_cache_misses = 3, .prefix_cache_bytes = 400};
  bench.submit(request_of(5));
  bench.run_until_idle();
  EXPECT_TRUE(bench.exports("tts_prefix_cache_hits_total 4"));
  EXPECT_TRUE(bench.exports("tts_prefix_cache_misses_total 3"));
  EXPECT_TRUE(bench.exports("tts_prefix_cache_bytes 400"));
}

TEST(EngineLoop, TheLastPieceSaysSo) {
  test::FakeEngineOptions engine;
  engine.info.lookahead_steps = 10;
  Bench bench(at_once(), engine);
  const auto sink = bench.submit(request_of(60));
  bench.turn();
  while (sink->pieces().empty()) bench.turn();
  EXPECT_FALSE(sink->last_seen());
  bench.run_until_idle();
  EXPECT_TRUE(sink->last_seen());
  EXPECT_EQ(sink->calls_after_final(), 0);
}

TEST(EngineLoop, SilenceOfAListenerIsCounted) {
  Bench bench;
  const auto sink = bench.submit(request_of(60));
  while (sink->pieces().empty()) bench.turn();  // 8 steps but half of one: 160 ms
  bench.clock.advance(milliseconds(260));
  while (sink->pieces().size() < 2) bench.turn();
  EXPECT_TRUE(bench.exports("tts_underruns_total 1")) << bench.metrics.render();
  EXPECT_TRUE(bench.exports("tts_underrun_seconds_total 0.1"));
  EXPECT_TRUE(bench.exports("tts_playback_slack_seconds_count 1"));
}

TEST(EngineLoop, WhatTheSenderReportsReplacesTheEstimate) {
  Bench bench;
  const auto sink = bench.submit(request_of(60));
  while (sink->pieces().empty()) bench.turn();
  bench.clock.advance(milliseconds(260));
  bench.mailbox.set_runs_dry_at(bench.last_id, bench.clock.now() + milliseconds(500));
  while (sink->pieces().size() < 2) bench.turn();
  EXPECT_TRUE(bench.exports("tts_underruns_total 0"));
  EXPECT_TRUE(bench.exports("tts_playback_slack_seconds_sum 0.5"));
}

TEST(EngineLoop, APausedListenerHasEnough) {
  Bench bench;
  const auto sink = bench.submit(request_of(60));
  while (sink->pieces().empty()) bench.turn();
  bench.mailbox.set_paused(bench.last_id, true);
  for (int i = 0; i < 10; ++i) {
    bench.turn();
    bench.clock.advance(milliseconds(100));
  }
  bench.turn();
  bench.mailbox.set_paused(bench.last_id, false);
  bench.run_until_idle();
  EXPECT_TRUE(bench.exports("tts_underruns_total 0")) << bench.metrics.render();
}

TEST(EngineLoop, ALaterSentenceThatComesTooLateIsASilence) {
  Bench bench;
  auto request = request_of(60);
  request.listener = 5;
  request.runs_dry_at = bench.clock.now() - milliseconds(250);
  bench.submit(request);
  bench.run_until_idle();
  EXPECT_TRUE(bench.exports("tts_underruns_total 1"));
  EXPECT_TRUE(bench.exports("tts_underrun_seconds_total 0.25"));
}

// Early sound at once: nothing takes time here, so every machine is fast enough for it.
SchedulerOptions low_latency() {
  auto options = at_once();
  options.latency = LatencyMode::kLow;
  return options;
}

test::FakeEngineOptions looking_far_ahead() {
  test::FakeEngineOptions engine;
  engine.info.lookahead_steps = 52;
  engine.info.max_pending_steps = 32;
  return engine;
}

TEST(EngineLoop, EveryPieceOfLowLatencyIsCountedTheFirstToo) {
  Bench bench(low_latency(), looking_far_ahead());
  int early = 0;
  bench.control->decode_work = [&](std::span<const engine::DecodeWork> work) {
    for (const auto& one : work) early += !one.last && one.lookahead < 52 ? 1 : 0;
  };
  const auto sink = bench.submit(request_of(60));
  while (sink->pieces().empty()) bench.turn();
  EXPECT_EQ(early, 1);
  EXPECT_TRUE(bench.exports("tts_low_latency_pieces_total 1")) << bench.metrics.render();
  bench.clock.advance(milliseconds(50));  // short of sound: one more
  bench.run_until_idle();
  EXPECT_GT(early, 1);
  EXPECT_TRUE(bench.exports("tts_low_latency_pieces_total " + std::to_string(early)));
}

TEST(EngineLoop, ListenersWhoPausedInEarlySoundDoNotKeepItFromOthers) {
  Bench bench(low_latency(), looking_far_ahead());
  std::vector<std::shared_ptr<RecordingSink>> begun;
  std::vector<engine::UtteranceId> ids;
  for (int i = 0; i < 4; ++i) {
    begun.push_back(bench.submit(request_of(60)));
    ids.push_back(bench.last_id);
  }
  for (const auto& sink : begun) {
    while (sink->pieces().empty()) bench.turn();
  }
  for (const auto id : ids) bench.mailbox.set_paused(id, true);
  const auto newcomer = bench.submit(request_of(60));
  for (int i = 0; i < 40; ++i) bench.turn();
  EXPECT_FALSE(newcomer->pieces().empty()) << "10 steps of lookahead, not 52";
}

// What the next newcomer is told after three utterances of 100 steps on an engine with one slot.
Duration wait_after_three(bool of_one_listener) {
  auto options = at_once();
  options.max_batch = 1;
  Bench bench(options);
  bench.control->before_step = [&](std::uint64_t) { bench.clock.advance(milliseconds(5)); };
  bench.control->before_decode = [&](std::uint64_t) { bench.clock.advance(milliseconds(2)); };
  for (std::uint64_t i = 0; i < 3; ++i) {
    auto request = request_of(50);
    request.listener = of_one_listener ? 1 : 1 + i;
    if (of_one_listener && i > 0) request.runs_dry_at = bench.clock.now();
    bench.submit(request);
    bench.run_until_idle();
  }
  bench.submit(request_of(500));
  bench.turn();
  return bench.mailbox.expected_wait();
}

TEST(EngineLoop, AListenerKeepsItsPlaceUntilTheLastSentence) {
  const auto one = wait_after_three(true), three = wait_after_three(false);
  EXPECT_GT(three, milliseconds(400));
  EXPECT_NEAR(static_cast<double>(one.count()), 3.0 * static_cast<double>(three.count()), 0.05 * static_cast<double>(one.count()));
}

TEST(EngineLoop, NobodyListensToAFile) {
  Bench bench;
  auto request = request_of(60);
  request.delivery = engine::Delivery::kWhole;
  const auto sink = bench.submit(request);
  bench.control->before_step = [&](std::uint64_t) { bench.clock.advance(milliseconds(500)); };
  bench.run_until_idle();
  EXPECT_TRUE(bench.exports("tts_playback_slack_seconds_count 0"));
  EXPECT_EQ(sink->pieces().front(), 64U * 512U - 256U) << "as much as a slot holds";
}

TEST(EngineLoop, TheSentenceAheadTakesNoSlotThatANewcomerWants) {
  auto options = at_once();
  options.max_batch = 4;
  Bench bench(options);
  auto request = request_of(200);
  request.listener = 1;
  bench.submit(request);
  for (int i = 0; i < 2; ++i) bench.submit(request_of(200));
  bench.turn();
  request.runs_dry_at = bench.clock.now() + milliseconds(300);
  const auto ahead = bench.submit(request);
  bench.submit(request_of(200));
  bench.turn();
  EXPECT_EQ(bench.loop.active(), 4U);
  EXPECT_EQ(bench.mailbox.queued(), 1U) << "the listener's second sentence";
  bench.run_until_idle();
  EXPECT_TRUE(ahead->summary().has_value());
}

TEST(EngineLoop, ReportsWhatItCanServeOnceMeasured) {
  Bench bench;
  EXPECT_EQ(bench.loop.realtime_streams(), 0U);
  bench.control->before_step = [&](std::uint64_t) { bench.clock.advance(milliseconds(4)); };
  bench.control->before_decode = [&](std::uint64_t) { bench.clock.advance(milliseconds(2)); };
  bench.submit(request_of(60));
  bench.run_until_idle();
  EXPECT_GE(bench.loop.realtime_streams(), 4U);
  EXPECT_LE(bench.loop.realtime_streams(), 16U);
}

TEST(EngineLoop, MeasuresWithTheInjectedClock) {
  Bench bench;
  bench.control->before_step = [&](std::uint64_t) { bench.clock.advance(milliseconds(15)); };
  bench.control->before_decode = [&](std::uint64_t) { bench.clock.advance(milliseconds(3)); };
  bench.submit(request_of(4));  // prompt and first step, 7 more steps, the end token: 9 steps; one decode of 8
  bench.run_until_idle();
  EXPECT_TRUE(bench.exports("tts_step_seconds_count 9"));
  EXPECT_TRUE(bench.exports("tts_step_seconds_sum 0.135")) << bench.metrics.render();
  EXPECT_TRUE(bench.exports("tts_decode_seconds_count 2"));
  EXPECT_TRUE(bench.exports("tts_decoded_steps_total 8"));
  EXPECT_TRUE(bench.exports("tts_prefill_tokens_total 4"));
  EXPECT_TRUE(bench.exports("tts_utterances_total{stop_reason=\"end_token\"} 1"));
  EXPECT_TRUE(bench.exports("tts_active_rows 0"));
}

}  // namespace
}  // namespace tts::scheduling
