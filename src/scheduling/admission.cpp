#include "admission.h"

#include <algorithm>

namespace tts::scheduling {

AdmissionDecision decide_admission(const AdmissionState& state, const AdmissionRules& rules) noexcept {
  if (state.waiting == 0 || state.active >= rules.max_batch) return {};
  if (state.active == 0 && state.waiting < rules.max_batch) {
    const TimePoint starts = state.oldest_submitted + rules.batch_window;
    if (state.now < starts) return {.admit = 0, .wait_until = starts};
  }
  return {.admit = std::min(state.waiting, rules.max_batch - state.active)};
}

}  // namespace tts::scheduling
