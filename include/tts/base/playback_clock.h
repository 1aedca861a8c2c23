#pragma once
// When a listener who plays audio as it comes has heard all of it: playing starts with the first piece and stalls while nothing is left.

#include <algorithm>

#include "tts/base/clock.h"

namespace tts {

// Plain value; not thread-safe.
class PlaybackClock {
 public:
  PlaybackClock() = default;
  // Of a listener who is hearing something else until then; zero = nothing is heard yet.
  explicit PlaybackClock(TimePoint runs_dry_at) noexcept : runs_dry_at_(runs_dry_at) {}

  bool started() const noexcept { return runs_dry_at_ != TimePoint{}; }
  TimePoint runs_dry_at() const noexcept { return runs_dry_at_; }  // zero = not started
  // What the listener has left to hear; negative = silent for that long. Zero before the start.
  Duration left(TimePoint now) const noexcept { return started() ? runs_dry_at_ - now : Duration(0); }

  void deliver(TimePoint now, Duration audio) noexcept { runs_dry_at_ = std::max(runs_dry_at_, now) + audio; }
  // The listener is known to have enough until then: nobody plays faster than time goes by.
  void at_least_until(TimePoint when) noexcept { runs_dry_at_ = std::max(runs_dry_at_, when); }
  void correct(TimePoint runs_dry_at) noexcept { runs_dry_at_ = runs_dry_at; }

 private:
  TimePoint runs_dry_at_{};
};

}  // namespace tts
