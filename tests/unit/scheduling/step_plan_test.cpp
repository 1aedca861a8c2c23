#include "step_plan.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using ::testing::ElementsAre;

constexpr StepLimits kLimits{.max_rows = 40, .max_pending = 24, .prefill_chunk = 16};

StepRow row(std::uint32_t index, std::uint32_t prefill_left, std::uint32_t pending = 0, bool runnable = true) {
  return {.slot = {.index = index, .generation = index + 100}, .prefill_left = prefill_left, .pending = pending, .runnable = runnable};
}

std::vector<std::uint32_t> tokens(const StepPlan& plan) {
  std::vector<std::uint32_t> result;
  for (const auto& work : plan.work) result.push_back(work.prefill_tokens);
  return result;
}

const CostModel kNothingMeasured(std::chrono::milliseconds(21), 24);

// A step takes `base` and 1 ms a row.
CostModel measured(int base) {
  CostModel costs(std::chrono::milliseconds(21), 24);
  for (int i = 0; i < 100; ++i) {
    for (const std::uint32_t rows : {1U, 2U, 4U, 8U}) costs.step_took(rows, 0, std::chrono::milliseconds(base + static_cast<int>(rows)));
    costs.decode_took(1000, 1000, 0, std::chrono::milliseconds(1), {});
  }
  return costs;
}

StepPlan planned(const std::vector<StepRow>& rows, const StepLimits& limits = kLimits, const CostModel& costs = kNothingMeasured) {
  StepPlan plan;
  plan_step(rows, limits, costs, plan);
  return plan;
}

StepRow with(StepRow row, Urgency urgency) {
  row.urgency = urgency;
  return row;
}

TEST(StepPlan, NoRowsNoWork) { EXPECT_TRUE(planned({}).work.empty()); }

TEST(StepPlan, EveryGeneratingRowStepsAndPromptsRideAlong) {
  const auto plan = planned({row(0, 0), row(1, 50), row(2, 0)});
  EXPECT_THAT(plan.rows, ElementsAre(0, 2, 1));
  EXPECT_THAT(tokens(plan), ElementsAre(0, 0, 16));
  EXPECT_EQ(plan.decode_rows, 2U);
  EXPECT_EQ(plan.prefill_tokens, 16U);
  EXPECT_EQ(plan.work[2].slot, (engine::SlotId{1, 101}));
}

TEST(StepPlan, AloneAPromptTakesTheWholeStep) {
  EXPECT_THAT(tokens(planned({row(0, 100)})), ElementsAre(40));
  EXPECT_THAT(tokens(planned({row(0, 30), row(1, 30)})), ElementsAre(30, 10)) << "the oldest finishes first";
}

TEST(StepPlan, PromptsShareWhatRunningRowsLeave) {
  auto limits = kLimits;
  limits.max_rows = 20;
  EXPECT_THAT(tokens(planned({row(0, 0), row(1, 50), row(2, 50), row(3, 50)}, limits)), ElementsAre(0, 16, 3));
}

TEST(StepPlan, AJoinNeverTakesAStepFromARunningRow) {
  std::vector<StepRow> rows{row(0, 1000)};
  for (std::uint32_t i = 1; i < 4; ++i) rows.push_back(row(i, 0));
  auto limits = kLimits;
  limits.max_rows = 3;
  const auto plan = planned(rows, limits);
  EXPECT_THAT(plan.rows, ElementsAre(1, 2, 3));
  EXPECT_EQ(plan.prefill_tokens, 0U);
}

TEST(StepPlan, RowsThatMayNotRunAreLeftOut) {
  const auto plan = planned({row(0, 0, 0, false), row(1, 9, 0, false), row(2, 0)});
  EXPECT_THAT(plan.rows, ElementsAre(2));
}

TEST(StepPlan, AFullRowWaitsForItsDecode) { EXPECT_THAT(planned({row(0, 0, 24), row(1, 0, 23)}).rows, ElementsAre(1)); }

TEST(StepPlan, TheLastBitOfAPromptIsNotPadded) { EXPECT_THAT(tokens(planned({row(0, 3), row(1, 0)})), ElementsAre(0, 3)); }

TEST(StepPlan, ReuseStartsEmpty) {
  StepPlan plan;
  plan_step(std::vector{row(0, 0), row(1, 5)}, kLimits, kNothingMeasured, plan);
  plan_step(std::vector{row(7, 0)}, kLimits, kNothingMeasured, plan);
  EXPECT_THAT(plan.rows, ElementsAre(0));
  EXPECT_EQ(plan.decode_rows, 1U);
  EXPECT_EQ(plan.prefill_tokens, 0U);
}

TEST(StepPlan, TheBudgetBoundsAllPromptsThatRideAlong) {
  auto limits = kLimits;
  limits.prefill_budget = 20;
  EXPECT_THAT(tokens(planned({row(0, 0), row(1, 50), row(2, 50)}, limits)), ElementsAre(0, 16, 4));
  EXPECT_THAT(tokens(planned({row(1, 50)}, limits)), ElementsAre(40)) << "nobody is held up";
}

