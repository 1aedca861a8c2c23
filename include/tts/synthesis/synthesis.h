#pragma once
// A validated request in, encoded audio packets out.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tts/audio/format.h"
#include "tts/base/clock.h"
#include "tts/base/result.h"
#include "tts/engine/utterance_engine.h"
#include "tts/engine/voice.h"
#include "tts/observability/metrics.h"
#include "tts/resume/stream_log.h"
#include "tts/text/front_end.h"

namespace tts::synthesis {

// Values the client set; unset ones come from the model's manifest.
struct SamplingOverrides {
  std::optional<float> temperature, top_p, repetition_penalty;
  std::optional<std::uint32_t> top_k, min_steps, max_steps;
};

struct RefineOptions {
  std::string prompt;  // "[oral_2][laugh_0][break_6]" or empty
};

struct SynthesisRequest {
  std::string request_id;
  std::string text;                          // valid UTF-8, not blank, within max_text_chars
  std::string voice;                         // an id of Options::voices
  audio::AudioFormat format;
  double speed = 1.0;                        // 0.5..2.0
  std::optional<std::uint64_t> seed;         // unset = random; Synthesis::seed() tells which
  SamplingOverrides sampling;
  text::TextOptions text_options;            // has_speaker is filled in by the service
  std::optional<RefineOptions> refine;
  engine::MelPath mel_path = engine::MelPath::kHidden;
  engine::Latency latency = engine::Latency::kDefault;
  std::chrono::milliseconds packet{0};       // audio per packet; every packet but the last holds exactly this much (containers with
                                             // their own framing round to it); 0 = as it is made, soonest and with least to do
  bool whole = false;                        // true: one packet with everything, headers carrying true sizes
  bool incremental = false;
  std::chrono::milliseconds max_buffer_delay{3000};
  TimePoint deadline = TimePoint::max();
};

struct SpeechChange {
  std::optional<std::string> voice, language;
  std::optional<double> speed;
  SamplingOverrides sampling;
  std::optional<engine::Latency> latency;
};

struct SynthesisReport {  // valid once the log has ended
  std::uint64_t samples = 0;         // at the output rate
  std::uint32_t sentences = 0;
  std::uint32_t steps = 0;
  std::chrono::duration<double> first_packet{0}, total{0};
  std::vector<std::string> dropped;  // characters that were not spoken
};

// The consumer's end of one running request. Destroying it before the end cancels the work within one decode step. May outlive the
// service, whose end fails the log, but not the service's parts.
class Synthesis {
 public:
  virtual ~Synthesis() = default;
  virtual resume::StreamLog& log() noexcept = 0;        // packets of encoded audio; log().error() says why it failed
  virtual std::uint64_t seed() const noexcept = 0;
  virtual SynthesisReport report() const = 0;           // thread-safe; partial while running
};

struct ServiceOptions {
  std::uint32_t workers = 2;                      // threads for text and audio work
  std::uint32_t max_requests = 256;               // running at once; beyond: kQueueFull with retry_after
  std::uint32_t max_text_chars = 4000;            // code points; beyond: kTooLarge
  std::uint32_t sentences_ahead = 1;              // utterances that generate before the one being delivered has ended; they start
                                                  // when its first sound has come, so that they do not delay it
  std::uint32_t crossfade_ms = 50;
  std::uint32_t max_audio_seconds = 1800;         // of one request; beyond: the log fails with kTooLarge
  std::uint32_t max_ahead_seconds = 20;           // audio held for a sentence whose turn has not come; beyond, it pauses
  std::uint32_t opus_complexity = 5;              // 0..10; see audio::EncoderOptions
  std::uint32_t max_backlog_seconds = 5;          // audio of one utterance that waits for a worker; beyond, it pauses
  resume::StreamLogOptions log;
};

struct ServiceParts {  // none owned; all must outlive the service
  engine::UtteranceEngine& engine;
  const text::FrontEnd& front_end;
  const std::vector<engine::Voice>& voices;
  const engine::SamplingParams& sampling;   // the model's defaults
  std::uint32_t sample_rate;                // of the model
  const Clock& clock;
  observability::Metrics& metrics;
};

// Thread-safe.
class Service {
 public:
  // Throws std::invalid_argument listing every value out of range.
  Service(ServiceParts parts, ServiceOptions options);
  ~Service();  // cancels what runs, waits for the engine's final calls and joins the workers

  // Never blocks. kQueueFull, kUnavailable (stopping), kNotFound (voice), kTooLarge, kInvalidArgument, kUnsupported (refine).
  // Errors found later (text without anything to say, engine failures) end the log.
  Result<std::unique_ptr<Synthesis>> start(SynthesisRequest request);

  void stop_accepting();             // start() answers kUnavailable from now on
  std::uint32_t running() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tts::synthesis
