#include "bitrate_control.h"

#include <array>

namespace tts::stream {
namespace {

constexpr std::array<std::uint32_t, 5> kRates{16'000, 24'000, 32'000, 48'000, 64'000};
constexpr Duration kWaiting = std::chrono::milliseconds(200);      // more than that is not just on its way
constexpr Duration kShort = std::chrono::milliseconds(800);        // left to the listener, while audio waits
constexpr Duration kDry = std::chrono::milliseconds(150);
constexpr Duration kBetweenSteps = std::chrono::milliseconds(500);  // until a lower rate shows
constexpr Duration kCalm = std::chrono::seconds(5);

}  // namespace

std::uint32_t BitrateControl::rate() const noexcept { return kRates[step_]; }

std::optional<std::uint32_t> BitrateControl::observe(const Link& link, TimePoint now) noexcept {
  const bool congested = link.waiting > kWaiting && link.left < kShort;
  if (congested) {
    calm_since_ = now;
    if (step_ == 0 || now - changed_at_ < kBetweenSteps) return std::nullopt;
    step_ = link.left < kDry ? 0 : step_ - 1;
    changed_at_ = now;
    return rate();
  }
  if (step_ + 1 == kRates.size() || now - calm_since_ < kCalm) return std::nullopt;
  ++step_;
  changed_at_ = calm_since_ = now;
  return rate();
}

}  // namespace tts::stream
