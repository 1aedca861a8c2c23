#include "decode_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint32_t> chosen(const std::vector<DecodeRow>& rows, std::uint32_t max_pending = 64) {
  std::vector<std::uint32_t> result{99};  // must be cleared
  plan_decode(rows, max_pending, result);
  return result;
}

TEST(DecodePlan, NobodyDueNobodyComes) {
  EXPECT_THAT(chosen({}), IsEmpty());
  EXPECT_THAT(chosen({{.pending = 7, .wanted = 8}, {.pending = 23, .wanted = 24, .steady = true}}), IsEmpty());
}

TEST(DecodePlan, ADueRowNeverWaitsForOthers) {
  EXPECT_THAT(chosen({{.pending = 8, .wanted = 8}, {.pending = 1, .wanted = 8}}), ElementsAre(0));
}

TEST(DecodePlan, SteadyRowsHalfwayComeAlong) {
  EXPECT_THAT(chosen({{.pending = 12, .wanted = 24, .steady = true},
                      {.pending = 11, .wanted = 24, .steady = true},
                      {.pending = 8, .wanted = 8},
                      {.pending = 7, .wanted = 8}}),
              ElementsAre(0, 2));
}

TEST(DecodePlan, AnEndedRowIsFlushedEvenWithoutPendingSteps) {
  EXPECT_THAT(chosen({{.pending = 0, .wanted = 24, .steady = true, .ended = true}}), ElementsAre(0));
}

TEST(DecodePlan, AFullRowIsDueWhateverItWants) { EXPECT_THAT(chosen({{.pending = 10, .wanted = 24}}, 10), ElementsAre(0)); }

TEST(DecodePlan, RowsThatMayNotRunStayOut) {
  EXPECT_THAT(chosen({{.pending = 30, .wanted = 24, .steady = true, .ended = true, .runnable = false},
                      {.pending = 24, .wanted = 24, .steady = true, .runnable = false},
                      {.pending = 8, .wanted = 8}}),
              ElementsAre(2));
}

}  // namespace
}  // namespace tts::scheduling
