#include "bench/level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/report.h"

namespace tts::bench {
namespace {

using testing::HasSubstr;

Outcome done(double first_byte, double first_audio, double total, double audio) {
  Outcome outcome;
  outcome.fate = Fate::kDone;
  outcome.first_byte = first_byte;
  outcome.first_audio = first_audio;
  outcome.total = total;
  outcome.audio = audio;
  outcome.gaps = {0.1, 0.2};
  return outcome;
}

LoadResult good_result() {
  LoadResult result;
  result.outcomes = {done(0.1, 0.2, 1.0, 4.0), done(0.3, 0.4, 2.0, 4.0)};
  result.asked = 2;
  result.window = 4;
  result.before.audio = 1;
  result.at_end.audio = 9;
  return result;
}

LoadOptions closed(std::size_t clients) {
  LoadOptions options;
  options.clients = clients;
  return options;
}

TEST(MakeLevel, DescribesTheCompletedRequests) {
  const auto level = make_level(closed(2), good_result());
  EXPECT_EQ(level.completed, 2U);
  EXPECT_EQ(level.first_byte.p50, 0.1);
  EXPECT_EQ(level.first_audio.max, 0.4);
  EXPECT_EQ(level.gap.count, 4U);
  EXPECT_EQ(level.rtf.max, 0.5);
  EXPECT_DOUBLE_EQ(level.audio_rate, 2.0);
  EXPECT_DOUBLE_EQ(level.audio_per_request, 4.0);
  EXPECT_EQ(why_not_passed(level), "");
}

TEST(WhyNotPassed, NamesEverythingAListenerWouldMind) {
  auto result = good_result();
  result.total.underruns = 3;
  result.total.underrun_seconds = 0.5;
  EXPECT_THAT(why_not_passed(make_level(closed(2), result)), HasSubstr("3 silences of 0.50 s"));

  result = good_result();
  Outcome refused;
  refused.fate = Fate::kRefused;
  refused.retry_after = 2;
  result.outcomes.push_back(refused);
  const auto level = make_level(closed(2), result);
  EXPECT_THAT(why_not_passed(level), HasSubstr("1 refused"));
  EXPECT_EQ(level.retry_after.p50, 2);
  EXPECT_EQ(level.first_byte.count, 2U);

  result = good_result();
  Outcome failed;
  failed.error = "the connection broke";
  result.outcomes.push_back(failed);
  EXPECT_THAT(why_not_passed(make_level(closed(2), result)), HasSubstr("1 failed (the connection broke)"));

  result = good_result();
  result.unfinished = 1;
  EXPECT_THAT(why_not_passed(make_level(closed(2), result)), HasSubstr("1 without an end"));

  EXPECT_NE(why_not_passed(make_level(closed(2), {})), "");
}

TEST(EngineShare, IsTheDifferenceOfTwoRenderings) {
  const std::string before =
      "# HELP tts_step_seconds x\ntts_step_seconds_count 10\ntts_step_seconds_sum 1\ntts_batch_rows_sum 20\ntts_batch_rows_count 10\n"
      "tts_decode_seconds_count 5\ntts_decode_seconds_sum 0.5\n";
  const std::string after =
      "tts_step_seconds_count 30\ntts_step_seconds_sum 3\ntts_batch_rows_sum 100\ntts_batch_rows_count 30\n"
      "tts_decode_seconds_count 5\ntts_decode_seconds_sum 0.5\n";
  const auto share = engine_share(before, after, 10);
  EXPECT_DOUBLE_EQ(share.steps_per_second, 2);
  EXPECT_DOUBLE_EQ(share.step_seconds, 0.1);
  EXPECT_DOUBLE_EQ(share.rows_per_step, 4);
  EXPECT_DOUBLE_EQ(share.generate_share, 0.2);
  EXPECT_DOUBLE_EQ(share.decode_share, 0);
  EXPECT_DOUBLE_EQ(share.decode_seconds, 0);
}

TEST(MetricValue, SumsSeriesOfExactlyThatName) {
  const std::string text = "a_total{x=\"1\"} 2\na_total{x=\"2\"} 3.5\na_total_more 100\na 7\n";
  EXPECT_EQ(metric_value(text, "a_total"), 5.5);
  EXPECT_EQ(metric_value(text, "a"), 7);
  EXPECT_EQ(metric_value(text, "b"), 0);
}

TEST(MetricLabel, IsTheValueOfThatNameOnly) {
  const std::string text = "# HELP info x\ninfo{device=\"cpu\",precision=\"int8 weights, int8 KV\",v=\"\"} 1\ninfo_more{device=\"no\"} 1\n";
  EXPECT_EQ(metric_label(text, "info", "device"), "cpu");
  EXPECT_EQ(metric_label(text, "info", "precision"), "int8 weights, int8 KV");
  EXPECT_EQ(metric_label(text, "info", "ice"), "");
  EXPECT_EQ(metric_label(text, "info", "v"), "");
  EXPECT_EQ(metric_label(text, "none", "device"), "");
}

TEST(Report, JsonHoldsTheLevelsAndTheirVerdict) {
  Report report;
  report.levels.push_back(make_level(closed(2), good_result()));
  report.levels[0].name = "closed 2";
  auto bad = good_result();
  bad.total.underruns = 1;
  bad.total.dry = 1;
  LoadOptions open;
  open.clients = 0;
  open.rate = 3;
  report.levels.push_back(make_level(open, bad));
  const auto json = to_json(report);
  ASSERT_EQ(json["levels"].size(), 2U);
  EXPECT_EQ(json["levels"][0]["passed"], true);
  EXPECT_EQ(json["levels"][0]["clients"], 2);
  EXPECT_EQ(json["levels"][0]["first_audio_s"]["p50"], 0.2);
  EXPECT_TRUE(json["levels"][0]["retry_after_s"].is_null());
  EXPECT_EQ(json["levels"][1]["kind"], "open");
  EXPECT_EQ(json["levels"][1]["passed"], false);
  EXPECT_EQ(json["levels"][1]["underruns"]["count"], 1);
  EXPECT_FALSE(json.contains("capacity"));
}

TEST(Report, PlotHasAChartForEachQuestion) {
  Report report;
  report.levels.push_back(make_level(closed(1), good_result()));
  report.levels[0].name = "closed 1 & <more>";
  const auto svg = plot(report);
  EXPECT_THAT(svg, testing::StartsWith("<svg "));
  EXPECT_THAT(svg, HasSubstr("First sound by load"));
  EXPECT_THAT(svg, HasSubstr("closed 1 &amp; &lt;more&gt;"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("nan")));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

}  // namespace
}  // namespace tts::bench
