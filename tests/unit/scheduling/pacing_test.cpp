#include "pacing.h"

#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kNow = TimePoint(seconds(1000));

// The full-size model: 52 steps of lookahead.
constexpr engine::EngineInfo info() {
  engine::EngineInfo info;
  info.samples_per_step = 512;
  info.max_pending_steps = 32;
  info.lookahead_steps = 52;
  return info;
}

// A step takes `step` whatever its rows, decoding 0.1 ms a step.
CostModel machine(milliseconds step) {
  CostModel costs(microseconds(21333), 24);
  for (int i = 0; i < 100; ++i) {
    for (const std::uint32_t rows : {1U, 16U}) costs.step_took(rows, 0, step);
    for (const std::uint32_t work : {1U, 100U}) costs.decode_took(work, work, 0, microseconds(100 * work), kNow);
  }
  return costs;
}

Row row(std::uint32_t steps = 0, engine::Latency latency = engine::Latency::kDefault) {
  Row row;
  row.utterance = std::make_shared<Utterance>();
  row.utterance->submitted_at = kNow;
  row.utterance->request.latency = latency;
  row.steps = steps;
  return row;
}

// Has given `heard` of its steps, of which the listener has `left` to hear.
Row sounding(std::uint32_t steps, std::uint32_t heard, Duration left, std::uint32_t pieces = 9) {
  Row sounding = row(steps);
  sounding.samples = heard * 512U - 256U;
  sounding.pieces = pieces;
  sounding.playback = PlaybackClock(kNow + left);
  return sounding;
}

struct Paced {
  explicit Paced(milliseconds step, LatencyMode mode = LatencyMode::kAuto, std::uint32_t early = 0) : costs(machine(step)) {
    SchedulerOptions options;
    options.latency = mode;
    pacing.emplace(options, info(), costs);
    pacing->begin_turn(1, early, kNow);
  }
  DecodeRow decode_row(const Row& row, TimePoint now = kNow) const { return pacing->decode_row(row, std::min(row.steps, 32U), now); }

  CostModel costs;
  std::optional<Pacing> pacing;
};

TEST(Pacing, KnowsWhatHasNotBeenHeard) {
  const Paced paced(milliseconds(7));
  EXPECT_EQ(paced.decode_row(row(20)).unheard, 20U);
  EXPECT_EQ(paced.decode_row(sounding(100, 30, seconds(1))).unheard, 70U);
}

TEST(Pacing, AutoIsEarlyWhereExactSoundWouldComeTooLate) {
  EXPECT_TRUE(Paced(milliseconds(7)).decode_row(row(14)).may_be_early) << "60 steps of 7 ms";
  EXPECT_FALSE(Paced(milliseconds(2)).decode_row(row(14)).may_be_early) << "60 steps of 2 ms";
  EXPECT_TRUE(Paced(milliseconds(2)).decode_row(row(14), kNow + milliseconds(150)).may_be_early) << "after a wait in the queue";
}

TEST(Pacing, WhatTheUtteranceSaysGoesFirst) {
  EXPECT_TRUE(Paced(milliseconds(2)).decode_row(row(14, engine::Latency::kLow)).may_be_early);
  EXPECT_FALSE(Paced(milliseconds(7)).decode_row(row(14, engine::Latency::kExact)).may_be_early);
  EXPECT_TRUE(Paced(milliseconds(7), LatencyMode::kExact).decode_row(row(14, engine::Latency::kLow)).may_be_early);
  EXPECT_FALSE(Paced(milliseconds(7), LatencyMode::kExact).decode_row(row(14)).may_be_early);
  auto file = row(14, engine::Latency::kLow);
  file.utterance->request.delivery = engine::Delivery::kWhole;
  EXPECT_FALSE(Paced(milliseconds(7)).decode_row(file).may_be_early) << "nobody waits for its first sound";
}

TEST(Pacing, EarlySoundOnlyWhereItCanCatchUp) {
  EXPECT_FALSE(Paced(milliseconds(18), LatencyMode::kLow).decode_row(row(14)).may_be_early) << "steps are hardly faster than sound";
  EXPECT_FALSE(Paced(milliseconds(7), LatencyMode::kLow, 4).decode_row(row(14)).may_be_early) << "four are at it";
  Paced paced(milliseconds(7), LatencyMode::kLow);
  for (int i = 0; i < 100; ++i) paced.costs.decode_took(52, 10, 42, milliseconds(10), kNow);
  paced.pacing->begin_turn(1, 0, kNow);
  EXPECT_FALSE(paced.decode_row(row(14)).may_be_early) << "a third of the time went into it lately";
  auto begun = sounding(30, 4, milliseconds(50));
  begun.early = true;
  EXPECT_TRUE(paced.decode_row(begun).may_be_early) << "but whoever has begun goes on";
}

