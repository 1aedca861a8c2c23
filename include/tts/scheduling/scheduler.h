#pragma once
// The one thread that touches a model: continuous batching over a StepEngine's fixed slots.

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "tts/base/clock.h"
#include "tts/engine/step_engine.h"
#include "tts/engine/utterance_engine.h"
#include "tts/observability/metrics.h"

namespace tts::scheduling {

// How a stream's first sound weighs against samples that equal offline ones; what an utterance says itself goes first.
enum class LatencyMode : std::uint8_t {
  kAuto,   // exact where the first sound then comes within exact_within, else low; rather low than a listener who runs dry
  kLow,    // see engine::Latency::kLow
  kExact,  // see engine::Latency::kExact
};

struct SchedulerOptions {
  std::uint32_t max_batch = 32;                     // utterances in slots at once; at most the engine's slots
  std::uint32_t max_queue = 256;                    // accepted and waiting; beyond: kQueueFull
  std::chrono::milliseconds max_wait{10000};        // a newcomer expected to wait longer for a slot: kQueueFull; 0 = no limit
  std::uint32_t max_load_percent = 90;              // of the machine's time that admitted streams may need to stay at real time
  std::chrono::milliseconds max_lead{10000};        // streams further ahead of their listener than that yield to all others
  LatencyMode latency = LatencyMode::kAuto;
  std::uint32_t lookahead = 10;                     // steps that early samples of low latency look ahead; from EngineInfo::lookahead_steps
                                                    // up they are exact
  std::chrono::milliseconds exact_within{200};      // kAuto: from submission to the first sound
  std::chrono::milliseconds batch_window{2};        // an idle engine waits this long for company before its first step; 0 = none
  std::uint32_t prefill_chunk = 32;                 // prompt positions per step and joining utterance while others generate; alone it
                                                    // takes as many as a step holds
  std::vector<std::uint32_t> chunk_ramp{};          // steps of sound in a stream's first pieces; empty = 4, 8, 12, 16 in low latency, else
                                                    // 8, 8, 12, 16
  std::uint32_t chunk_steps = 24;                   // of later ones; more for listeners with plenty to hear, fewer for those short of it
  std::chrono::milliseconds park_after{1000};       // a pause that lasts longer: others may have the slot, see max_parked_mb
  std::uint32_t max_parked_mb = 512;                // host memory, MiB, for what such utterances had in their slots; beyond, they keep
                                                    // them; 0 = always
  std::chrono::milliseconds stop_grace{10000};      // stop(): how long running utterances may finish
  std::uint32_t max_failures_in_a_row = 3;          // failed steps or decodes after which health() is not ready
  std::chrono::milliseconds failure_cooldown{5000};  // after that long without a further failure it is ready for another try
  std::chrono::milliseconds hang_limit{10000};      // work without progress for longer: not ready
};

// Throws std::invalid_argument listing every value out of range. The engine is owned by the scheduler's thread from here on.
class Scheduler final : public engine::UtteranceEngine {
 public:
  Scheduler(std::unique_ptr<engine::StepEngine> step_engine, SchedulerOptions options, const Clock& clock, observability::Metrics& metrics);
  ~Scheduler() override;  // stops at once

  Result<engine::UtteranceId> submit(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink) override;
  void cancel(engine::UtteranceId id) noexcept override;
  void set_paused(engine::UtteranceId id, bool paused) noexcept override;
  void set_runs_dry_at(engine::UtteranceId id, TimePoint when) noexcept override;
  engine::EngineLoad load() const override;
  engine::EngineHealth health() const override;
  const engine::EngineInfo& info() const noexcept;

  // Refuses new work, lets queued and running utterances finish within stop_grace, cancels the rest, joins the thread. Blocks. Idempotent.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tts::scheduling
