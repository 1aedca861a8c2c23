#include "decode_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tts/engine/step_engine.h"

namespace tts::scheduling {
namespace {

using engine::kExactLookahead;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr DecodeRules kRules{.max_pending = 32, .exact_lookahead = 20, .low_lookahead = 6, .least_chunk = 4, .reserve = milliseconds(100)};

CostModel nothing_measured() { return CostModel(milliseconds(21), 24); }

// 1 ms a step of the decoder.
CostModel measured() {
  auto costs = nothing_measured();
  for (int i = 0; i < 100; ++i) {
    for (const std::uint32_t rows : {1U, 8U}) costs.step_took(rows, 0, milliseconds(5));
    for (const std::uint32_t work : {1U, 10U, 100U}) costs.decode_took(work, work, 0, milliseconds(work), {});
  }
  return costs;
}

// A listener of exact sound in the steady state, with enough to hear. `held` steps are in the decoder.
DecodeRow steady(std::uint32_t pending, std::uint32_t held = 20) {
  return {.pending = pending,
          .unheard = pending + held,
          .chunk = 24,
          .urgency = Urgency::kSoon,
          .steady = true,
          .left = milliseconds(500)};
}

DecodeRow silent(std::uint32_t pending, std::uint32_t held = 0) {
  return {.pending = pending, .unheard = pending + held, .chunk = 8, .silent = true};
}

std::vector<DecodeChoice> planned(const std::vector<DecodeRow>& rows, const DecodeRules& rules = kRules,
                                  const CostModel& costs = nothing_measured()) {
  DecodePlan plan;
  plan.chosen = {{.row = 99}};  // must be cleared
  plan_decode(rows, rules, costs, plan);
  return plan.chosen;
}

std::vector<std::uint32_t> chosen(const std::vector<DecodeRow>& rows, const DecodeRules& rules = kRules,
                                  const CostModel& costs = nothing_measured()) {
  std::vector<std::uint32_t> result;
  for (const auto& choice : planned(rows, rules, costs)) result.push_back(choice.row);
  return result;
}

TEST(DecodePlan, NobodyDueNobodyComes) {
  EXPECT_THAT(chosen({}), IsEmpty());
  EXPECT_THAT(chosen({silent(27), steady(23)}), IsEmpty());
}

TEST(DecodePlan, AChunkWithItsLookaheadIsDue) {
  const auto plan = planned({silent(28), steady(24)});
  ASSERT_EQ(plan.size(), 2U);
  EXPECT_EQ(plan[0].steps, 28U);
  EXPECT_EQ(plan[0].lookahead, kExactLookahead);
  EXPECT_EQ(plan[1].steps, 24U);
}

TEST(DecodePlan, ADueRowNeverWaitsForOthers) { EXPECT_THAT(chosen({steady(24), steady(0)}), ElementsAre(0)); }

TEST(DecodePlan, SteadyRowsComeAlongWithWhatTheyHave) {
  auto in_ramp = steady(12);
  in_ramp.steady = false;
  EXPECT_THAT(chosen({steady(24), steady(12), steady(1), in_ramp, steady(0)}), ElementsAre(0, 1, 2));
  EXPECT_THAT(chosen({steady(12), steady(1)}), testing::IsEmpty()) << "but only with one that is due";
}

TEST(DecodePlan, AnEndedRowIsFlushedEvenWithoutPendingSteps) {
  auto row = steady(0);
  row.ended = true;
  EXPECT_THAT(chosen({row}), ElementsAre(0));
}

TEST(DecodePlan, AFullSlotIsEmptied) {
  auto row = steady(32, 0);  // nothing has reached the lookahead yet
  row.chunk = 64;
  EXPECT_THAT(chosen({row}), ElementsAre(0));
}

TEST(DecodePlan, AFullSlotDoesNotStartSoundThatStalls) {
  DecodeRules rules = kRules;
  rules.exact_lookahead = 30;
  const auto first = planned({silent(32)}, rules);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].steps, 30U) << "32 would give two steps of sound, and then nothing for six more";
  EXPECT_THAT(chosen({silent(7, 30)}, rules), IsEmpty());
  EXPECT_THAT(chosen({silent(8, 30)}, rules), ElementsAre(0));
}

TEST(DecodePlan, RowsThatMayNotRunStayOut) {
  auto paused = steady(30);
  paused.ended = true;
  paused.runnable = false;
  EXPECT_THAT(chosen({paused, silent(28)}), ElementsAre(1));
}

TEST(DecodePlan, AListenerWhoIsShortGetsLessThanAChunk) {
  auto row = steady(4);
  row.left = milliseconds(100);
  EXPECT_THAT(chosen({row}), ElementsAre(0));
  row = steady(3);
  row.left = milliseconds(100);
  EXPECT_THAT(chosen({row}), IsEmpty());
}

TEST(DecodePlan, WhoRunsOutTogetherIsShortTogether) {
  // 10 steps each take 10 ms to decode: the last of ten has its sound after 100 ms.
  auto row = steady(10);
  row.left = milliseconds(190);
  EXPECT_THAT(chosen({row}, kRules, measured()), IsEmpty());
  EXPECT_THAT(chosen(std::vector(10, row), kRules, measured()), testing::SizeIs(10));
}

