#pragma once
// A clock that moves only when told to. Starts at a fixed instant, so tests are the same on every run.

#include <atomic>
#include <chrono>

#include "tts/base/clock.h"

namespace tts::test {

// Thread-safe.
class ManualClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return TimePoint(Duration(ticks_.load(std::memory_order_acquire))); }
  void advance(Duration by) noexcept { ticks_.fetch_add(by.count(), std::memory_order_acq_rel); }

 private:
  std::atomic<Duration::rep> ticks_{Duration(std::chrono::hours(1)).count()};
};

}  // namespace tts::test
