#include "cost_model.h"

#include <vector>

#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kStep = microseconds(21333);
const TimePoint kStart = TimePoint(std::chrono::seconds(100));

// 6 ms and 0.3 ms a row, decodes of 24 steps in 1 ms and 0.2 ms a step.
CostModel measured() {
  CostModel costs(kStep, 24);
  for (int i = 0; i < 200; ++i) {
    for (const std::uint32_t rows : {1U, 2U, 4U, 8U}) costs.step_took(rows, 0, microseconds(6000 + 300 * rows));
    costs.decode_took(24, 24, 0, microseconds(5800), kStart);
    costs.decode_took(96, 96, 0, microseconds(20200), kStart);
  }
  return costs;
}

TEST(CostModel, UnknownUntilStepsAndDecodesWereSeen) {
  CostModel costs(kStep, 24);
  for (int i = 0; i < 8; ++i) costs.step_took(1, 0, milliseconds(7));
  EXPECT_FALSE(costs.known());
  EXPECT_EQ(costs.realtime_streams(0.9, 16), 0U);
  for (int i = 0; i < 2; ++i) costs.decode_took(24, 24, 0, milliseconds(5), kStart);
  EXPECT_TRUE(costs.known());
}

TEST(CostModel, RealtimeStreamsFillTheLoad) {
  const auto costs = measured();
  // A round of n: 6 + 0.3 n and about 0.21 n of decoding, within 0.9 * 21.3 = 19.2 ms.
  EXPECT_NEAR(costs.realtime_streams(0.9, 64), 25, 2);
  EXPECT_LT(costs.realtime_streams(0.5, 64), 10U);
  EXPECT_EQ(costs.realtime_streams(0.9, 16), 16U) << "never more than slots";
}

TEST(CostModel, FastListenersNeedStepsOfTheirOwn) {
  const auto costs = measured();
  const auto round = [&](std::uint32_t rows) { return std::chrono::duration<double>(costs.round(rows)) / kStep; };
  EXPECT_NEAR(costs.share_needed(std::vector(16, 1.0)), round(16), 1e-9);
  EXPECT_NEAR(costs.share_needed(std::vector(16, 2.0)), 2 * round(16), 1e-9);
  EXPECT_NEAR(costs.share_needed(std::vector(16, 0.5)), 0.5 * round(16), 1e-9);
  EXPECT_NEAR(costs.share_needed(std::vector{2.0, 1.0, 1.0, 1.0}), round(4) + round(1), 1e-9);
  EXPECT_EQ(costs.share_needed({}), 0.0);
  EXPECT_EQ(CostModel(kStep, 24).share_needed(std::vector(3, 2.0)), 0.0) << "nothing was seen";
}

TEST(CostModel, AMachineTooSlowForOneServesOne) {
  CostModel costs(kStep, 24);
  for (int i = 0; i < 20; ++i) {
    costs.step_took(1, 0, milliseconds(40));
    costs.decode_took(24, 24, 0, milliseconds(50), kStart);
  }
  EXPECT_EQ(costs.realtime_streams(0.9, 16), 1U);
}

TEST(CostModel, PromptsCostWhatTheyAddToAStep) {
  auto costs = measured();
  for (int i = 0; i < 50; ++i) costs.step_took(4, 32, microseconds(7200 + 3200));
  EXPECT_NEAR(std::chrono::duration<double>(costs.prefill(10)).count(), 0.001, 0.0001);
  EXPECT_NEAR(std::chrono::duration<double>(costs.step(4)).count(), 0.0072, 0.0004) << "and not what steps without them cost";
}

TEST(CostModel, APauseOfTheMachineDuringAJoinIsNotThePriceOfPrompts) {
  auto costs = measured();
  for (int i = 0; i < 50; ++i) costs.step_took(4, 32, microseconds(7200 + 3200));
  const auto before = costs.prefill(100);
  costs.step_took(4, 32, std::chrono::seconds(2));
  EXPECT_LT(costs.prefill(100).count(), 1.3 * static_cast<double>(before.count()));
}

TEST(CostModel, PromptsThatComeWithTheStreamsLowerTheirNumber) {
  auto costs = measured();
  const auto before = costs.realtime_streams(0.9, 64);
  for (int i = 0; i < 2000; ++i) {
    costs.step_took(4, 16, microseconds(7200 + 1600));
    costs.step_took(8, 0, microseconds(8400));
  }
  EXPECT_LT(costs.realtime_streams(0.9, 64), before);
}

TEST(CostModel, FlushedStepsCountForEveryStream) {
  auto costs = measured();
  const auto before = costs.round(16);
  for (int i = 0; i < 2000; ++i) costs.decode_took(48, 24, 0, microseconds(10600), kStart);
  EXPECT_GT(costs.round(16), before + milliseconds(2));
}

TEST(CostModel, EarlyWorkIsAccountedApartAndFades) {
  auto costs = measured();
  const auto before = costs.round(16);
  for (int i = 0; i < 500; ++i) costs.decode_took(48, 6, 42, microseconds(10600), kStart);
  EXPECT_GT(costs.early_share(kStart), 0.5);
  EXPECT_LT(costs.early_share(kStart + std::chrono::seconds(30)), 0.01);
  EXPECT_NEAR(static_cast<double>(costs.round(16).count()), static_cast<double>(before.count()), 1e5)
      << "early pieces are not made when the machine is full";
}

}  // namespace
}  // namespace tts::scheduling
