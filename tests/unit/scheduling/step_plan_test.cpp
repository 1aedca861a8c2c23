#include "step_plan.h"

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

StepPlan planned(const std::vector<StepRow>& rows, const StepLimits& limits = kLimits) {
  StepPlan plan;
  plan_step(rows, limits, plan);
  return plan;
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
  plan_step(std::vector{row(0, 0), row(1, 5)}, kLimits, plan);
  plan_step(std::vector{row(7, 0)}, kLimits, plan);
  EXPECT_THAT(plan.rows, ElementsAre(0));
  EXPECT_EQ(plan.decode_rows, 1U);
  EXPECT_EQ(plan.prefill_tokens, 0U);
}

// Whatever the rows, the plan keeps the engine's rules and wastes nothing.
TEST(StepPlan, KeepsTheLimitsForManyRandomBatches) {
  std::uint32_t seed = 1;
  const auto next = [&](std::uint32_t below) {
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8U) % below;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<StepRow> rows;
    const auto count = next(12);
    for (std::uint32_t i = 0; i < count; ++i) rows.push_back(row(i, next(2) * next(60), next(25), next(5) != 0));
    const StepLimits limits{.max_rows = 12 + next(30), .max_pending = 24, .prefill_chunk = 1 + next(20)};
    const auto plan = planned(rows, limits);
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
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool generates = rows[i].runnable && rows[i].prefill_left == 0 && rows[i].pending < limits.max_pending;
      EXPECT_TRUE(seen[i] || !generates);
    }
  }
}

}  // namespace
}  // namespace tts::scheduling
