#include "step_plan.h"

#include <algorithm>
#include <tuple>

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

// turns: that a row waits for in any case
bool claims_share(const StepRow& row, std::uint32_t turns) noexcept { return row.whole && row.sat_out + 1 >= kWholeShare * turns; }

bool yields(const StepRow& row, const Situation& situation) noexcept {
  if (claims_share(row, 1)) return false;
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

void choose_whose_turn(std::span<const StepRow> rows, std::uint32_t at_once, StepPlan& plan) {
  const auto wanting = static_cast<std::uint32_t>(plan.order.size());
  if (wanting <= at_once) return;
  const std::uint32_t turns = (wanting + at_once - 1) / at_once;
  const auto rank = [&](std::uint32_t i) {
    const StepRow& row = rows[i];
    const bool needed = (row.urgency == Urgency::kNow && !row.whole) || claims_share(row, turns);
    return std::tuple(!needed, !row.in_turn, row.covered, ~row.sat_out, i);
  };
  const auto first_waiting = plan.order.begin() + at_once;
  std::nth_element(plan.order.begin(), first_waiting, plan.order.end(), [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
  plan.waiting.assign(first_waiting, plan.order.end());
  plan.order.erase(first_waiting, plan.order.end());
  std::sort(plan.order.begin(), plan.order.end());
}

}  // namespace

void StepPlan::clear() noexcept {
  work.clear();
  rows.clear();
  yielding.clear();
  waiting.clear();
  order.clear();
  decode_rows = 0;
  prefill_tokens = 0;
}

void StepPlan::reserve(std::size_t count) {
  work.reserve(count);
  rows.reserve(count);
  yielding.reserve(count);
  waiting.reserve(count);
  order.reserve(count);
}

void plan_step(std::span<const StepRow> rows, const StepLimits& limits, const CostModel& costs, StepPlan& plan) {
  plan.clear();
  const Situation situation = situation_of(rows, limits);
  const bool yielding = worth_yielding(rows, limits, situation, costs);
  const auto takes_part = [&](const StepRow& row) { return can_run(row, limits) && !(yielding && yields(row, situation)); };
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    if (!takes_part(row)) {
      if (can_run(row, limits)) plan.yielding.push_back(i);
    } else if (row.prefill_left == 0) {
      plan.order.push_back(i);
    }
  }
  choose_whose_turn(rows, std::min(limits.max_rows, costs.rows_at_once(static_cast<std::uint32_t>(plan.order.size()))), plan);
  for (const std::uint32_t i : plan.order) {
    plan.work.push_back({.slot = rows[i].slot, .prefill_tokens = 0});
    plan.rows.push_back(i);
  }
  plan.decode_rows = static_cast<std::uint32_t>(plan.order.size());
  std::uint32_t budget = limits.max_rows - plan.decode_rows;
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
