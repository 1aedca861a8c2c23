#pragma once
// Where utterances are submitted and PCM comes back: a scheduler over a local StepEngine, or a remote worker.

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tts/base/clock.h"
#include "tts/base/result.h"
#include "tts/engine/utterance.h"

namespace tts::engine {

using UtteranceId = std::uint64_t;  // unique within one UtteranceEngine, never reused; 0 is no utterance

// How the audio is used; decides whose step comes first and whether a newcomer may join.
enum class Delivery : std::uint8_t {
  kStreamed,  // heard while it is made: once sound has begun, the listener must not run dry
  kWhole,     // used when complete (a file): shares what streams leave over
};

// What a streamed utterance may give up for an earlier first sound.
enum class Latency : std::uint8_t {
  kDefault,  // as the engine is configured
  kLow,      // first samples look at fewer of the steps that follow them; later ones at more, as the listener's buffer allows, up to all
  kExact,    // nothing: every sample equals that of decoding the whole utterance at once
};

struct UtteranceRequest {
  std::string request_id;                    // for logs only
  UtterancePrompt prompt;
  SamplingParams sampling;
  Delivery delivery = Delivery::kStreamed;
  Latency latency = Latency::kDefault;       // whole utterances are always exact
  std::uint64_t listener = 0;                // utterances heard one after the other share it, so that they count as one stream and the
                                             // later one yields to the earlier; 0 = a listener of its own
  double pace = 1.0;                         // of the listener: seconds of sound heard in a second, > 0
  TimePoint runs_dry_at{};                   // streamed: when the listener has heard all that earlier utterances of its request gave;
                                             // zero = nothing is heard yet, every moment until the first sample is silence
  TimePoint deadline = TimePoint::max();     // past it the utterance stops with kDeadlineExceeded
};

struct UtteranceSummary {
  StopReason stop = StopReason::kNone;
  std::uint32_t steps = 0;
  std::uint64_t samples = 0;
  std::vector<std::int32_t> text_tokens;  // text stage: what was generated, end token excluded
};

// Receives one utterance's output. Called on the engine's own thread: must copy what it keeps and return at once, never block.
// Order: any number of on_pcm, then exactly one of on_done or on_error, also after cancel(). The engine drops its reference
// right after the final call.
class UtteranceSink {
 public:
  virtual ~UtteranceSink() = default;
  // `samples` are valid during the call only. `last`: none follow; an utterance may also end without such a call.
  virtual void on_pcm(std::span<const float> samples, bool last) = 0;
  virtual void on_done(const UtteranceSummary& summary) = 0;
  virtual void on_error(const Error& error) = 0;
};

struct EngineLoad {
  std::uint32_t queued = 0;      // accepted, not yet in a slot
  std::uint32_t active = 0;      // in a slot
  std::uint32_t parked = 0;      // begun, and without a slot while their listeners pause: work for later
  std::uint32_t max_active = 0;  // slots
  std::uint32_t max_queued = 0;
  std::uint32_t realtime_streams = 0;           // streams that can be kept gap-free by what was measured lately; 0 = not known yet
  std::chrono::milliseconds expected_wait{0};   // of a new stream, before it gets a slot
};

struct EngineHealth {
  bool ready = false;                // accepts work
  TimePoint last_progress{};         // end of the last successful step or idle turn
  std::string detail;                // why not ready; empty when ready
};

// Thread-safe.
class UtteranceEngine {
 public:
  virtual ~UtteranceEngine() = default;

  // Never blocks. On success the sink will receive its final call, whatever happens. On error (kQueueFull with retry_after,
  // kUnavailable while stopping, kInvalidArgument) the sink is never called. The prompt itself is validated when a slot
  // takes it; a rejection then arrives as on_error.
  virtual Result<UtteranceId> submit(UtteranceRequest request, std::shared_ptr<UtteranceSink> sink) = 0;

  // Takes effect within one decode step; the sink then gets on_error(kCancelled). Unknown or finished ids are ignored.
  virtual void cancel(UtteranceId id) noexcept = 0;

  // A paused utterance generates nothing (its listener's buffer is full). When the pause lasts and others want its slot, they may have it;
  // afterwards it gets one again before newcomers do. Unknown ids are ignored.
  virtual void set_paused(UtteranceId id, bool paused) noexcept = 0;

  // The sender knows better than the engine's own estimate (first samples out plus all samples since) when this utterance's listener
  // runs dry: it reported its buffer, or packets still wait here. All samples given so far must be counted in. Unknown ids are ignored.
  virtual void set_runs_dry_at(UtteranceId id, TimePoint when) noexcept = 0;

  virtual EngineLoad load() const = 0;
  virtual EngineHealth health() const = 0;
};

}  // namespace tts::engine
