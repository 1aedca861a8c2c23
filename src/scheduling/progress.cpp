#include "progress.h"

#include <string>

namespace tts::scheduling {
namespace {

TimePoint::rep ticks(TimePoint time) noexcept { return time.time_since_epoch().count(); }
TimePoint time_of(TimePoint::rep ticks) noexcept { return TimePoint(Duration(ticks)); }

}  // namespace

Progress::Progress(ProgressRules rules, TimePoint now) : rules_(rules), last_progress_(ticks(now)) {}

void Progress::succeeded(TimePoint now) noexcept {
  last_progress_.store(ticks(now), std::memory_order_relaxed);
  failures_.store(0, std::memory_order_relaxed);
}

void Progress::failed(TimePoint now) noexcept {
  last_failure_.store(ticks(now), std::memory_order_relaxed);
  failures_.fetch_add(1, std::memory_order_relaxed);
}

void Progress::idle(bool asleep, TimePoint now) noexcept {
  last_progress_.store(ticks(now), std::memory_order_relaxed);
  asleep_.store(asleep, std::memory_order_release);
}

engine::EngineHealth Progress::health(TimePoint now) const {
  const bool asleep = asleep_.load(std::memory_order_acquire);
  engine::EngineHealth health;
  health.last_progress = asleep ? now : time_of(last_progress_.load(std::memory_order_relaxed));
  const auto failures = failures_.load(std::memory_order_relaxed);
  if (failures >= rules_.max_failures_in_a_row && now - time_of(last_failure_.load(std::memory_order_relaxed)) < rules_.failure_cooldown) {
    health.detail = "the engine failed " + std::to_string(failures) + " times in a row";
  } else if (now - health.last_progress > rules_.hang_limit) {
    const auto stuck = std::chrono::duration_cast<std::chrono::seconds>(now - health.last_progress);
    health.detail = "the engine has made no progress for " + std::to_string(stuck.count()) + " s";
  }
  health.ready = health.detail.empty();
  return health;
}

}  // namespace tts::scheduling
