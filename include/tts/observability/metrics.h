#pragma once
// Everything the server counts, as events. Call sites say what happened; names, labels and buckets live in metrics.cpp.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tts::observability {

// Thread-safe. Counters and gauges take no lock once their label values have been met; histograms take a short one of their own.
// Label values come from fixed sets in our code, never from user input.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  void add_queue_length(std::int64_t delta);  // tts_queue_length; a delta, as the next, so that several engines add up
  void add_active_rows(std::int64_t delta);   // tts_active_rows
  // Paused utterances whose slots others got: tts_parked_total, tts_parked_utterances, tts_parked_bytes. Each one that was parked is
  // unparked (tts_unparked_total) or ends where it is.
  void utterance_parked(std::uint64_t bytes);
  void utterance_unparked(std::uint64_t bytes);
  void parked_utterance_ended(std::uint64_t bytes);
  void rows_skipped(std::uint32_t rows);      // tts_skipped_rows_total
  // A piece of sound reached its listener, who had that much left to hear; negative = had run dry that long ago.
  void piece_delivered(std::chrono::duration<double> left);
  void low_latency_piece();  // tts_low_latency_pieces_total
  void prefixes_looked_up(std::uint64_t hits, std::uint64_t misses, std::int64_t held_bytes_delta);  // tts_prefix_cache_*
  void step_done(std::uint32_t decode_rows, std::uint32_t prefill_tokens, std::chrono::duration<double> took);
  void decode_done(std::uint32_t streams, std::uint32_t steps, std::chrono::duration<double> took);
  void utterance_finished(std::string_view stop_reason);
  void engine_failure();

  void request_started(std::string_view route);
  void request_finished(std::string_view route, int http_status, std::chrono::duration<double> took);
  void rejected(std::string_view reason);                     // tts_rejected_total{reason}
  void cancelled(std::string_view stage);                     // tts_cancelled_total{stage}
  void first_packet(std::chrono::duration<double> took);      // tts_first_packet_seconds
  void synthesis_finished(double audio_seconds, double rtf);  // tts_synthesis_rtf_ratio, tts_audio_seconds_total
  void add_stream_bytes(std::int64_t delta);                  // tts_stream_buffer_bytes
  void add_connections(std::int64_t delta);                   // tts_connections

  void add_session_bytes(std::int64_t delta);                            // tts_session_bytes
  void set_sessions(std::size_t with_socket, std::size_t waiting);       // tts_sessions{state}
  // resumed, resume_gap, resume_unknown, resume_expired: what a client was told; expired, evicted: sessions that nobody came back to.
  void session_resumed(std::string_view outcome);                        // tts_session_resumes_total{outcome}
  void socket_closed(std::string_view by);                               // tts_sockets_closed_total{by}: client, server, broken
  void socket_close_sent(std::uint16_t code);                            // tts_socket_close_codes_total{code}
  void context_ended(std::string_view how);                              // tts_contexts_total{end}: done, cancelled, error, session_end

  void set_limit(std::string_view name, double value);                                             // tts_limit{name}
  void set_capacity(std::uint32_t realtime_streams, std::chrono::duration<double> expected_wait);  // of all engines together
  void set_gpu_memory(std::string_view device, std::uint64_t bytes);                               // tts_gpu_memory_bytes{device}
  void set_ready(bool ready);                                                                      // tts_ready
  void set_build_info(std::string_view version, std::string_view model, std::string_view device,
                      std::string_view precision);  // tts_build_info
  void before_render(std::function<void()> refresh);  // brings gauges up to date; set before the first render(), on whose thread it runs
  std::string render() const;                         // Prometheus text exposition format 0.0.4

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tts::observability
