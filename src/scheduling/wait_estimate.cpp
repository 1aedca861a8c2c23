#include "wait_estimate.h"

#include <algorithm>
#include <utility>

namespace tts::scheduling {
namespace {

std::chrono::milliseconds within_reason(Duration wait) noexcept {
  return std::clamp(std::chrono::ceil<std::chrono::milliseconds>(wait), kLeastAdvice, kMostAdvice);
}

}  // namespace

Duration expected_wait(const Outlook& outlook, std::uint32_t waiting) noexcept {
  const std::int64_t departures = std::int64_t{waiting} + 1 - outlook.free_places;
  if (departures <= 0) return Duration(0);
  constexpr std::int64_t kLongest = Duration(std::chrono::hours(1)).count();
  const double wait = static_cast<double>(outlook.interval.count()) * static_cast<double>(departures);
  return Duration(static_cast<std::int64_t>(std::min(wait, static_cast<double>(kLongest))));
}

std::chrono::milliseconds advice_when_full(const Outlook& outlook, std::uint32_t waiting) noexcept {
  if (outlook.interval <= Duration(0)) return kUnknownAdvice;
  constexpr std::uint32_t kMostCounted = 1U << 20U;  // keeps the product in range
  return within_reason(std::min<Duration>(outlook.interval, kMostAdvice) * std::max(1U, std::min(waiting, kMostCounted) / 4));
}

std::chrono::milliseconds advice_when_long(Duration wait, std::chrono::milliseconds max_wait) noexcept {
  return within_reason(wait - max_wait);
}

void Residence::left_after(std::uint64_t steps, bool first) noexcept {
  constexpr double kMemory = 0.9;  // per listener, however many utterances they have
  if (first) {
    const double keep = std::exchange(seen_, true) ? kMemory : 0;
    steps_ *= keep;
    listeners_ = listeners_ * keep + 1;
  }
  steps_ += static_cast<double>(steps);
}

Duration Residence::interval(Duration round, std::uint32_t rows) const noexcept {
  if (rows == 0) return Duration(0);
  return Duration(static_cast<Duration::rep>(steps_ / listeners_ * static_cast<double>(round.count()) / rows));
}

}  // namespace tts::scheduling
