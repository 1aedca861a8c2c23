// Rows whose listeners pause give their slots to others and come back: who leaves when, what limits it, and every way in which it ends.
#include "parking.h"

#include <new>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench.h"

namespace tts::scheduling {
namespace {

using std::chrono::milliseconds;
using test::FakeVoice;
using test::RecordingSink;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const milliseconds kParkAfter = SchedulerOptions{}.park_after;

SchedulerOptions slots(std::uint32_t count) {
  auto options = at_once();
  options.max_batch = count;
  return options;
}

struct Speaker {
  engine::UtteranceRequest request;
  std::shared_ptr<RecordingSink> sink;
  engine::UtteranceId id = 0;

  std::vector<float> expected() const {
    return FakeVoice(request.prompt, request.sampling).all(static_cast<std::uint32_t>(request.prompt.tokens.size() * 2));
  }
};

class ParkingTest : public ::testing::Test {
 protected:
  explicit ParkingTest(SchedulerOptions options = slots(1), test::FakeEngineOptions engine = {})
      : bench_(std::move(options), std::move(engine)) {}

  void TearDown() override {
    EXPECT_THAT(bench_.control->breaches(), IsEmpty());
    EXPECT_EQ(bench_.control->parked, bench_.loop.parked());
  }

  Speaker submit(engine::UtteranceRequest request) {
    Speaker speaker{.request = request, .sink = bench_.submit(std::move(request)), .id = 0};
    speaker.id = bench_.last_id;
    return speaker;
  }
  Speaker submit(std::size_t prompt_tokens = 60) { return submit(request_of(prompt_tokens, ++seed_)); }

  // One that has begun to sound.
  Speaker begun(engine::UtteranceRequest request) {
    Speaker speaker = submit(std::move(request));
    while (speaker.sink->pieces().empty()) bench_.turn();
    return speaker;
  }
  Speaker begun(std::size_t prompt_tokens = 60) { return begun(request_of(prompt_tokens, ++seed_)); }

  void pause(const Speaker& speaker, bool paused = true) {
    bench_.mailbox.set_paused(speaker.id, paused);
    bench_.turn();
  }
  void resume(const Speaker& speaker) { pause(speaker, false); }

  // Has begun, and lost its slot to the other, who is returned.
  Speaker park(const Speaker& speaker, std::size_t prompt_tokens = 60) {
    pause(speaker);
    bench_.clock.advance(kParkAfter);
    Speaker other = submit(prompt_tokens);
    bench_.turn();
    EXPECT_EQ(bench_.loop.parked(), 1U);
    return other;
  }

  void finish(const Speaker& speaker) {
    for (int i = 0; i < 10000 && speaker.sink->finals() == 0; ++i) bench_.turn();
    EXPECT_EQ(speaker.sink->pcm(), speaker.expected());
    EXPECT_TRUE(speaker.sink->summary().has_value());
  }

  void expect_error(const Speaker& speaker, ErrorCode code) {
    ASSERT_TRUE(speaker.sink->error().has_value());
    EXPECT_EQ(speaker.sink->error()->code, code);
    EXPECT_EQ(speaker.sink->finals(), 1);
    EXPECT_EQ(speaker.sink->calls_after_final(), 0);
    EXPECT_EQ(speaker.sink.use_count(), 1);
  }