TEST(Pacing, WhoHearsFasterNeedsAFasterMachineForEarlySound) {
  auto fast = row(14, engine::Latency::kLow);
  fast.utterance->request.pace = 2;
  EXPECT_TRUE(Paced(milliseconds(7)).decode_row(fast).may_be_early);
  EXPECT_FALSE(Paced(milliseconds(12)).decode_row(fast).may_be_early) << "1.8 steps in the time in which two are heard";
  EXPECT_TRUE(Paced(milliseconds(12)).decode_row(row(14, engine::Latency::kLow)).may_be_early);
  EXPECT_GT(Paced(milliseconds(7)).decode_row(fast).chunk, Paced(milliseconds(7)).decode_row(row(14, engine::Latency::kLow)).chunk);
  EXPECT_EQ(Paced(milliseconds(7)).pacing->heard_in(24000, 2.0), milliseconds(500));
}

TEST(Pacing, AFirstEarlyPieceLastsUntilTheSecond) {
  const auto fast = Paced(milliseconds(3), LatencyMode::kLow).decode_row(row(14)).chunk;
  const auto slow = Paced(milliseconds(12), LatencyMode::kLow).decode_row(row(14)).chunk;
  EXPECT_GE(fast, 4U);
  EXPECT_LE(fast, 6U);
  EXPECT_GT(slow, fast + 3);
  EXPECT_LE(slow, 24U);
  EXPECT_EQ(Paced(milliseconds(3), LatencyMode::kExact).decode_row(row(14)).chunk, 8U);
}

TEST(Pacing, PiecesGrowWithThePieceAndWithWhatIsLeft) {
  const Paced paced(milliseconds(7), LatencyMode::kExact);
  EXPECT_EQ(paced.decode_row(sounding(100, 8, milliseconds(160), 1)).chunk, 8U);
  EXPECT_EQ(paced.decode_row(sounding(100, 16, milliseconds(160), 2)).chunk, 12U);
  EXPECT_EQ(paced.decode_row(sounding(200, 90, milliseconds(900))).chunk, 24U);
  EXPECT_EQ(paced.decode_row(sounding(300, 90, seconds(3))).chunk, 32U) << "as much as a slot holds";
  EXPECT_EQ(paced.decode_row(sounding(100, 1, milliseconds(500), 0)).chunk, 24U) << "a later sentence";
}

TEST(Pacing, UrgencyCountsTheTimeToTheNextSound) {
  const Paced paced(milliseconds(7), LatencyMode::kExact);
  EXPECT_EQ(paced.pacing->urgency(row(3), 0, kNow), Urgency::kNow);
  EXPECT_EQ(paced.pacing->urgency(sounding(100, 40, milliseconds(200)), 0, kNow), Urgency::kSoon) << "56 steps are there";
  EXPECT_EQ(paced.pacing->urgency(sounding(60, 40, milliseconds(200)), 0, kNow), Urgency::kNow) << "36 are missing";
  EXPECT_EQ(paced.pacing->urgency(sounding(100, 40, seconds(2)), 0, kNow), Urgency::kPlenty);
  EXPECT_EQ(paced.pacing->urgency(sounding(100, 40, seconds(12)), 0, kNow), Urgency::kFarAhead);
  auto later = row();
  later.playback = PlaybackClock(kNow + milliseconds(1200));
  EXPECT_EQ(paced.pacing->urgency(later, 300, kNow), Urgency::kSoon) << "a prompt and 56 steps of 7 ms";
}

TEST(Pacing, TheBudgetOfADecodeDependsOnWhoWaits) {
  const Paced paced(milliseconds(7));
  EXPECT_EQ(paced.pacing->decode_rules(false, false, Duration::max(), false).budget, Duration::max());
  EXPECT_EQ(paced.pacing->decode_rules(false, true, seconds(5), false).budget, milliseconds(60));
  EXPECT_EQ(paced.pacing->decode_rules(true, true, seconds(5), false).budget, milliseconds(15));
  EXPECT_EQ(paced.pacing->decode_rules(false, true, milliseconds(-10), false).budget, milliseconds(15));
}

}  // namespace
}  // namespace tts::scheduling
