#include "cost_model.h"

#include <algorithm>
#include <cmath>

namespace tts::scheduling {
namespace {

constexpr double kMemory = 0.998;  // of a ratio, per observation
constexpr double kEarlyMemory = 3;  // seconds
constexpr std::uint32_t kEnoughSteps = 8;
constexpr std::uint32_t kEnoughDecodes = 2;
constexpr std::uint32_t kUsualGroup = 8;  // streams that a decode takes together when many run

double seconds(Duration time) noexcept { return std::chrono::duration<double>(time).count(); }
Duration duration(double seconds) noexcept { return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)); }

}  // namespace

void CostModel::Ratio::add(double above, double below) noexcept {
  over = over * kMemory + above;
  under = under * kMemory + below;
}

CostModel::CostModel(Duration audio_per_step, std::uint32_t chunk_steps) noexcept
    : audio_per_step_(seconds(audio_per_step)), chunk_steps_(chunk_steps) {}

void CostModel::step_took(std::uint32_t decode_rows, std::uint32_t prefill_tokens, Duration time) noexcept {
  prompts_.add(prefill_tokens, decode_rows);
  if (prefill_tokens == 0) return steps_.observe(decode_rows, seconds(time));
  const double without = steps_.at(decode_rows);
  if (without <= 0) return;
  double took = seconds(time);
  if (prefill_.value() > 0) took = std::min(took, kOutlier * (without + prefill_tokens * prefill_.value()));
  prefill_.add(std::max(0.0, took - without), prefill_tokens);
}

void CostModel::decode_took(std::uint32_t work, std::uint32_t steps, std::uint32_t early, Duration time, TimePoint now) noexcept {
  decodes_.observe(work, seconds(time));
  decode_surplus_.add(work - early, steps);
  if (early == 0) return;
  early_seconds_ = early_share(now) * kEarlyMemory + seconds(time) * early / work;
  early_at_ = now;
}

double CostModel::early_share(TimePoint now) const noexcept {
  return early_seconds_ / kEarlyMemory * std::exp(-seconds(now - early_at_) / kEarlyMemory);
}

bool CostModel::known() const noexcept { return steps_.observations() >= kEnoughSteps && decodes_.observations() >= kEnoughDecodes; }

Duration CostModel::step(std::uint32_t decode_rows) const noexcept { return duration(steps_.at(decode_rows)); }
Duration CostModel::prefill(std::uint32_t tokens) const noexcept { return duration(tokens * prefill_.value()); }
Duration CostModel::decode(std::uint32_t work) const noexcept { return duration(work == 0 ? 0 : decodes_.at(work)); }

double CostModel::decode_seconds_per_step(std::uint32_t rows) const noexcept {
  const double work = static_cast<double>(chunk_steps_) * std::clamp(rows / 2, 1U, kUsualGroup);
  return decodes_.at(work) / work * std::max(1.0, decode_surplus_.value());
}

std::uint32_t CostModel::rows_at_once(std::uint32_t rows) const noexcept { return steps_.cheapest_portion(rows); }

Duration CostModel::round(std::uint32_t rows) const noexcept {
  const std::uint32_t at_once = rows_at_once(rows);
  const double steps = at_once == rows ? steps_.at(rows) : steps_.at(at_once) * rows / at_once;
  return duration(steps + rows * (decode_seconds_per_step(rows) + prompts_.value() * prefill_.value()));
}

double CostModel::share_needed(std::span<const double> paces) const noexcept {
  if (!known()) return 0;
  double needed = 0;  // seconds in the time that a step is heard at the usual pace
  for (std::size_t i = 0; i < paces.size(); ++i) {
    const double slower = i + 1 < paces.size() ? paces[i + 1] : 0;
    if (paces[i] > slower) needed += (paces[i] - slower) * seconds(round(static_cast<std::uint32_t>(i + 1)));
  }
  return needed / audio_per_step_;
}

std::uint32_t CostModel::realtime_streams(double load, std::uint32_t most) const noexcept {
  if (!known()) return 0;
  for (std::uint32_t streams = most; streams > 1; --streams) {
    if (seconds(round(streams)) <= load * audio_per_step_) return streams;
  }
  return 1;
}

}  // namespace tts::scheduling
