#include "admission.h"

#include <algorithm>

#include "step_plan.h"

namespace tts::scheduling {
namespace {

constexpr std::uint32_t kWholeTurn = 4;   // a waiting whole utterance gets at least one slot of so many
constexpr std::uint32_t kSpareSlots = 8;  // one slot of so many stays free of utterances made ahead

// Streams at real time that the machine is asked for; whole utterances count with the share of steps they have a right to.
double demand(std::uint32_t listeners, std::uint32_t whole) noexcept { return listeners + static_cast<double>(whole) / kWholeShare; }

bool sustainable(std::uint32_t listeners, std::uint32_t whole, const AdmissionRules& rules) noexcept {
  return rules.realtime_streams == 0 || demand(listeners, whole) <= rules.realtime_streams;
}

}  // namespace

AdmissionDecision decide_admission(const AdmissionState& state, const AdmissionRules& rules) noexcept {
  const Waiting& waiting = state.waiting;
  if (waiting.all() == 0 || state.active >= rules.max_batch) return {};
  if (state.active == 0 && waiting.all() < rules.max_batch) {
    const TimePoint starts = state.oldest_submitted + rules.batch_window;
    if (state.now < starts) return {.next = Next::kNobody, .wait_until = starts};
  }
  if (waiting.due > 0) return {.next = Next::kDue};
  const bool whole_may = waiting.whole > 0 && (state.whole == 0 || sustainable(state.listeners, state.whole + 1, rules));
  if (whole_may && state.whole_passed_over + 1 >= kWholeTurn) return {.next = Next::kWhole};
  if (waiting.newcomers > 0) {
    const bool first = state.listeners == 0;
    const bool fits = state.newcomer_fits && sustainable(state.listeners + 1, state.whole, rules);
    if (first || (!state.listener_short && fits)) return {.next = Next::kNewcomer};
  }
  if (whole_may) return {.next = Next::kWhole};
  if (waiting.ahead > 0 && waiting.newcomers == 0 && state.active + 1 + rules.max_batch / kSpareSlots <= rules.max_batch) {
    return {.next = Next::kAhead};
  }
  return {};
}

std::int64_t free_places(const AdmissionState& state, const AdmissionRules& rules) noexcept {
  const std::int64_t slots = std::int64_t{rules.max_batch} - state.active;
  if (rules.realtime_streams == 0) return slots;
  const double streams = std::max(rules.realtime_streams, 1U) - demand(state.listeners, state.whole);
  return std::min(slots, static_cast<std::int64_t>(streams));
}

}  // namespace tts::scheduling
