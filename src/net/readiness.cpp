#include "tts/net/readiness.h"

#include <algorithm>

namespace tts::net {

Readiness::Readiness(const engine::UtteranceEngine& engine, const Clock& clock, std::chrono::milliseconds stall_after)
    : engine_(engine), clock_(clock), stall_after_(stall_after) {}

void Readiness::set_warmed_up() noexcept { warmed_up_ = true; }
void Readiness::set_draining() noexcept { draining_ = true; }
bool Readiness::draining() const noexcept { return draining_; }

ReadyState Readiness::check() {
  if (draining_) return {.ready = false, .reason = "draining: shutting down"};
  if (!warmed_up_) return {.ready = false, .reason = "starting: the warm-up has not finished"};
  const auto health = engine_.health();
  if (!health.ready) return {.ready = false, .reason = health.detail.empty() ? "the engine is not ready" : health.detail};

  const auto load = engine_.load();
  const auto now = clock_.now();
  const std::lock_guard lock(mutex_);
  if (load.active + load.queued == 0) {
    busy_since_ = TimePoint::max();
    return {.ready = true, .reason = {}};
  }
  if (busy_since_ == TimePoint::max()) busy_since_ = now;
  // An engine that idled for an hour has an old last_progress; work that has just come must not make it look dead.
  if (now - std::max(health.last_progress, busy_since_) > stall_after_)
    return {.ready = false, .reason = "the engine has work and makes no progress"};
  return {.ready = true, .reason = {}};
}

}  // namespace tts::net