  Bench bench_;
  std::uint64_t seed_ = 0;
};

TEST_F(ParkingTest, AfterASecondOthersGetTheSlotAndTheRowComesBack) {
  const Speaker slow = begun();
  const auto heard = slow.sink->pcm().size();
  pause(slow);
  const Speaker other = submit();
  const auto turn = bench_.turn();
  EXPECT_FALSE(turn.worked);
  EXPECT_EQ(turn.wake_at, bench_.clock.now() + kParkAfter);
  bench_.clock.advance(kParkAfter - milliseconds(1));
  EXPECT_FALSE(bench_.turn().worked);
  EXPECT_EQ(bench_.loop.parked(), 0U);

  bench_.clock.advance(milliseconds(1));
  EXPECT_TRUE(bench_.turn().worked);
  EXPECT_EQ(bench_.loop.parked(), 1U);
  EXPECT_EQ(bench_.loop.active(), 1U);
  EXPECT_TRUE(bench_.exports("tts_parked_utterances 1"));
  EXPECT_TRUE(bench_.exports("tts_parked_bytes " + std::to_string(test::FakeEngineOptions{}.parking_bytes))) << bench_.metrics.render();
  EXPECT_TRUE(bench_.exports("tts_active_rows 1"));
  finish(other);
  bench_.run_until_idle();
  EXPECT_EQ(slow.sink->pcm().size(), heard);
  EXPECT_EQ(bench_.control->slots_in_use, 0U);

  resume(slow);
  EXPECT_EQ(bench_.loop.parked(), 0U);
  finish(slow);
  EXPECT_TRUE(bench_.exports("tts_parked_total 1"));
  EXPECT_TRUE(bench_.exports("tts_unparked_total 1"));
  EXPECT_TRUE(bench_.exports("tts_parked_utterances 0"));
  EXPECT_TRUE(bench_.exports("tts_parked_bytes 0"));
}

TEST_F(ParkingTest, WhileNobodyWaitsARowKeepsItsSlot) {
  const Speaker slow = begun();
  pause(slow);
  for (int i = 0; i < 10; ++i) {
    bench_.clock.advance(kParkAfter);
    EXPECT_FALSE(bench_.turn().worked);
  }
  EXPECT_EQ(bench_.loop.parked(), 0U);
  resume(slow);
  finish(slow);
}

TEST_F(ParkingTest, EveryPauseBeginsAnew) {
  const Speaker slow = begun();
  const Speaker other = submit();
  for (int i = 0; i < 3; ++i) {
    pause(slow);
    bench_.clock.advance(kParkAfter - milliseconds(1));
    resume(slow);
  }
  EXPECT_EQ(bench_.loop.parked(), 0U);
  EXPECT_EQ(other.sink->finals(), 0);
  bench_.run_until_idle();
}

TEST_F(ParkingTest, AtAnyMomentOfAnUtterance) {
  // 200 prompt positions in four turns, 400 steps, the end.
  for (const int turns : {1, 2, 3, 4, 5, 9, 13, 14, 60, 200, 403, 404, 405}) {
    const Speaker slow = submit(200);
    for (int i = 0; i < turns; ++i) bench_.turn();
    if (slow.sink->finals() > 0) continue;
    const Speaker other = park(slow);
    finish(other);
    resume(slow);
    finish(slow);
    EXPECT_EQ(bench_.control->parked, 0U);
  }
}

TEST_F(ParkingTest, TextRowsTooKeepWhatTheyHave) {
  auto request = request_of(40);
  request.prompt.stage = engine::Stage::kText;
  request.prompt.end_token = 5;
  const Speaker slow = submit(request);
  for (int i = 0; i < 20; ++i) bench_.turn();
  const Speaker other = park(slow);
  finish(other);
  resume(slow);
  bench_.run_until_idle();
  ASSERT_TRUE(slow.sink->summary().has_value());
  const std::vector<std::int32_t> tokens = slow.sink->summary()->text_tokens;
  ASSERT_EQ(tokens.size(), 80U);
  for (std::uint32_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], FakeVoice(request.prompt, request.sampling).token(i));
}

TEST_F(ParkingTest, WhoComesBackIsServedBeforeNewcomers) {
  const Speaker slow = begun();
  const Speaker other = park(slow);
  const Speaker newcomer = submit();
  resume(slow);
  EXPECT_EQ(bench_.loop.parked(), 1U) << "waits for the slot";
  const auto heard = slow.sink->pcm().size();
  while (other.sink->finals() == 0) {
    EXPECT_EQ(slow.sink->pcm().size(), heard);
    bench_.turn();
  }
  finish(slow);
  EXPECT_TRUE(newcomer.sink->pcm().empty());
  finish(newcomer);
}

TEST_F(ParkingTest, WhoPausesAgainWhileWaitingForASlotLetsNewcomersPass) {
  const Speaker slow = begun();
  const Speaker other = park(slow);
  resume(slow);
  const Speaker newcomer = submit();
  pause(slow);
  finish(other);
  finish(newcomer);
  EXPECT_EQ(bench_.loop.parked(), 1U);
  resume(slow);
  finish(slow);
}

TEST_F(ParkingTest, CancelEndsAParkedRow) {
  const Speaker slow = begun();
  const Speaker other = park(slow);
  bench_.mailbox.cancel(slow.id);
  bench_.turn();
  expect_error(slow, ErrorCode::kCancelled);
  EXPECT_EQ(bench_.control->parked, 0U);
  EXPECT_TRUE(bench_.exports("tts_parked_utterances 0"));
  EXPECT_TRUE(bench_.exports("tts_parked_bytes 0"));
  EXPECT_TRUE(bench_.exports("tts_unparked_total 0"));
  finish(other);
}

TEST_F(ParkingTest, TheDeadlineOfAParkedRowWakesTheLoop) {
  auto request = request_of(60);
  request.deadline = bench_.clock.now() + milliseconds(5000);
  const Speaker slow = begun(request);
  finish(park(slow));
  bench_.run_until_idle();
  EXPECT_EQ(bench_.turn().wake_at, request.deadline);
  bench_.clock.advance(request.deadline - bench_.clock.now());
  bench_.turn();
  expect_error(slow, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(bench_.control->parked, 0U);
}

TEST_F(ParkingTest, AStopWaitsForParkedRowsAndCutsThemAtItsEnd) {
  const Speaker slow = begun();
  const Speaker other = park(slow);
  const TimePoint cut = bench_.clock.now() + milliseconds(2000);
  bench_.mailbox.begin_stop(cut);
  finish(other);
  bench_.run_until_idle();
  const auto turn = bench_.turn();
  EXPECT_FALSE(turn.finished);
  EXPECT_EQ(turn.wake_at, cut);
  bench_.clock.advance(cut - bench_.clock.now());
  EXPECT_TRUE(bench_.turn().finished);
  expect_error(slow, ErrorCode::kUnavailable);
  EXPECT_EQ(bench_.control->parked, 0U);
}

TEST_F(ParkingTest, AStoppingEngineLetsParkedRowsFinish) {
  const Speaker slow = begun();
  const Speaker other = park(slow);
  bench_.mailbox.begin_stop(bench_.clock.now() + milliseconds(2000));
  resume(slow);
  finish(other);
  finish(slow);
  EXPECT_TRUE(bench_.turn().finished);
}

TEST_F(ParkingTest, AFailingCopyLeavesTheRowWhereItIs) {
  int tries = 0;
  bench_.control->before_park = [&] {
    if (++tries <= 2) throw std::bad_alloc();
  };
  const Speaker slow = begun();
  pause(slow);
  bench_.clock.advance(kParkAfter);
  const Speaker other = submit();
  const auto turn = bench_.turn();
  EXPECT_EQ(tries, 1);
  EXPECT_FALSE(turn.worked);
  EXPECT_EQ(turn.wake_at, bench_.clock.now() + milliseconds(1000)) << "then another try";
  EXPECT_EQ(bench_.loop.active(), 1U);
  bench_.clock.advance(milliseconds(1000));
  bench_.turn();
  EXPECT_EQ(tries, 2);
  resume(slow);
  finish(slow);
  finish(other);
  EXPECT_TRUE(bench_.exports("tts_parked_total 0"));
  EXPECT_TRUE(bench_.exports("tts_engine_failures_total 0"));
}

TEST_F(ParkingTest, AnEngineThatFailsOnTheWayBackEndsThatRowAlone) {
  bench_.control->before_unpark = [] { throw std::runtime_error("device lost"); };
  const Speaker slow = begun();
  const Speaker other = park(slow);
  finish(other);
  resume(slow);
  bench_.turn();
  expect_error(slow, ErrorCode::kEngineFailure);
  EXPECT_EQ(bench_.control->parked, 0U);
  EXPECT_EQ(bench_.control->slots_in_use, 0U);
  EXPECT_TRUE(bench_.exports("tts_parked_bytes 0"));
  EXPECT_TRUE(bench_.exports("tts_unparked_total 0"));
  finish(submit());
}

TEST_F(ParkingTest, AFailedStepSparesParkedRows) {
  const Speaker slow = begun();
  const Speaker other = park(slow);
  bench_.control->before_step = test::fail_on_calls({bench_.control->step_calls + 1});
  bench_.turn();
  EXPECT_EQ(other.sink->error()->code, ErrorCode::kEngineFailure);
  resume(slow);
  finish(slow);
}

TEST_F(ParkingTest, NewcomersAreToldOfSlotsThatCanBeHad) {
  bench_.control->before_step = [&](std::uint64_t) { bench_.clock.advance(milliseconds(4)); };
  bench_.control->before_decode = [&](std::uint64_t) { bench_.clock.advance(milliseconds(2)); };
  finish(submit(200));  // how long a slot is kept is known
  const Speaker slow = begun(500);
  EXPECT_GT(bench_.mailbox.expected_wait(), Duration(0));
  pause(slow);
  EXPECT_EQ(bench_.mailbox.expected_wait(), Duration(0));
  resume(slow);
  EXPECT_GT(bench_.mailbox.expected_wait(), Duration(0));
  bench_.mailbox.cancel(slow.id);
  bench_.run_until_idle();
}

// Of the wait that newcomers are told: a pause is not time for which a listener keeps a place.
TEST_F(ParkingTest, PausesDoNotCountAsTimeInASlot) {
  const auto wait_after = [](bool parked_meanwhile) {
    Bench bench(slots(1));
    bench.control->before_step = [&](std::uint64_t) { bench.clock.advance(milliseconds(4)); };
    bench.control->before_decode = [&](std::uint64_t) { bench.clock.advance(milliseconds(2)); };
    const auto slow = bench.submit(request_of(60));
    const auto id = bench.last_id;
    if (parked_meanwhile) {
      while (slow->pieces().empty()) bench.turn();
      bench.mailbox.set_paused(id, true);
      bench.turn();
      bench.clock.advance(kParkAfter);
      bench.submit(request_of(60));
      bench.run_until_idle();
      EXPECT_EQ(bench.loop.parked(), 1U);
      bench.mailbox.set_paused(id, false);
    }
    bench.run_until_idle();
    EXPECT_TRUE(slow->summary().has_value());
    bench.submit(request_of(500));
    bench.turn();
    return std::chrono::duration<double>(bench.mailbox.expected_wait()).count();
  };
  EXPECT_NEAR(wait_after(true), wait_after(false), 0.1 * wait_after(false));
}

TEST_F(ParkingTest, WhoIsPausedInTheQueueTakesNoSlot) {
  const Speaker running = begun();
  const Speaker paused = submit(), other = submit();
  bench_.mailbox.set_paused(paused.id, true);
  finish(running);
  finish(other);
  bench_.run_until_idle();
  EXPECT_EQ(bench_.control->slots_in_use, 0U);
  EXPECT_EQ(bench_.mailbox.queued(), 1U);
  resume(paused);
  finish(paused);
}

class TwoSlots : public ParkingTest {
 protected:
  TwoSlots() : ParkingTest(slots(2)) {}
};

TEST_F(TwoSlots, TheLongestPausedLeavesFirst) {
  const Speaker first = begun(), second = begun();
  pause(second);
  bench_.clock.advance(milliseconds(10));
  pause(first);
  bench_.clock.advance(kParkAfter);
  const Speaker other = submit();
  bench_.turn();
  EXPECT_EQ(bench_.loop.parked(), 1U);
  resume(first);
  EXPECT_EQ(bench_.loop.parked(), 1U) << "the first still has its slot";
  finish(first);
  finish(other);
  resume(second);
  finish(second);
}

TEST_F(TwoSlots, APauseThatHasJustEndedKeepsItsSlot) {
  const Speaker first = begun(), second = begun();
  pause(first);
  pause(second);
  bench_.clock.advance(kParkAfter);
  bench_.control->before_acquire = [&] { bench_.mailbox.set_paused(second.id, false); };
  const Speaker third = submit(), fourth = submit();
  bench_.turn();
  EXPECT_EQ(bench_.loop.parked(), 1U);
  finish(second);
  finish(third);
  finish(fourth);
  resume(first);
  finish(first);
}

TEST_F(TwoSlots, CopiesThatTakeLongAreSpreadOverTurns) {
  bench_.control->before_park = [&] { bench_.clock.advance(milliseconds(15)); };
  const Speaker first = begun(), second = begun();
  pause(first);
  pause(second);
  bench_.clock.advance(kParkAfter);
  const Speaker third = submit(), fourth = submit();
  EXPECT_TRUE(bench_.turn().worked);
  EXPECT_EQ(bench_.loop.parked(), 1U);
  EXPECT_TRUE(bench_.turn().worked);
  EXPECT_EQ(bench_.loop.parked(), 2U);
  bench_.control->before_unpark = [&] { bench_.clock.advance(milliseconds(15)); };
  finish(third);
  finish(fourth);
  bench_.mailbox.set_paused(first.id, false);
  resume(second);
  EXPECT_EQ(bench_.loop.parked(), 1U);
  EXPECT_EQ(bench_.loop.active(), 1U);
  bench_.turn();
  EXPECT_EQ(bench_.loop.parked(), 0U);
  finish(first);
  finish(second);
}

// In order of need, whoever paused first.
TEST_F(TwoSlots, WhoRunsDryFirstComesBackFirst) {
  const Speaker first = begun(), second = begun();
  pause(first);
  pause(second);
  bench_.clock.advance(kParkAfter);
  const Speaker third = submit(200), fourth = submit(100);
  bench_.turn();
  EXPECT_EQ(bench_.loop.parked(), 2U);
  bench_.mailbox.set_runs_dry_at(first.id, bench_.clock.now() + milliseconds(500));
  bench_.mailbox.set_runs_dry_at(second.id, bench_.clock.now() + milliseconds(100));
  resume(first);
  resume(second);
  EXPECT_EQ(bench_.loop.parked(), 2U);
  finish(fourth);
  const auto of_first = first.sink->pcm().size();
  finish(second);
  EXPECT_EQ(first.sink->pcm().size(), of_first);
  finish(third);
  finish(first);
}

// The sentence after the one whose listener pauses, made ahead while others have no need of its slot.
TEST(Parking, ALaterSentenceThatIsParkedLeadsOnceTheEarlierOneHasEnded) {
  Bench bench(slots(8));
  auto request = request_of(100, 1);
  request.listener = 7;
  const auto earlier = bench.submit(request);
  while (earlier->pieces().empty()) bench.turn();
  request.sampling.seed = 2;
  request.runs_dry_at = bench.clock.now() + milliseconds(500);
  const auto later = bench.submit(request);
  const auto later_id = bench.last_id;
  while (later->pieces().empty()) bench.turn();
  bench.mailbox.set_paused(later_id, true);
  bench.mailbox.set_paused(1, true);  // both rest, so that newcomers can fill the slots
  bench.turn();
  bench.clock.advance(kParkAfter);
  std::vector<std::shared_ptr<RecordingSink>> others;
  for (std::uint64_t i = 0; i < 8; ++i) others.push_back(bench.submit(request_of(100, 10 + i)));
  bench.turn();
  EXPECT_EQ(bench.loop.parked(), 2U);
  for (const auto& other : others) {
    while (other->finals() == 0) bench.turn();
  }
  EXPECT_EQ(bench.loop.parked(), 2U);
  const auto heard = [&] {
    const std::string text = bench.metrics.render(), name = "tts_playback_slack_seconds_count ";
    return std::stoi(text.substr(text.find(name) + name.size()));
  };
  bench.mailbox.set_paused(1, false);
  while (earlier->finals() == 0) bench.turn();
  const int before = heard();
  bench.mailbox.set_paused(later_id, false);
  while (later->finals() == 0) bench.turn();
  EXPECT_GT(heard(), before) << "what a sentence ahead of its turn gives is not heard yet, and so not counted";
  EXPECT_EQ(earlier->pcm(), FakeVoice(request.prompt, [&] { auto s = request.sampling; s.seed = 1; return s; }()).all(200));
  EXPECT_EQ(later->pcm(), FakeVoice(request.prompt, request.sampling).all(200));
}

TEST_F(TwoSlots, TheNextSentenceOfAParkedListenerIsNotDueYet) {
  auto request = request_of(60, 1);
  request.listener = 7;
  const Speaker earlier = begun(request), other = begun();
  bench_.mailbox.set_runs_dry_at(other.id, bench_.clock.now() + milliseconds(9000));  // nobody joins while a listener is short
  const Speaker third = park(earlier, 500);
  request.runs_dry_at = bench_.clock.now() + milliseconds(300);
  const Speaker next = submit(request);
  const Speaker newcomer = submit();
  finish(other);
  finish(newcomer);
  EXPECT_TRUE(next.sink->pcm().empty()) << "it would be heard after the one that is parked, so newcomers go first";
  resume(earlier);
  finish(earlier);
  finish(next);
  finish(third);
}

class FewMebibytes : public ParkingTest {
 protected:
  FewMebibytes() : ParkingTest(options()) {}
  static SchedulerOptions options() {
    auto options = slots(3);
    options.max_parked_mb = 2;  // of 1 MiB each
    return options;
  }
};

TEST_F(FewMebibytes, AtTheCapRowsKeepTheirSlots) {
  const Speaker slow[] = {begun(), begun(), begun()};
  for (const Speaker& one : slow) pause(one);
  bench_.clock.advance(kParkAfter);
  std::vector<Speaker> others;
  for (int i = 0; i < 3; ++i) others.push_back(submit(200));
  for (int i = 0; i < 10; ++i) bench_.turn();
  EXPECT_EQ(bench_.loop.parked(), 2U);
  EXPECT_EQ(bench_.mailbox.queued(), 1U);
  EXPECT_TRUE(bench_.exports("tts_parked_bytes " + std::to_string(2U << 20U))) << bench_.metrics.render();
  bench_.mailbox.cancel(slow[0].id);  // parked: there is room for another
  bench_.turn();
  bench_.turn();
  EXPECT_EQ(bench_.loop.parked(), 2U);
  EXPECT_EQ(bench_.mailbox.queued(), 0U);
  for (const Speaker& other : others) finish(other);
  for (const Speaker& one : {slow[1], slow[2]}) {
    resume(one);
    finish(one);
  }
}

// Both cap and slots are full of paused ones: who comes back has the room of who goes.
TEST_F(FewMebibytes, AtTheCapRowsChangePlaces) {
  const Speaker slow[] = {begun(), begun()};
  for (const Speaker& one : slow) pause(one);
  bench_.clock.advance(kParkAfter);
  const Speaker later[] = {begun(), begun(), begun()};
  EXPECT_EQ(bench_.loop.parked(), 2U);
  for (const Speaker& one : later) pause(one);
  bench_.clock.advance(kParkAfter);
  resume(slow[0]);
  EXPECT_EQ(bench_.loop.parked(), 2U);
  EXPECT_TRUE(bench_.exports("tts_parked_bytes " + std::to_string(2U << 20U))) << bench_.metrics.render();
  EXPECT_TRUE(bench_.exports("tts_unparked_total 1"));
  finish(slow[0]);
  for (const Speaker& one : {slow[1], later[0], later[1], later[2]}) {
    resume(one);
    finish(one);
  }
  EXPECT_TRUE(bench_.exports("tts_parked_bytes 0"));
}

TEST(Parking, CanBeSwitchedOffAndMayBeMoreThanAnEngineCan) {
  for (const bool off : {true, false}) {
    auto options = slots(1);
    test::FakeEngineOptions engine;
    if (off) {
      options.max_parked_mb = 0;
    } else {
      engine.parking_bytes = 0;
    }
    Bench bench(options, engine);
    const auto request = request_of(60);
    const auto slow = bench.submit(request);
    while (slow->pieces().empty()) bench.turn();
    bench.mailbox.set_paused(bench.last_id, true);
    bench.turn();
    const auto other = bench.submit(request);
    for (int i = 0; i < 5; ++i) {
      bench.clock.advance(kParkAfter);
      EXPECT_FALSE(bench.turn().worked);
    }
    EXPECT_EQ(bench.loop.parked(), 0U);
    bench.mailbox.set_paused(1, false);
    bench.run_until_idle();
    for (const auto& sink : {slow, other}) EXPECT_EQ(sink->pcm(), FakeVoice(request.prompt, request.sampling).all(120));
  }
}

// Many, with pauses of all lengths, more of them than slots: everybody hears every sample once.
TEST(Parking, ManyComeAndGo) {
  Bench bench(slots(4));
  bench.control->before_step = [&](std::uint64_t) { bench.clock.advance(milliseconds(3)); };
  std::vector<Speaker> all;
  for (std::uint64_t i = 0; i < 24; ++i) {
    Speaker speaker{.request = request_of(20 + i, i), .sink = nullptr, .id = 0};
    speaker.sink = bench.submit(speaker.request);
    speaker.id = bench.last_id;
    all.push_back(std::move(speaker));
  }
  std::uint64_t random = 1;
  std::vector<bool> paused(all.size(), false);
  for (int turn = 0; turn < 3000; ++turn) {
    random = test::mix64(random + 1);
    const std::size_t who = random % all.size();
    if (turn % 3 == 0) {
      paused[who] = !paused[who];
      bench.mailbox.set_paused(all[who].id, paused[who]);
    }
    bench.turn();
    if (turn % 7 == 0) bench.clock.advance(milliseconds(400));
    EXPECT_LE(bench.loop.active(), 4U);
  }
  EXPECT_GE(bench.control->most_parked, 3U);
  for (const Speaker& one : all) bench.mailbox.set_paused(one.id, false);
  bench.run_until_idle();
  for (const Speaker& one : all) {
    EXPECT_EQ(one.sink->pcm(), one.expected());
    EXPECT_EQ(one.sink->finals(), 1);
  }
  EXPECT_EQ(bench.control->parked, 0U);
  EXPECT_EQ(bench.control->slots_in_use, 0U);
  EXPECT_THAT(bench.control->breaches(), IsEmpty());
}

}  // namespace
}  // namespace tts::scheduling