TEST(StepPlan, RowsWithPlentySitOutWhileAnotherIsNeededNow) {
  const std::vector rows{with(row(0, 0), Urgency::kPlenty), with(row(1, 0), Urgency::kSoon), with(row(2, 0), Urgency::kNow),
                         with(row(3, 9), Urgency::kFarAhead)};
  const auto plan = planned(rows, kLimits, measured(0));
  EXPECT_THAT(plan.rows, ElementsAre(1, 2));
  EXPECT_THAT(plan.yielding, ElementsAre(0, 3));
}

TEST(StepPlan, NobodyYieldsToARowThatCannotRun) {
  auto paused = with(row(1, 0), Urgency::kNow);
  paused.runnable = false;
  const auto full = with(row(2, 0, kLimits.max_pending), Urgency::kNow);
  EXPECT_THAT(planned({with(row(0, 0), Urgency::kPlenty), paused, full}, kLimits, measured(0)).rows, ElementsAre(0));
}

TEST(StepPlan, RowsFarAheadSitOutWhileAnyOtherRuns) {
  EXPECT_THAT(planned({with(row(0, 0), Urgency::kFarAhead), with(row(1, 0), Urgency::kPlenty)}, kLimits, measured(0)).rows, ElementsAre(1));
  EXPECT_THAT(planned({with(row(0, 0), Urgency::kFarAhead), with(row(1, 0), Urgency::kFarAhead)}, kLimits, measured(0)).rows,
              ElementsAre(0, 1))
      << "alone they run on: a download";
}

TEST(StepPlan, NobodyYieldsWhereItBuysNoTime) {
  const std::vector rows{with(row(0, 0), Urgency::kPlenty), with(row(1, 0), Urgency::kNow)};
  EXPECT_THAT(planned(rows, kLimits, measured(100)).rows, ElementsAre(0, 1)) << "100 ms or 102 ms";
  EXPECT_THAT(planned(rows, kLimits, kNothingMeasured).rows, ElementsAre(0, 1));
}

TEST(StepPlan, AFileHasARightToItsShare) {
  auto file = with(row(0, 0), Urgency::kPlenty);
  file.whole = true;
  file.sat_out = kWholeShare - 2;
  const auto newcomer = with(row(1, 0), Urgency::kNow);
  EXPECT_THAT(planned({file, newcomer}, kLimits, measured(0)).rows, ElementsAre(1));
  file.sat_out = kWholeShare - 1;
  EXPECT_THAT(planned({file, newcomer}, kLimits, measured(0)).rows, ElementsAre(0, 1));
}

// 16 rows take 8 ms, 32 take 32.
CostModel cheaper_in_turns() {
  CostModel costs(std::chrono::milliseconds(21), 24);
  for (int i = 0; i < 100; ++i) {
    costs.step_took(32, 0, std::chrono::milliseconds(32));
    costs.step_took(16, 0, std::chrono::milliseconds(8));
    costs.step_took(4, 0, std::chrono::milliseconds(4));
  }
  return costs;
}

StepRow covered_for(StepRow row, int milliseconds) {
  row.urgency = Urgency::kSoon;
  row.covered = std::chrono::milliseconds(milliseconds);
  return row;
}

TEST(StepPlan, WhereAStepOfAllIsDearTheFirstToRunDryComeFirst) {
  std::vector<StepRow> rows;
  for (std::uint32_t i = 0; i < 32; ++i) rows.push_back(covered_for(row(i, 0), 100 + static_cast<int>(i * 7 % 32)));
  const auto plan = planned(rows, kLimits, cheaper_in_turns());
  EXPECT_EQ(plan.decode_rows, 16U);
  EXPECT_EQ(plan.waiting.size(), 16U);
  for (const auto i : plan.rows) EXPECT_LT(rows[i].covered, std::chrono::milliseconds(116));
  EXPECT_TRUE(std::is_sorted(plan.rows.begin(), plan.rows.end()));
  EXPECT_EQ(planned(rows, kLimits, measured(0)).decode_rows, 32U);
}

TEST(StepPlan, ATurnLastsUnlessSomebodyIsNeededNow) {
  std::vector<StepRow> rows;
  for (std::uint32_t i = 0; i < 32; ++i) {
    rows.push_back(covered_for(row(i, 0), i < 16 ? 300 : 200));
    rows.back().in_turn = i < 16;
  }
  EXPECT_EQ(planned(rows, kLimits, cheaper_in_turns()).rows.back(), 15U);
  rows[31].urgency = Urgency::kNow;
  EXPECT_EQ(planned(rows, kLimits, cheaper_in_turns()).rows.back(), 31U);
}

