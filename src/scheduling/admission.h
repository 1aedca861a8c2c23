#pragma once
// Who gets a slot, and when. First come, first served; what expired or was cancelled in the queue never takes one.

#include <chrono>
#include <cstdint>

#include "tts/base/clock.h"

namespace tts::scheduling {

struct AdmissionState {
  std::uint32_t waiting = 0;
  std::uint32_t active = 0;
  TimePoint oldest_submitted{};  // of those waiting
  TimePoint now{};
};

struct AdmissionRules {
  std::uint32_t max_batch = 1;
  std::chrono::milliseconds batch_window{0};
};

struct AdmissionDecision {
  std::uint32_t admit = 0;                  // from the front of the queue
  TimePoint wait_until = TimePoint::max();  // nothing admitted yet, but at this time it will be; max() = not waiting for a time
};

// An idle engine waits batch_window after the oldest arrival for company, unless a full batch is there already: utterances that
// start together share every step. A running engine takes newcomers at once, because they join between steps anyway.
AdmissionDecision decide_admission(const AdmissionState& state, const AdmissionRules& rules) noexcept;

}  // namespace tts::scheduling
