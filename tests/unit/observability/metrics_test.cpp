#include "tts/observability/metrics.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tts::observability {
namespace {

using std::chrono::duration;
using testing::HasSubstr;
using testing::Not;

TEST(Metrics, QueueLengthKeepsTheNameAutoscalersRead) {
  Metrics metrics;
  EXPECT_THAT(metrics.render(), HasSubstr("tts_queue_length 0\n"));
  metrics.add_queue_length(7);
  EXPECT_THAT(metrics.render(), HasSubstr("tts_queue_length 7\n"));
}

TEST(Metrics, EnginesOfOneProcessAddUp) {
  Metrics metrics;
  metrics.add_queue_length(2);
  metrics.add_active_rows(5);
  metrics.add_queue_length(3);
  metrics.add_active_rows(4);
  metrics.add_active_rows(-5);
  EXPECT_THAT(metrics.render(), HasSubstr("tts_queue_length 5\n"));
  EXPECT_THAT(metrics.render(), HasSubstr("tts_active_rows 4\n"));
}

TEST(Metrics, UnderrunsAreNegativeSlack) {
  Metrics metrics;
  metrics.piece_delivered(duration<double>(0.3));
  metrics.piece_delivered(duration<double>(-0.25));
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_underruns_total 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_underrun_seconds_total 0.25\n"));
  EXPECT_THAT(text, HasSubstr("tts_playback_slack_seconds_bucket{le=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_playback_slack_seconds_count 2\n"));
}

TEST(Metrics, PrefixesOfSeveralEnginesAddUp) {
  Metrics metrics;
  metrics.prefixes_looked_up(3, 1, 1000);
  metrics.prefixes_looked_up(2, 0, -400);
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_prefix_cache_hits_total 5\n"));
  EXPECT_THAT(text, HasSubstr("tts_prefix_cache_misses_total 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_prefix_cache_bytes 600\n"));
}

TEST(Metrics, WhoIsParkedComesBackOrEnds) {
  Metrics metrics;
  metrics.utterance_parked(1000);
  metrics.utterance_parked(200);
  metrics.utterance_parked(30);
  metrics.utterance_unparked(200);
  metrics.parked_utterance_ended(1000);
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_parked_utterances 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_parked_bytes 30\n"));
  EXPECT_THAT(text, HasSubstr("tts_parked_total 3\n"));
  EXPECT_THAT(text, HasSubstr("tts_unparked_total 1\n"));
}

TEST(Metrics, CapacityIsBroughtUpToDateBeforeItIsRead) {
  Metrics metrics;
  EXPECT_THAT(metrics.render(), HasSubstr("tts_realtime_streams 0\n"));
  metrics.before_render([&] { metrics.set_capacity(12, duration<double>(1.5)); });
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_realtime_streams 12\n"));
  EXPECT_THAT(text, HasSubstr("tts_expected_wait_seconds 1.5\n"));
}

TEST(Metrics, FirstPacketObjectiveIsABucketEdge) {
  Metrics metrics;
  metrics.first_packet(duration<double>(0.3));
  metrics.first_packet(duration<double>(0.31));
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_first_packet_seconds_bucket{le=\"0.3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_first_packet_seconds_bucket{le=\"0.4\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tts_first_packet_seconds_count 2\n"));
}

TEST(Metrics, RequestsAreCountedByRouteAndCode) {
  Metrics metrics;
  metrics.request_started("/synthesize");
  EXPECT_THAT(metrics.render(), HasSubstr("tts_requests_in_flight{route=\"/synthesize\"} 1\n"));
  metrics.request_finished("/synthesize", 200, duration<double>(0.02));
  metrics.request_started("/synthesize");
  metrics.request_finished("/synthesize", 418, duration<double>(0.02));  // a status outside the list still counts
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_requests_in_flight{route=\"/synthesize\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tts_requests_total{code=\"200\",route=\"/synthesize\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_requests_total{code=\"418\",route=\"/synthesize\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_request_seconds_count{route=\"/synthesize\"} 2\n"));
}

TEST(Metrics, StepsFeedRowsTokensAndTime) {
  Metrics metrics;
  metrics.step_done(3, 10, duration<double>(0.004));
  metrics.step_done(0, 5, duration<double>(0.004));  // prefill only: not a batch of zero rows
  metrics.decode_done(2, 48, duration<double>(0.02));
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_step_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("tts_batch_rows_count 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_generated_steps_total 3\n"));
  EXPECT_THAT(text, HasSubstr("tts_prefill_tokens_total 15\n"));
  EXPECT_THAT(text, HasSubstr("tts_decoded_steps_total 48\n"));
  EXPECT_THAT(text, HasSubstr("tts_decode_seconds_count 1\n"));
}

TEST(Metrics, GaugesFollowTheirDeltasAndCountersCount) {
  Metrics metrics;
  metrics.add_stream_bytes(500);
  metrics.add_stream_bytes(-200);
  metrics.add_connections(1);
  metrics.low_latency_piece();
  metrics.set_limit("max_queue", 256);
  metrics.set_ready(true);
  metrics.set_build_info("1.2.3", "nano", "cpu", "int8 weights");
  metrics.set_gpu_memory("cuda:1", 5'000'000'000);
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_stream_buffer_bytes 300\n"));
  EXPECT_THAT(text, HasSubstr("tts_connections 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_low_latency_pieces_total 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_limit{name=\"max_queue\"} 256\n"));
  EXPECT_THAT(text, HasSubstr("tts_ready 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_build_info{device=\"cpu\",model=\"nano\",precision=\"int8 weights\",version=\"1.2.3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_gpu_memory_bytes{device=\"cuda:1\"} 5000000000\n"));
}

TEST(Metrics, FinishedSynthesisAddsAudio) {
  Metrics metrics;
  metrics.synthesis_finished(2.5, 0.25);
  metrics.synthesis_finished(0, 0);  // nothing was spoken
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_audio_seconds_total 2.5\n"));
  EXPECT_THAT(text, HasSubstr("tts_synthesis_rtf_ratio_count 2\n"));
}

TEST(Metrics, ReasonsAppearWhenMet) {
  Metrics metrics;
  EXPECT_THAT(metrics.render(), Not(HasSubstr("reason=\"queue_full\"")));
  metrics.rejected("queue_full");
  metrics.cancelled("streaming");
  metrics.utterance_finished("end_token");
  metrics.engine_failure();
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_rejected_total{reason=\"queue_full\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_cancelled_total{stage=\"streaming\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_utterances_total{stop_reason=\"end_token\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tts_engine_failures_total 1\n"));
}

TEST(Metrics, ConcurrentFirstUseLosesNothing) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 500;
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&metrics] {
      for (int i = 0; i < kRounds; ++i) {
        metrics.rejected("queue_full");
        metrics.request_started("/");
        metrics.request_finished("/", 404, duration<double>(0));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto text = metrics.render();
  EXPECT_THAT(text, HasSubstr("tts_rejected_total{reason=\"queue_full\"} 2000\n"));
  EXPECT_THAT(text, HasSubstr("tts_requests_total{code=\"404\",route=\"/\"} 2000\n"));
}

}  // namespace
}  // namespace tts::observability
