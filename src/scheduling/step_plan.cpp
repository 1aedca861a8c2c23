#include "step_plan.h"

#include <algorithm>

namespace tts::scheduling {
namespace {

constexpr double kWorthYielding = 0.9;     // share of the full round's time that the round without yielding rows may take
constexpr double kShareOfSpare = 0.25;     // what prompts of one step may take of the time that a listener can spare
constexpr double kShareOfRound = 0.25;     // and what they may always take: those who join are listeners too
constexpr std::uint32_t kLeastPrefill = 8;

bool can_run(const StepRow& row, const StepLimits& limits) noexcept {
  return row.runnable && (row.prefill_left > 0 || row.pending < limits.max_pending);
}

struct Situation {
  bool needed_now = false;
  bool anyone_near = false;
};

Situation situation_of(std::span<const StepRow> rows, const StepLimits& limits) noexcept {
  Situation situation;
  for (const StepRow& row : rows) {
    if (!can_run(row, limits)) continue;
    situation.needed_now |= row.urgency == Urgency::kNow;
    situation.anyone_near |= row.urgency != Urgency::kFarAhead;
  }
  return situation;
}

bool yields(const StepRow& row, const Situation& situation) noexcept {
  if (row.whole && row.sat_out + 1 >= kWholeShare) return false;
  return (row.urgency >= Urgency::kPlenty && situation.needed_now) || (row.urgency == Urgency::kFarAhead && situation.anyone_near);
}

bool worth_yielding(std::span<const StepRow> rows, const StepLimits& limits, const Situation& situation, const CostModel& costs) noexcept {
  if (!costs.known()) return false;
  std::uint32_t all = 0, kept = 0;
  for (const StepRow& row : rows) {
    if (!can_run(row, limits)) continue;
    ++all;
    if (!yields(row, situation)) ++kept;
  }
  return kept < all && costs.round(kept) <= kWorthYielding * costs.round(all);
}

}  // namespace

void StepPlan::clear() noexcept {
  work.clear();
  rows.clear();
  yielding.clear();
  decode_rows = 0;
  prefill_tokens = 0;
}

void StepPlan::reserve(std::size_t count) {
  work.reserve(count);
  rows.reserve(count);
  yielding.reserve(count);
}

void plan_step(std::span<const StepRow> rows, const StepLimits& limits, const CostModel& costs, StepPlan& plan) {
  plan.clear();
  const Situation situation = situation_of(rows, limits);
  const bool yielding = worth_yielding(rows, limits, situation, costs);
  const auto takes_part = [&](const StepRow& row) { return can_run(row, limits) && !(yielding && yields(row, situation)); };
  std::uint32_t budget = limits.max_rows;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    if (!takes_part(row)) {
      if (can_run(row, limits)) plan.yielding.push_back(i);
    } else if (row.prefill_left == 0 && budget > 0) {
      plan.work.push_back({.slot = row.slot, .prefill_tokens = 0});
      plan.rows.push_back(i);
      ++plan.decode_rows;
      --budget;
    }
  }
  const bool alone = plan.decode_rows == 0;
  const std::uint32_t chunk = alone ? limits.max_rows : limits.prefill_chunk;
  if (!alone) budget = std::min(budget, limits.prefill_budget);
  for (std::uint32_t i = 0; i < rows.size() && budget > 0; ++i) {
    const StepRow& row = rows[i];
    if (row.prefill_left == 0 || !takes_part(row)) continue;
    const std::uint32_t tokens = std::min({row.prefill_left, chunk, budget});
    plan.work.push_back({.slot = row.slot, .prefill_tokens = tokens});
    plan.rows.push_back(i);
    plan.prefill_tokens += tokens;
    budget -= tokens;
  }
}

std::uint32_t prefill_budget(Duration spare, std::uint32_t rows, const CostModel& costs) noexcept {
  constexpr std::uint32_t kProbe = 1024;  // positions
  const Duration cost = costs.prefill(kProbe);
  if (cost <= Duration(0)) return ~std::uint32_t{0};
  const double time =
      std::max(kShareOfSpare * static_cast<double>(spare.count()), kShareOfRound * static_cast<double>(costs.round(rows).count()));
  const double affordable = time / static_cast<double>(cost.count()) * kProbe;
  return static_cast<std::uint32_t>(std::clamp(affordable, static_cast<double>(kLeastPrefill), 1e9));
}

}  // namespace tts::scheduling
