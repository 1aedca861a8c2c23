#include "tts/observability/metrics.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace tts::observability {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

constexpr std::array<std::string_view, 12> kRoutes{"/synthesize",
                                                   "/synthesize_stream",
                                                   "/v1/audio/speech",
                                                   "/v1/stream",
                                                   "/v1/voices",
                                                   "/v1/models",
                                                   "/openapi.json",
                                                   "/",
                                                   "/livez",
                                                   "/readyz",
                                                   "/metrics",
                                                   "other"};
constexpr std::array<int, 18> kStatuses{101, 200, 204, 400, 403, 404, 405, 408, 413, 415, 417, 422, 429, 431, 499, 500, 503, 504};
constexpr std::array<std::string_view, 9> kRejections{
    "queue_full", "origin", "too_many_requests", "too_many_connections", "draining", "not_ready", "invalid", "too_large", "framing"};
constexpr std::array<std::string_view, 4> kCancelStages{"queued", "before_first_packet", "streaming", "other"};
constexpr std::array<std::string_view, 2> kSessionStates{"attached", "waiting"};
constexpr std::array<std::string_view, 6> kResumeOutcomes{"resumed", "resume_gap", "resume_unknown", "resume_expired", "expired", "evicted"};
constexpr std::array<std::string_view, 3> kClosers{"client", "server", "broken"};
constexpr std::array<std::string_view, 4> kContextEnds{"done", "cancelled", "error", "session_end"};
constexpr std::array<std::string_view, 9> kCloseCodes{"1000", "1003", "1007", "1011", "1012", "1013", "4000", "4001", "4008"};
constexpr std::array<std::string_view, 6> kStopReasons{"end_token", "max_steps", "cancelled", "deadline", "failed", "none"};

// The first-packet objective (0.3 s) is a bucket edge, so the share of requests that met it is exact.
const Buckets kFirstPacketBuckets{.05, .1, .15, .2, .25, .3, .4, .6, 1, 2, 5};
const Buckets kRequestBuckets{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120};
const Buckets kStepBuckets{.0005, .001, .002, .005, .01, .02, .03, .05, .1, .2, .5, 1};
const Buckets kRowBuckets{1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256};
const Buckets kSlackBuckets{0, .05, .1, .2, .5, 1, 2, 5, 10, 20};
const Buckets kRtfBuckets{.01, .02, .05, .1, .2, .3, .4, .5, .7, 1, 1.5, 2, 5};

template <class T>
T& single(prometheus::Registry& registry, const char* name, const char* help) {
  if constexpr (std::is_same_v<T, Counter>) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
  } else {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
}

Histogram& histogram(prometheus::Registry& registry, const char* name, const char* help, const Buckets& buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

// One label whose values come from a fixed list. A series appears when its value is first met; later lookups take no lock.
template <class T>
class OneLabel {
 public:
  OneLabel(prometheus::Family<T>& family, const char* label, std::span<const std::string_view> known)
      : family_(family), label_(label), known_(known), handles_(known.size()) {}

  template <class... AddArguments>
  T& at(std::string_view value, const AddArguments&... arguments) {
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (known_[i] != value) continue;
      T* handle = handles_[i].load(std::memory_order_acquire);
      if (handle == nullptr) {
        handle = &family_.Add({{label_, std::string(value)}}, arguments...);  // returns the same series when two threads race
        handles_[i].store(handle, std::memory_order_release);
      }
      return *handle;
    }
    return family_.Add({{label_, std::string(value)}}, arguments...);
  }

 private:
  prometheus::Family<T>& family_;
  const char* label_;
  std::span<const std::string_view> known_;
  std::vector<std::atomic<T*>> handles_;
};

class RequestCounters {
 public:
  explicit RequestCounters(prometheus::Family<Counter>& family) : family_(family) {}

  Counter& at(std::string_view route, int status) {
    const auto add = [&]() -> Counter& { return family_.Add({{"route", std::string(route)}, {"code", std::to_string(status)}}); };
    for (std::size_t r = 0; r < kRoutes.size(); ++r) {
      if (kRoutes[r] != route) continue;
      for (std::size_t s = 0; s < kStatuses.size(); ++s) {
        if (kStatuses[s] != status) continue;
        auto& cell = handles_[r * kStatuses.size() + s];
        Counter* handle = cell.load(std::memory_order_acquire);
        if (handle == nullptr) {
          handle = &add();
          cell.store(handle, std::memory_order_release);
        }
        return *handle;
      }
    }
    return add();
  }

