#pragma once
// A validated request in, encoded audio packets out.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  std::string text;                          // valid UTF-8, not blank, within max_text_chars; empty if incremental
  bool incremental = false;                  // text comes through append_text(), until end_text()
  std::chrono::milliseconds max_buffer_delay{3000};  // incremental: how long text waits for the end of its sentence before it is spoken
                                                     // up to a clause or word; 0 = until a stop, flush or end
  std::string voice;                         // an id of Options::voices
  audio::AudioFormat format;
  double speed = 1.0;                        // 0.5..2.0
  std::optional<std::uint64_t> seed;         // unset = random; Synthesis::seed() tells which
  SamplingOverrides sampling;
  text::TextOptions text_options;            // has_speaker is filled in by the service
  std::optional<RefineOptions> refine;
  engine::MelPath mel_path = engine::MelPath::kHidden;
  engine::Latency latency = engine::Latency::kDefault;
  std::chrono::milliseconds packet{0};       // audio per packet; every packet but the last, and the last before a pause of incremental
                                             // text, holds exactly this much (containers with their own framing round to it); 0 = as it
                                             // is made, soonest and with least to do
  bool whole = false;                        // true: one packet with everything, headers carrying true sizes
  bool adaptive_bitrate = false;             // Synthesis::set_bitrate() will be called; see audio::EncoderOptions
  std::optional<resume::StreamLogOptions> log;  // unset = ServiceOptions::log
  TimePoint deadline = TimePoint::max();
};

// What is set changes, the rest stays.
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

// The consumer's end of one running request. Thread-safe; nothing blocks. Destroying it before the end cancels the work within one
// decode step. May outlive the service, whose end fails the log, but not the service's parts.
class Synthesis {
 public:
  virtual ~Synthesis() = default;
  virtual resume::StreamLog& log() noexcept = 0;        // packets of encoded audio; log().error() says why it failed
  virtual std::uint64_t seed() const noexcept = 0;
  virtual SynthesisReport report() const = 0;           // partial while running
  // Of what a decoder of bare Opus packets gives, the samples at the start that are no sound of the request; known from the start.
  virtual std::uint32_t pre_skip() const noexcept { return 0; }

  // For incremental requests. Their packets carry marks: kSentence before the first audio of each sentence, kFlushed; each is on the
  // next packet made, on one without bytes where no other comes. Without anything to say they finish without audio and without an error.

  // All or nothing. kTooLarge: text that waits to be spoken would exceed max_text_chars. kInvalidArgument: not UTF-8, a NUL, after
  // end_text(), or not an incremental request. Once the log has ended: ignored.
  virtual Status append_text(std::string_view) { return not_incremental(); }
  virtual void flush_text() {}                          // speak what is held; a kFlushed mark follows its audio, or comes at once
  virtual void end_text() {}                            // flush, and finish the log once all is spoken
  // Of sentences not yet submitted. kNotFound and kInvalidArgument as start().
  virtual Status change(SpeechChange) { return not_incremental(); }
  virtual std::uint64_t characters() const { return 0; }  // code points appended so far

  // For every request.

  // When the listener will have heard everything that was acknowledged in the log, as the client says. Stands in place of our own
  // estimate; what waits in the log is added to it, and what is made from now on.
  virtual void report_runs_dry_at(TimePoint) {}
  virtual void set_bitrate(std::uint32_t /*bits_per_second*/) {}  // Opus: from the next packet on

 protected:
  static Error not_incremental() {
    return {ErrorCode::kInvalidArgument, "this request was given its whole text at the start", "text", {}};
  }
};

struct ServiceOptions {
  std::uint32_t workers = 2;                      // threads for text and audio work
  std::uint32_t max_requests = 256;               // running at once; beyond: kQueueFull with retry_after
  std::uint32_t max_text_chars = 4000;            // code points, of incremental requests those that wait to be spoken; beyond: kTooLarge
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
