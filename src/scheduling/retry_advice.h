#pragma once
// How long a refused client should wait, from how fast slots have become free lately.

#include <chrono>
#include <cstdint>

#include "tts/base/clock.h"

namespace tts::scheduling {

// Not thread-safe.
class RetryAdvice {
 public:
  static constexpr std::chrono::milliseconds kUnknown{1000};  // before anything finished
  static constexpr std::chrono::milliseconds kLeast{250};
  static constexpr std::chrono::milliseconds kMost{30000};

  void busy_since(TimePoint now) noexcept { last_ = now; }  // the engine was idle until now
  void finished(TimePoint now) noexcept;                    // an utterance left its slot

  // Time in which a quarter of the queue gets slots: soon enough to keep the queue filled, late enough not to be refused again.
  std::chrono::milliseconds estimate(std::uint32_t queued) const noexcept;

 private:
  TimePoint last_{};
  double interval_ms_ = 0;  // moving average between two finishes; 0 = none seen
};

}  // namespace tts::scheduling
