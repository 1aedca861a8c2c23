#include "cost_curve.h"

#include <gtest/gtest.h>

namespace tts::scheduling {
namespace {

void observe(CostCurve& curve, std::uint32_t size, double seconds, int times = 50) {
  for (int i = 0; i < times; ++i) curve.observe(size, seconds);
}

TEST(CostCurve, NothingIsKnownAtFirst) {
  const CostCurve curve;
  EXPECT_EQ(curve.at(1), 0.0);
  EXPECT_EQ(curve.at(100), 0.0);
  EXPECT_EQ(curve.observations(), 0U);
}

TEST(CostCurve, WhatWasSeenIsGivenBack) {
  CostCurve curve;
  observe(curve, 1, 0.006);
  observe(curve, 16, 0.012);
  EXPECT_NEAR(curve.at(1), 0.006, 1e-9) << "a first sight of another size is no change of this one";
  EXPECT_NEAR(curve.at(16), 0.012, 1e-9);
  EXPECT_EQ(curve.observations(), 100U);
}

TEST(CostCurve, PortionsWhereAWholeTakesLonger) {
  CostCurve curve;
  EXPECT_EQ(curve.cheapest_portion(0), 0U);
  EXPECT_EQ(curve.cheapest_portion(100), 100U) << "nothing is known";
  observe(curve, 8, 0.004);
  observe(curve, 30, 0.009);
  EXPECT_EQ(curve.cheapest_portion(100), 100U) << "of so many nothing is known";
  observe(curve, 100, 0.060);
  EXPECT_EQ(curve.cheapest_portion(100), 32U) << "30 rows were the cheapest, and they stand for 17 to 32";
  EXPECT_EQ(curve.cheapest_portion(30), 30U);
  EXPECT_EQ(curve.cheapest_portion(8), 8U);
}

TEST(CostCurve, NoPortionsForALittle) {
  CostCurve curve;
  observe(curve, 32, 0.010);
  observe(curve, 64, 0.021);
  EXPECT_EQ(curve.cheapest_portion(64), 64U);
}

TEST(CostCurve, WhatWasSlowOnceIsStillSlowAfterSmallerSizes) {
  CostCurve curve;
  observe(curve, 128, 0.100);
  observe(curve, 32, 0.010);
  EXPECT_LT(curve.at(128), 0.05) << "the bound by what was seen since";
  EXPECT_EQ(curve.cheapest_portion(128), 32U) << "or rows would swing between all and some";
}

TEST(CostCurve, BetweenTwoSizesItIsStraight) {
  CostCurve curve;
  observe(curve, 1, 0.010);
  observe(curve, 9, 0.018);
  EXPECT_NEAR(curve.at(5), (curve.at(1) + curve.at(9)) / 2, 1e-9);
}

TEST(CostCurve, BelowTheSmallestItIsNotCheaper) {
  CostCurve curve;
  observe(curve, 8, 0.010);
  EXPECT_DOUBLE_EQ(curve.at(2), curve.at(8));
  EXPECT_DOUBLE_EQ(curve.at(0), curve.at(8));
}

TEST(CostCurve, BeyondTheLargestItGoesOnAlongTheLine) {
  CostCurve curve;
  for (const std::uint32_t size : {1U, 2U, 4U}) observe(curve, size, 0.006 + 0.0003 * size, 400);
  EXPECT_NEAR(curve.at(16), 0.006 + 0.0003 * 16, 0.001);
}

TEST(CostCurve, WithOneSizeSeenAQuarterIsTakenToGrow) {
  CostCurve curve;
  observe(curve, 1, 0.008);
  EXPECT_NEAR(curve.at(5), 0.016, 1e-9);
}

TEST(CostCurve, AMixOfSizesThatShareAPlaceIsStillOneSize) {
  CostCurve curve;
  for (int i = 0; i < 300; ++i) {
    curve.observe(i % 3 == 0 ? 3 : 4, 0.008);  // between 3 and 4 on average, rarely a number that rounding leaves alone
    const double times = curve.at(100) / curve.at(3);
    EXPECT_GT(times, 1 + 0.25 * (100 - 4) / 4 - 1e-9);
    EXPECT_LT(times, 1 + 0.25 * (100 - 3) / 3 + 1e-9);
  }
}

TEST(CostCurve, AStaircaseStaysOne) {
  CostCurve curve;
  for (const std::uint32_t size : {1U, 2U, 4U, 8U, 16U}) observe(curve, size, 0.008);
  observe(curve, 32, 0.016);
  EXPECT_NEAR(curve.at(12), 0.008, 0.0005);
  EXPECT_NEAR(curve.at(32), 0.016, 1e-9);
}

TEST(CostCurve, ASlowerMachineShowsAtEverySizeInTime) {
  CostCurve curve;
  observe(curve, 1, 0.005);
  observe(curve, 16, 0.010);
  observe(curve, 1, 0.010, 1000);
  EXPECT_NEAR(curve.at(1), 0.010, 0.0001);
  EXPECT_GT(curve.at(16), 0.013) << "though 16 rows were not seen since";
}

TEST(CostCurve, ASizeNotSeenLatelyCostsAtMostAsManyOfASmallerOne) {
  CostCurve curve;
  observe(curve, 1, 0.010);
  observe(curve, 2, 0.012);
  observe(curve, 8, 0.200);  // something else used the machine
  EXPECT_NEAR(curve.at(8), 0.200, 1e-9);
  observe(curve, 1, 0.010);
  EXPECT_LT(curve.at(8), 0.081);
  observe(curve, 2, 0.012);
  EXPECT_LT(curve.at(8), 0.049);
  observe(curve, 8, 0.030);
  EXPECT_LT(curve.at(8), 0.050) << "and is believed again when it is seen";
}

TEST(CostCurve, APauseOfTheMachineIsNotTakenForItsSpeed) {
  CostCurve curve;
  observe(curve, 4, 0.010);
  curve.observe(4, 10.0);
  EXPECT_LT(curve.at(4), 0.012);
}

TEST(CostCurve, TheLargestSizesShareAPlace) {
  CostCurve curve;
  observe(curve, 4'000'000'000U, 1.0);
  EXPECT_NEAR(curve.at(4'000'000'000.0), 1.0, 1e-9);
  curve.observe(0, 1.0);
  curve.observe(1, -1.0);
  EXPECT_EQ(curve.observations(), 50U) << "no size, no time: nothing seen";
}

TEST(CostCurve, TimesTooShortForTheClockAreZeroAndStayNumbers) {
  CostCurve curve;
  observe(curve, 2, 0.0, 100);
  observe(curve, 8, 0.0, 100);
  EXPECT_EQ(curve.at(2), 0.0);
  EXPECT_EQ(curve.at(8), 0.0);
  observe(curve, 8, 0.010, 100);
  EXPECT_GE(curve.at(2), 0.0);
  EXPECT_NEAR(curve.at(8), 0.010, 0.0005) << "and give way to times that can be measured";
}

}  // namespace
}  // namespace tts::scheduling
