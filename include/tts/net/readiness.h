#pragma once
// Whether this process should get traffic: warmed up, engine alive and progressing, not draining.

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "tts/base/clock.h"
#include "tts/engine/utterance_engine.h"

namespace tts::net {

struct ReadyState {
  bool ready = false;
  std::string reason;  // why not; empty when ready
};

// Thread-safe. A full queue is no reason for "not ready": moving its load elsewhere would only topple the next replica.
class Readiness {
 public:
  // The engine must outlive this. An engine that has work and finishes no step for `stall_after` counts as dead.
  Readiness(const engine::UtteranceEngine& engine, const Clock& clock, std::chrono::milliseconds stall_after);

  void set_warmed_up() noexcept;
  void set_draining() noexcept;
  bool draining() const noexcept;
  ReadyState check();

 private:
  const engine::UtteranceEngine& engine_;
  const Clock& clock_;
  const std::chrono::milliseconds stall_after_;
  std::atomic<bool> warmed_up_{false};
  std::atomic<bool> draining_{false};
  std::mutex mutex_;
  TimePoint busy_since_ = TimePoint::max();  // first check that saw the present stretch of work; max = idle
};

}  // namespace tts::net
