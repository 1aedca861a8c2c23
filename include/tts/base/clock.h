#pragma once
// Time is injected so that tests can advance it; nothing below `app` reads the system clock directly.

#include <chrono>

namespace tts {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// Thread-safe. Monotonic. TimePoint::max() stands for "no deadline" everywhere.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const noexcept = 0;
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
};

}  // namespace tts