TEST(StepPlan, AFileWaitsForItsTurnButNotForEver) {
  std::vector<StepRow> rows;
  for (std::uint32_t i = 0; i < 32; ++i) rows.push_back(covered_for(row(i, 0), 200));
  rows[31].whole = true;
  rows[31].covered = Duration::max();
  rows[31].sat_out = 2 * kWholeShare - 2;
  EXPECT_NE(planned(rows, kLimits, cheaper_in_turns()).rows.back(), 31U);
  rows[31].sat_out = 2 * kWholeShare - 1;
  EXPECT_EQ(planned(rows, kLimits, cheaper_in_turns()).rows.back(), 31U) << "of the steps of its turns, one of kWholeShare";
}

TEST(StepPlan, PromptsRideOnAStepOfSome) {
  std::vector<StepRow> rows;
  for (std::uint32_t i = 0; i < 33; ++i) rows.push_back(covered_for(row(i, i == 0 ? 50 : 0), 200));
  const auto plan = planned(rows, kLimits, cheaper_in_turns());
  EXPECT_EQ(plan.decode_rows, 16U);
  EXPECT_EQ(plan.prefill_tokens, 16U);
}

TEST(PrefillBudget, ShrinksWithWhatListenersCanSpare) {
  EXPECT_EQ(prefill_budget(std::chrono::seconds(1), 4, kNothingMeasured), ~std::uint32_t{0}) << "nothing is known";
  auto costs = measured(10);
  for (int i = 0; i < 100; ++i) costs.step_took(4, 20, std::chrono::milliseconds(14 + 20));  // 1 ms a position
  EXPECT_NEAR(prefill_budget(std::chrono::milliseconds(400), 4, costs), 100, 5);
  const double round = std::chrono::duration<double, std::milli>(costs.round(60)).count();
  EXPECT_NEAR(prefill_budget(std::chrono::milliseconds(-400), 60, costs), round / 4, 2) << "a quarter of a round, whatever happens";
  EXPECT_EQ(prefill_budget(std::chrono::milliseconds(-400), 1, costs), 8U);
  EXPECT_GT(prefill_budget(Duration::max(), 4, costs), 1'000'000U) << "nobody listens";
}

// Whatever the rows, the plan keeps the engine's rules and wastes nothing.
TEST(StepPlan, KeepsTheLimitsForManyRandomBatches) {
  std::uint32_t seed = 1;
  const auto next = [&](std::uint32_t below) {
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8U) % below;
  };
  const auto cheap = measured(0);
  CostModel in_turns(std::chrono::milliseconds(21), 24);
  for (int i = 0; i < 100; ++i) {
    for (const std::uint32_t size : {16U, 8U, 4U}) in_turns.step_took(size, 0, std::chrono::milliseconds(size * size));
  }
  for (int round = 0; round < 2000; ++round) {
    std::vector<StepRow> rows;
    const auto count = next(12);
    for (std::uint32_t i = 0; i < count; ++i) {
      rows.push_back(with(row(i, next(2) * next(60), next(25), next(5) != 0), static_cast<Urgency>(next(4))));
      rows.back().whole = next(6) == 0;
      rows.back().sat_out = next(kWholeShare);
    }
    const StepLimits limits{.max_rows = 12 + next(30), .max_pending = 24, .prefill_chunk = 1 + next(20), .prefill_budget = 8 + next(40)};
    const auto plan = planned(rows, limits, next(3) == 0 ? kNothingMeasured : next(2) == 0 ? in_turns : cheap);
    ASSERT_EQ(plan.work.size(), plan.rows.size());
    std::uint32_t used = 0;
    std::vector<bool> seen(rows.size());
    for (std::size_t i = 0; i < plan.work.size(); ++i) {
      const auto& source = rows[plan.rows[i]];
      EXPECT_FALSE(seen[plan.rows[i]]);
      seen[plan.rows[i]] = true;
      EXPECT_TRUE(source.runnable);
      EXPECT_EQ(source.slot, plan.work[i].slot);
      EXPECT_LE(plan.work[i].prefill_tokens, source.prefill_left);
      EXPECT_EQ(plan.work[i].prefill_tokens == 0, source.prefill_left == 0);
      used += std::max(1U, plan.work[i].prefill_tokens);
    }
    EXPECT_LE(used, limits.max_rows);
    bool anyone = false;
    for (const auto index : plan.yielding) {
      EXPECT_FALSE(seen[index]);
      EXPECT_GE(rows[index].urgency, Urgency::kPlenty);
      EXPECT_FALSE(rows[index].whole && rows[index].sat_out + 1 >= kWholeShare);
      seen[index] = true;
    }
    for (const auto index : plan.waiting) {
      EXPECT_FALSE(seen[index]);
      seen[index] = true;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool generates = rows[i].runnable && rows[i].prefill_left == 0 && rows[i].pending < limits.max_pending;
      anyone |= rows[i].runnable && (rows[i].prefill_left > 0 || generates);
      EXPECT_TRUE(seen[i] || !generates);
    }
    EXPECT_EQ(!plan.work.empty(), anyone) << "an engine never stands still while a row can run";
  }
}

}  // namespace
}  // namespace tts::scheduling
