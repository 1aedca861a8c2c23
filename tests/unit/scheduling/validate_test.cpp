#include "validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_engine.h"

namespace tts::scheduling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SchedulerOptions, DefaultsSuitTheFake) { EXPECT_THAT(problems({}, test::FakeEngineOptions{}.info), IsEmpty()); }

TEST(SchedulerOptions, EveryProblemIsListed) {
  SchedulerOptions options;
  options.max_batch = 0;
  options.max_queue = 0;
  options.max_wait = std::chrono::milliseconds(-1);
  options.max_load_percent = 0;
  options.max_lead = std::chrono::milliseconds(0);
  options.lookahead = 0;
  options.exact_within = std::chrono::milliseconds(-1);
  options.batch_window = std::chrono::milliseconds(-1);
  options.prefill_chunk = 0;
  options.chunk_ramp = {4, 0};
  options.chunk_steps = 0;
  options.park_after = std::chrono::milliseconds(-1);
  options.stop_grace = std::chrono::milliseconds(-1);
  options.max_failures_in_a_row = 0;
  options.failure_cooldown = std::chrono::milliseconds(-1);
  options.hang_limit = std::chrono::milliseconds(0);
  auto info = test::FakeEngineOptions{}.info;
  info.max_pending_steps = 0;
  EXPECT_EQ(problems(options, info).size(), 17U);
}

TEST(SchedulerOptions, TheBatchMustFitTheEngine) {
  SchedulerOptions options;
  options.max_batch = 17;
  auto info = test::FakeEngineOptions{}.info;
  info.max_slots = 16;
  EXPECT_THAT(problems(options, info), ElementsAre(HasSubstr("max_batch 17 exceeds the engine's 16 slots")));
  info.max_slots = 17;
  info.max_rows_per_step = 16;
  EXPECT_THAT(problems(options, info), ElementsAre(HasSubstr("16 rows per step")));
}

}  // namespace
}  // namespace tts::scheduling