 private:
  prometheus::Family<Counter>& family_;
  std::array<std::atomic<Counter*>, kRoutes.size() * kStatuses.size()> handles_{};
};

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;

  Gauge& queue_length = single<Gauge>(registry, "tts_queue_length", "Utterances accepted and waiting for a slot.");
  Gauge& active_rows = single<Gauge>(registry, "tts_active_rows", "Utterances generating now.");
  Gauge& parked_utterances =
      single<Gauge>(registry, "tts_parked_utterances", "Paused utterances that wait in host memory because others needed their slots.");
  Gauge& parked_bytes = single<Gauge>(registry, "tts_parked_bytes", "Host memory that they take.");
  Counter& parked = single<Counter>(registry, "tts_parked_total", "Paused utterances that gave up their slots.");
  Counter& unparked = single<Counter>(registry, "tts_unparked_total", "Such utterances that got a slot again.");
  Counter& skipped_rows =
      single<Counter>(registry, "tts_skipped_rows_total", "Steps that utterances sat out because listeners of others were short of audio.");
  Histogram& playback_slack = histogram(registry, "tts_playback_slack_seconds",
                                        "Audio a listener had left when the next piece came, by the server's own playback clock.", kSlackBuckets);
  Counter& underruns =
      single<Counter>(registry, "tts_underruns_total", "Pieces that came after their listener had run dry, by the server's own playback clock.");
  Counter& underrun_seconds = single<Counter>(registry, "tts_underrun_seconds_total", "Silence that those listeners heard.");
  Counter& low_latency_pieces =
      single<Counter>(registry, "tts_low_latency_pieces_total", "Pieces decoded with less than exact lookahead.");
  Gauge& realtime_streams =
      single<Gauge>(registry, "tts_realtime_streams", "Streams that can be kept gap-free by what was measured lately; 0 = not known yet.");
  Gauge& expected_wait = single<Gauge>(registry, "tts_expected_wait_seconds", "Time before a new utterance gets a slot, as estimated.");
  Counter& prefix_hits = single<Counter>(registry, "tts_prefix_cache_hits_total", "Prompt prefixes whose keys and values were there already.");
  Counter& prefix_misses = single<Counter>(registry, "tts_prefix_cache_misses_total", "Prompt prefixes that had to be computed.");
  Gauge& prefix_bytes = single<Gauge>(registry, "tts_prefix_cache_bytes", "Keys and values of prompt prefixes kept for reuse.");
  Histogram& step_seconds = histogram(registry, "tts_step_seconds", "Duration of one generation step over the whole batch.", kStepBuckets);
  Histogram& batch_rows = histogram(registry, "tts_batch_rows", "Decode rows that shared one generation step.", kRowBuckets);
  Counter& prefill_tokens = single<Counter>(registry, "tts_prefill_tokens_total", "Prompt positions consumed.");
  Counter& generated_steps = single<Counter>(registry, "tts_generated_steps_total", "Decode steps generated, summed over rows.");
  Histogram& decode_seconds =
      histogram(registry, "tts_decode_seconds", "Duration of one decoder and vocoder pass over its streams.", kStepBuckets);
  Histogram& decode_streams = histogram(registry, "tts_decode_streams", "Streams that shared one decoder and vocoder pass.", kRowBuckets);
  Counter& decoded_steps = single<Counter>(registry, "tts_decoded_steps_total", "Steps turned into audio, summed over streams.");
  Counter& engine_failures = single<Counter>(registry, "tts_engine_failures_total", "Steps or decoder passes that failed on the device.");
  Histogram& first_packet =
      histogram(registry, "tts_first_packet_seconds", "From an accepted request to its first encoded audio packet.", kFirstPacketBuckets);
  Histogram& rtf =
      histogram(registry, "tts_synthesis_rtf_ratio", "Time taken by a finished request over the duration of its audio.", kRtfBuckets);
  Counter& audio_seconds = single<Counter>(registry, "tts_audio_seconds_total", "Audio delivered by finished requests.");
  Gauge& stream_bytes = single<Gauge>(registry, "tts_stream_buffer_bytes", "Encoded audio waiting for clients.");
  Gauge& connections = single<Gauge>(registry, "tts_connections", "Open client connections.");
  Gauge& session_bytes =
      single<Gauge>(registry, "tts_session_bytes", "Of streaming sessions: what was not sent, and what was sent and not acknowledged.");
  OneLabel<Gauge> sessions{
      prometheus::BuildGauge().Name("tts_sessions").Help("Streaming sessions, with a socket or waiting to be resumed.").Register(registry),
      "state", kSessionStates};
  OneLabel<Counter> resumes{prometheus::BuildCounter()
                                .Name("tts_session_resumes_total")
                                .Help("Attempts to resume a session by their outcome, and sessions that nobody came back to.")
                                .Register(registry),
                            "outcome", kResumeOutcomes};
  OneLabel<Counter> sockets_closed{
      prometheus::BuildCounter().Name("tts_sockets_closed_total").Help("WebSockets that ended, by who ended them.").Register(registry), "by",
      kClosers};
  OneLabel<Counter> close_codes{
      prometheus::BuildCounter().Name("tts_socket_close_codes_total").Help("WebSockets closed by the server, by code.").Register(registry),
      "code", kCloseCodes};
  OneLabel<Counter> contexts{
      prometheus::BuildCounter().Name("tts_contexts_total").Help("Contexts of streaming sessions that ended.").Register(registry), "end",
      kContextEnds};
  Gauge& ready = single<Gauge>(registry, "tts_ready", "1 while the server accepts work.");

  OneLabel<Counter> utterances{
      prometheus::BuildCounter().Name("tts_utterances_total").Help("Utterances that ended, by the reason.").Register(registry),
      "stop_reason", kStopReasons};
  OneLabel<Counter> rejections{
      prometheus::BuildCounter().Name("tts_rejected_total").Help("Requests and connections refused, by the reason.").Register(registry),
      "reason", kRejections};
  OneLabel<Counter> cancellations{prometheus::BuildCounter()
                                      .Name("tts_cancelled_total")
                                      .Help("Requests whose client left, by how far they had come.")
                                      .Register(registry),
                                  "stage", kCancelStages};
  OneLabel<Gauge> in_flight{prometheus::BuildGauge().Name("tts_requests_in_flight").Help("Requests being answered.").Register(registry),
                            "route", kRoutes};
  OneLabel<Histogram> request_seconds{prometheus::BuildHistogram()
                                          .Name("tts_request_seconds")
                                          .Help("From a parsed request head to the last byte of its reply.")
                                          .Register(registry),
                                      "route", kRoutes};
  RequestCounters requests{prometheus::BuildCounter().Name("tts_requests_total").Help("Requests answered.").Register(registry)};
  prometheus::Family<Gauge>& limits = prometheus::BuildGauge().Name("tts_limit").Help("Configured limits, by name.").Register(registry);
  prometheus::Family<Gauge>& gpu_memory =
      prometheus::BuildGauge().Name("tts_gpu_memory_bytes").Help("Memory this process holds of a GPU.").Register(registry);
  prometheus::Family<Gauge>& build_info =
      prometheus::BuildGauge().Name("tts_build_info").Help("Always 1; the labels tell what runs.").Register(registry);
  std::function<void()> refresh;

  void add_parked(int count, double bytes) {
    parked_utterances.Increment(count);
    parked_bytes.Increment(bytes);
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::add_queue_length(std::int64_t delta) { impl_->queue_length.Increment(static_cast<double>(delta)); }
void Metrics::add_active_rows(std::int64_t delta) { impl_->active_rows.Increment(static_cast<double>(delta)); }

void Metrics::utterance_parked(std::uint64_t bytes) {
  impl_->parked.Increment();
  impl_->add_parked(1, static_cast<double>(bytes));
}

void Metrics::utterance_unparked(std::uint64_t bytes) {
  impl_->unparked.Increment();
  impl_->add_parked(-1, -static_cast<double>(bytes));
}

void Metrics::parked_utterance_ended(std::uint64_t bytes) { impl_->add_parked(-1, -static_cast<double>(bytes)); }

void Metrics::rows_skipped(std::uint32_t rows) { impl_->skipped_rows.Increment(rows); }

void Metrics::piece_delivered(std::chrono::duration<double> left) {
  impl_->playback_slack.Observe(std::max(0.0, left.count()));
  if (left.count() < 0) {
    impl_->underruns.Increment();
    impl_->underrun_seconds.Increment(-left.count());
  }
}

void Metrics::low_latency_piece() { impl_->low_latency_pieces.Increment(); }

void Metrics::prefixes_looked_up(std::uint64_t hits, std::uint64_t misses, std::int64_t held_bytes_delta) {
  impl_->prefix_hits.Increment(static_cast<double>(hits));
  impl_->prefix_misses.Increment(static_cast<double>(misses));
  impl_->prefix_bytes.Increment(static_cast<double>(held_bytes_delta));
}

void Metrics::step_done(std::uint32_t decode_rows, std::uint32_t prefill_tokens, std::chrono::duration<double> took) {
  impl_->step_seconds.Observe(took.count());
  if (decode_rows > 0) {
    impl_->batch_rows.Observe(decode_rows);
    impl_->generated_steps.Increment(decode_rows);
  }
  if (prefill_tokens > 0) impl_->prefill_tokens.Increment(prefill_tokens);
}

void Metrics::decode_done(std::uint32_t streams, std::uint32_t steps, std::chrono::duration<double> took) {
  impl_->decode_seconds.Observe(took.count());
  impl_->decode_streams.Observe(streams);
  if (steps > 0) impl_->decoded_steps.Increment(steps);
}

void Metrics::utterance_finished(std::string_view stop_reason) { impl_->utterances.at(stop_reason).Increment(); }
void Metrics::engine_failure() { impl_->engine_failures.Increment(); }

void Metrics::request_started(std::string_view route) { impl_->in_flight.at(route).Increment(); }

void Metrics::request_finished(std::string_view route, int http_status, std::chrono::duration<double> took) {
  impl_->in_flight.at(route).Decrement();
  impl_->requests.at(route, http_status).Increment();
  impl_->request_seconds.at(route, kRequestBuckets).Observe(took.count());
}

void Metrics::rejected(std::string_view reason) { impl_->rejections.at(reason).Increment(); }
void Metrics::cancelled(std::string_view stage) { impl_->cancellations.at(stage).Increment(); }
void Metrics::first_packet(std::chrono::duration<double> took) { impl_->first_packet.Observe(took.count()); }

void Metrics::synthesis_finished(double audio_seconds, double rtf) {
  if (audio_seconds > 0) impl_->audio_seconds.Increment(audio_seconds);
  impl_->rtf.Observe(rtf);
}

void Metrics::add_stream_bytes(std::int64_t delta) { impl_->stream_bytes.Increment(static_cast<double>(delta)); }
void Metrics::add_connections(std::int64_t delta) { impl_->connections.Increment(static_cast<double>(delta)); }

void Metrics::add_session_bytes(std::int64_t delta) { impl_->session_bytes.Increment(static_cast<double>(delta)); }
void Metrics::set_sessions(std::size_t with_socket, std::size_t waiting) {
  impl_->sessions.at("attached").Set(static_cast<double>(with_socket));
  impl_->sessions.at("waiting").Set(static_cast<double>(waiting));
}
void Metrics::session_resumed(std::string_view outcome) { impl_->resumes.at(outcome).Increment(); }
void Metrics::socket_closed(std::string_view by) { impl_->sockets_closed.at(by).Increment(); }
void Metrics::socket_close_sent(std::uint16_t code) { impl_->close_codes.at(std::to_string(code)).Increment(); }
void Metrics::context_ended(std::string_view how) { impl_->contexts.at(how).Increment(); }

void Metrics::set_limit(std::string_view name, double value) { impl_->limits.Add({{"name", std::string(name)}}).Set(value); }
void Metrics::set_capacity(std::uint32_t realtime_streams, std::chrono::duration<double> expected_wait) {
  impl_->realtime_streams.Set(realtime_streams);
  impl_->expected_wait.Set(expected_wait.count());
}
void Metrics::set_gpu_memory(std::string_view device, std::uint64_t bytes) {
  impl_->gpu_memory.Add({{"device", std::string(device)}}).Set(static_cast<double>(bytes));
}
void Metrics::set_ready(bool ready) { impl_->ready.Set(ready ? 1 : 0); }

void Metrics::set_build_info(std::string_view version, std::string_view model, std::string_view device, std::string_view precision) {
  impl_->build_info
      .Add({{"version", std::string(version)},
            {"model", std::string(model)},
            {"device", std::string(device)},
            {"precision", std::string(precision)}})
      .Set(1);
}

void Metrics::before_render(std::function<void()> refresh) { impl_->refresh = std::move(refresh); }

std::string Metrics::render() const {
  if (impl_->refresh) impl_->refresh();
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace tts::observability