TEST(DecodePlan, ACallEndsBeforeItsNeediestRowRunsDry) {
  auto row = steady(10);
  row.left = milliseconds(45);
  DecodePlan plan;
  plan_decode(std::vector(10, row), kRules, measured(), plan);
  EXPECT_EQ(plan.chosen.size(), 4U);
  EXPECT_TRUE(plan.more_are_short) << "the others should not wait for another step";
  row.left = milliseconds(-20);
  plan_decode(std::vector(10, row), kRules, measured(), plan);
  EXPECT_EQ(plan.chosen.size(), 1U) << "too late anyway, but soonest alone";
}

TEST(DecodePlan, ANewcomersFirstSoundIsAWholePieceHoweverShortOthersAre) {
  auto listener = steady(5);
  listener.left = milliseconds(60);
  EXPECT_THAT(chosen({silent(25), listener}, kRules, measured()), ElementsAre(1));
  EXPECT_THAT(chosen({silent(28), listener}, kRules, measured()), ElementsAre(0, 1));
  listener.left = milliseconds(20);
  EXPECT_THAT(chosen({silent(28), listener}, kRules, measured()), ElementsAre(1)) << "first the one whose sound would break off";
}

TEST(DecodePlan, EarlySoundLooksLessFarAhead) {
  auto row = silent(14);
  row.may_be_early = true;
  const auto plan = planned({row});
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].lookahead, 6U);
  row.pending = row.unheard = 13;
  EXPECT_THAT(chosen({row}), IsEmpty()) << "a whole first chunk or nothing";
}

TEST(DecodePlan, EarlySoundWaitsForTheExactLookaheadAsLongAsItsListenerCan) {
  auto row = steady(20, 6);
  row.may_be_early = true;
  EXPECT_THAT(chosen({row}), IsEmpty());
  row.left = milliseconds(100);
  auto plan = planned({row});
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].lookahead, kExactLookahead) << "26 steps: enough for exact ones";
  row = steady(10, 6);
  row.may_be_early = true;
  row.left = milliseconds(100);
  plan = planned({row});
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].lookahead, 6U) << "gives all 10: the time in which the next ones gather";
}

TEST(DecodePlan, WithoutNewStepsNothingIsComputedAhead) {
  auto row = steady(0);
  row.may_be_early = true;
  row.left = milliseconds(-50);
  EXPECT_THAT(chosen({row}), IsEmpty()) << "engines need not look into what they hold back";
  row.pending = 1;
  EXPECT_THAT(chosen({row}), ElementsAre(0));
}

TEST(DecodePlan, ExactRowsAreNeverEarly) {
  auto row = steady(19, 0);
  row.left = milliseconds(-50);
  EXPECT_THAT(chosen({row}), IsEmpty());
}

TEST(DecodePlan, TheNeediestComeFirst) {
  auto whole = steady(32, 0);
  whole.whole = true;
  auto near = steady(24);
  near.left = milliseconds(200);
  auto dry = steady(4);
  dry.left = milliseconds(10);
  EXPECT_THAT(chosen({whole, steady(24), near, silent(28), dry}), ElementsAre(4, 3, 2, 1, 0));
}

TEST(DecodePlan, TheBudgetBoundsOneCall) {
  auto rules = kRules;
  rules.budget = milliseconds(60);
  EXPECT_THAT(chosen({steady(24), steady(24), steady(24), steady(24)}, rules, measured()), ElementsAre(0, 1));
  rules.budget = milliseconds(1);
  EXPECT_THAT(chosen({steady(24), steady(24)}, rules, measured()), ElementsAre(0)) << "the first comes whatever it takes";
}

TEST(DecodePlan, WhileARowIsNeededNowOthersWithPlentyWait) {
  auto rich = steady(24);
  rich.urgency = Urgency::kPlenty;
  auto newcomer = silent(3);
  newcomer.urgency = Urgency::kNow;
  EXPECT_THAT(chosen({rich}), ElementsAre(0));
  EXPECT_THAT(chosen({rich, newcomer}), IsEmpty());
  newcomer.runnable = false;
  EXPECT_THAT(chosen({rich, newcomer}), ElementsAre(0));
}

TEST(DecodePlan, ButNotWhenSomebodyWaitsForTheirSlot) {
  auto rich = steady(1);
  rich.urgency = Urgency::kPlenty;
  rich.ended = true;
  auto newcomer = silent(3);
  newcomer.urgency = Urgency::kNow;
  EXPECT_THAT(chosen({rich, newcomer}), IsEmpty());
  auto rules = kRules;
  rules.slots_wanted = true;
  EXPECT_THAT(chosen({rich, newcomer}, rules), ElementsAre(0));
}

TEST(DecodePlan, AFileIsDecodedWheneverItsSlotIsFull) {
  auto whole = steady(32, 0);
  whole.whole = true;
  whole.urgency = Urgency::kPlenty;
  whole.chunk = 32;
  auto newcomer = silent(3);
  EXPECT_THAT(chosen({whole, newcomer}), ElementsAre(0));
}

TEST(DecodePlan, WorkCountsWhatIsFlushedAndWhatIsComputedAhead) {
  EXPECT_EQ(decode_work(steady(24), {.row = 0, .steps = 24, .lookahead = kExactLookahead}, 20), 24U);
  EXPECT_EQ(decode_work(steady(24), {.row = 0, .steps = 24, .lookahead = 6}, 20), 24U + 14U);
  auto row = steady(5);
  row.ended = true;
  EXPECT_EQ(decode_work(row, {.row = 0, .steps = 5, .lookahead = kExactLookahead}, 20), 5U + 20U);
}

}  // namespace
}  // namespace tts::scheduling
