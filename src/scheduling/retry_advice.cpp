#include "retry_advice.h"

#include <algorithm>

namespace tts::scheduling {

void RetryAdvice::finished(TimePoint now) noexcept {
  constexpr double kWeightOfNewest = 0.2;
  const double interval = std::chrono::duration<double, std::milli>(now - last_).count();
  interval_ms_ = interval_ms_ > 0 ? interval_ms_ + kWeightOfNewest * (interval - interval_ms_) : interval;
  last_ = now;
}

std::chrono::milliseconds RetryAdvice::estimate(std::uint32_t queued) const noexcept {
  if (interval_ms_ <= 0) return kUnknown;
  const double wait = interval_ms_ * std::max(1.0, queued / 4.0);
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(std::clamp(wait, static_cast<double>(kLeast.count()), static_cast<double>(kMost.count()))));
}

}  // namespace tts::scheduling
