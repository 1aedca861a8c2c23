#include "bench/chart.h"

#include <array>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tts::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Chart chart(std::vector<Series> series) {
  return {.title = "T", .x_label = "x", .y_label = "y", .categories = {}, .log_x = false, .limit = {}, .series = std::move(series)};
}

TEST(TickDistance, IsARoundNumberThatIsFewEnough) {
  EXPECT_DOUBLE_EQ(tick_distance(10, 5), 2);
  EXPECT_DOUBLE_EQ(tick_distance(11, 5), 5);
  EXPECT_DOUBLE_EQ(tick_distance(0.7, 7), 0.1);
  EXPECT_DOUBLE_EQ(tick_distance(900, 7), 200);
  for (double range = 1e-4; range < 1e5; range *= 1.37) EXPECT_LE(range / tick_distance(range, 6), 6 * (1 + 1e-6));
}

TEST(ToSvg, PutsTheCornersOfTheDataIntoThePlot) {
  const std::array charts{chart({{.name = "a", .points = {{0, 0}, {10, 100}}}})};
  const auto svg = to_svg("title", charts);
  std::smatch line;
  ASSERT_TRUE(std::regex_search(svg, line, std::regex("M([0-9.]+) ([0-9.]+)L([0-9.]+) ([0-9.]+)\" stroke=\"#0072b2\"")));
  EXPECT_LT(std::stod(line[1]), std::stod(line[3]));  // to the right
  EXPECT_GT(std::stod(line[2]), std::stod(line[4]));  // and up
  EXPECT_GT(std::stod(line[4]), 0);
}

TEST(ToSvg, KeepsWordsFromBecomingMarkup) {
  auto marked = chart({{.name = "<b>", .points = {{0, 1}}}});
  marked.title = "a & \"b\"";
  const auto svg = to_svg("<t>", std::array{marked});
  EXPECT_THAT(svg, HasSubstr("a &amp; &quot;b&quot;"));
  EXPECT_THAT(svg, HasSubstr("&lt;t&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(ToSvg, LeavesOutChartsWithoutData) {
  const std::array charts{chart({}), chart({{.name = "a", .points = {{1, 1}}}})};
  const auto svg = to_svg("title", charts);
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 460 "));
  EXPECT_THAT(to_svg("empty", std::array<Chart, 0>{}), testing::EndsWith("</svg>\n"));
}

TEST(ToSvg, InterruptsALineWhereACategoryHasNoPoint) {
  auto named = chart({{.name = "a", .points = {{0, 1}, {1, 2}, {3, 3}}}});
  named.categories = {"p", "q", "", "r"};
  const auto svg = to_svg("title", std::array{named});
  EXPECT_TRUE(std::regex_search(svg, std::regex("d=\"M[0-9. ]+L[0-9. ]+M[0-9. ]+\" stroke=\"#0072b2\"")));
}

TEST(ToSvg, DrawsFlatAndLogarithmicDataToo) {
  auto log = chart({{.name = "a", .points = {{1, 0}, {1000, 0}}}});
  log.log_x = true;
  log.limit = 1;
  const auto svg = to_svg("title", std::array{log});
  EXPECT_THAT(svg, HasSubstr("stroke-dasharray"));
  for (const auto* tick : {">1<", ">10<", ">100<", ">1000<"}) EXPECT_THAT(svg, HasSubstr(tick));
  for (const auto* bad : {"nan", "inf"}) EXPECT_THAT(svg, Not(HasSubstr(bad)));
}

}  // namespace
}  // namespace tts::bench
