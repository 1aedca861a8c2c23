#pragma once
// Whether the engine makes progress, for readiness: a process that answers but whose device is dead must not look healthy.

#include <atomic>
#include <chrono>
#include <cstdint>

#include "tts/base/clock.h"
#include "tts/engine/utterance_engine.h"

namespace tts::scheduling {

struct ProgressRules {
  std::uint32_t max_failures_in_a_row = 3;
  std::chrono::milliseconds failure_cooldown{5000};
  std::chrono::milliseconds hang_limit{10000};
};

// Written by the engine's thread, read by any; lock-free.
class Progress {
 public:
  Progress(ProgressRules rules, TimePoint now);

  void succeeded(TimePoint now) noexcept;          // a step or decode
  void failed(TimePoint now) noexcept;             // a step or decode
  void idle(bool asleep, TimePoint now) noexcept;  // nothing to do: counts as progress for as long as it lasts

  // Not ready after too many failures in a row, until the cool-down lets one more try in, and while work hangs.
  engine::EngineHealth health(TimePoint now) const;

 private:
  const ProgressRules rules_;
  std::atomic<TimePoint::rep> last_progress_;
  std::atomic<TimePoint::rep> last_failure_{0};
  std::atomic<std::uint32_t> failures_{0};
  std::atomic<bool> asleep_{false};
};

}  // namespace tts::scheduling
