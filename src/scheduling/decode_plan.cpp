#include "decode_plan.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "tts/engine/step_engine.h"

namespace tts::scheduling {
namespace {

using engine::kExactLookahead;

// A newcomer's first sound comes before that of listeners who have more left than this.
constexpr Duration kSilentAs = std::chrono::milliseconds(50);
// A call that is too late for its neediest row may take that long for the sake of the others.
constexpr Duration kLeastCall = std::chrono::milliseconds(5);

// Smaller = needs its sound sooner.
Duration need(const DecodeRow& row) noexcept {
  if (row.whole) return Duration::max();
  return row.silent ? kSilentAs : row.left;
}

bool could_be_early(const DecodeRow& row, const DecodeRules& rules) noexcept {
  return row.may_be_early && rules.low_lookahead < rules.exact_lookahead;
}

// Steps of sound that a decode could give now.
std::uint32_t ready(const DecodeRow& row, const DecodeRules& rules) noexcept {
  const std::uint32_t lookahead = could_be_early(row, rules) ? rules.low_lookahead : rules.exact_lookahead;
  return row.unheard - std::min(row.unheard, lookahead);
}

std::uint32_t least_chunk(const DecodeRow& row, const DecodeRules& rules) noexcept { return std::min(rules.least_chunk, row.chunk); }

bool early_due(const DecodeRow& row, bool short_of_sound, const DecodeRules& rules) noexcept {
  if (!could_be_early(row, rules) || row.pending == 0) return false;
  return ready(row, rules) >= (row.silent ? row.chunk : least_chunk(row, rules)) && (row.silent || short_of_sound);
}

struct Due {
  std::uint32_t steps = 0, lookahead = kExactLookahead;
};

std::optional<Due> due(const DecodeRow& row, bool short_of_sound, const DecodeRules& rules) noexcept {
  if (!row.runnable) return std::nullopt;
  const Due all{.steps = row.pending};
  if (row.ended) return all;
  const std::uint32_t chunk = short_of_sound ? least_chunk(row, rules) : row.chunk;
  if (row.pending > 0 && row.unheard >= rules.exact_lookahead + chunk) return all;
  if (early_due(row, short_of_sound, rules)) return Due{.steps = row.pending, .lookahead = rules.low_lookahead};
  if (row.pending < rules.max_pending) return std::nullopt;
  if (!row.silent) return all;
  const std::uint32_t held = row.unheard - row.pending;  // in the decoder
  const std::uint32_t soundless = rules.exact_lookahead - std::min(held, rules.exact_lookahead);
  return Due{.steps = soundless > 0 ? std::min(row.pending, soundless) : row.pending};
}

bool worth_taking_along(const DecodeRow& row, const DecodeRules& rules) noexcept {
  return row.runnable && row.steady && !row.silent && row.pending > 0 && row.unheard > rules.exact_lookahead;
}

bool can_wait(const DecodeRow& row, const DecodeRules& rules) noexcept {
  return row.urgency >= Urgency::kPlenty && !row.whole && !(row.ended && rules.slots_wanted);
}

bool can_be_short(const DecodeRow& row, const DecodeRules& rules) noexcept {
  return row.runnable && !row.whole && !row.silent && (row.ended || ready(row, rules) >= least_chunk(row, rules));
}

void find_the_short(std::span<const DecodeRow> rows, const DecodeRules& rules, const CostModel& costs, DecodePlan& plan) {
  plan.short_of_sound.assign(rows.size(), false);
  std::uint32_t work = 0;
  std::size_t checked = 0;
  for (std::size_t i = 0; i < plan.order.size(); ++i) {
    const DecodeRow& row = rows[plan.order[i]];
    if (!can_be_short(row, rules)) continue;
    work += decode_work(row, {.row = 0, .steps = row.pending, .lookahead = kExactLookahead}, rules.exact_lookahead);
    if (row.left - costs.decode(work) > rules.reserve) continue;
    for (; checked <= i; ++checked) plan.short_of_sound[plan.order[checked]] = can_be_short(rows[plan.order[checked]], rules);
  }
}

}  // namespace

void DecodePlan::reserve(std::size_t count) {
  chosen.reserve(count);
  order.reserve(count);
  short_of_sound.reserve(count);
}

std::uint32_t decode_work(const DecodeRow& row, const DecodeChoice& choice, std::uint32_t exact_lookahead) noexcept {
  if (row.ended) return choice.steps + exact_lookahead;
  return choice.steps + (exact_lookahead - std::min(choice.lookahead, exact_lookahead));
}

void plan_decode(std::span<const DecodeRow> rows, const DecodeRules& rules, const CostModel& costs, DecodePlan& plan) {
  plan.chosen.clear();
  plan.more_are_short = false;
  plan.order.resize(rows.size());
  std::iota(plan.order.begin(), plan.order.end(), 0U);
  std::sort(plan.order.begin(), plan.order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Duration of_a = need(rows[a]), of_b = need(rows[b]);
    return of_a != of_b ? of_a < of_b : a < b;
  });
  find_the_short(rows, rules, costs, plan);
  const bool needed_now =
      std::any_of(rows.begin(), rows.end(), [](const DecodeRow& row) { return row.runnable && row.urgency == Urgency::kNow; });
  bool anyone_due = false;
  for (const std::uint32_t i : plan.order) {
    if (needed_now && can_wait(rows[i], rules)) continue;
    const auto how = due(rows[i], plan.short_of_sound[i], rules);
    if (!how && !worth_taking_along(rows[i], rules)) continue;
    anyone_due |= how.has_value();
    plan.chosen.push_back({.row = i, .steps = how ? how->steps : rows[i].pending, .lookahead = how ? how->lookahead : kExactLookahead});
  }
  if (!anyone_due) return plan.chosen.clear();
  const DecodeRow& neediest = rows[plan.chosen.front().row];
  const Duration in_time = neediest.silent || neediest.whole ? rules.budget : std::max(neediest.left, kLeastCall);
  const Duration budget = std::min(rules.budget, in_time);
  std::uint32_t work = 0;
  std::size_t fitting = 0;
  for (const DecodeChoice& choice : plan.chosen) {
    work += decode_work(rows[choice.row], choice, rules.exact_lookahead);
    if (fitting > 0 && costs.decode(work) > budget) break;
    ++fitting;
  }
  plan.more_are_short = std::any_of(plan.chosen.begin() + static_cast<std::ptrdiff_t>(fitting), plan.chosen.end(),
                                    [&](const DecodeChoice& choice) { return plan.short_of_sound[choice.row]; });
  plan.chosen.resize(fitting);
}

}  // namespace tts::scheduling
