#include "decode_plan.h"

#include <algorithm>
#include <optional>

#include "tts/engine/step_engine.h"

namespace tts::scheduling {
namespace {

using engine::kExactLookahead;

bool short_of_sound(const DecodeRow& row) noexcept { return !row.whole && !row.silent && row.left <= row.notice; }

bool early_due(const DecodeRow& row, const DecodeRules& rules) noexcept {
  if (!row.may_be_early || rules.low_lookahead >= rules.exact_lookahead) return false;
  if (row.silent) return row.unheard >= rules.low_lookahead + row.chunk;
  return short_of_sound(row) && row.unheard >= rules.low_lookahead + rules.least_chunk;
}

struct Due {
  std::uint32_t steps = 0, lookahead = kExactLookahead;
};

std::optional<Due> due(const DecodeRow& row, const DecodeRules& rules) noexcept {
  if (!row.runnable) return std::nullopt;
  const Due all{.steps = row.pending};
  if (row.ended) return all;
  const std::uint32_t chunk = short_of_sound(row) ? std::min(rules.least_chunk, row.chunk) : row.chunk;
  if (row.pending > 0 && row.unheard >= rules.exact_lookahead + chunk) return all;
  if (early_due(row, rules)) return Due{.steps = row.pending, .lookahead = rules.low_lookahead};
  if (row.pending < rules.max_pending) return std::nullopt;
  if (!row.silent) return all;
  const std::uint32_t held = row.unheard - row.pending;  // in the decoder
  const std::uint32_t soundless = rules.exact_lookahead - std::min(held, rules.exact_lookahead);
  return Due{.steps = soundless > 0 ? std::min(row.pending, soundless) : row.pending};
}

bool worth_taking_along(const DecodeRow& row, const DecodeRules& rules) noexcept {
  return row.runnable && row.steady && !row.silent && row.pending >= (row.chunk + 1) / 2 &&
         row.unheard >= rules.exact_lookahead + (row.chunk + 1) / 2;
}

bool can_wait(const DecodeRow& row, const DecodeRules& rules) noexcept {
  return row.urgency >= Urgency::kPlenty && !row.whole && !(row.ended && rules.slots_wanted);
}

// Smaller = needs its sound sooner.
Duration need(const DecodeRow& row) noexcept {
  if (row.whole) return Duration::max();
  return row.silent ? Duration::min() : row.left;
}

}  // namespace

std::uint32_t decode_work(const DecodeRow& row, const DecodeChoice& choice, std::uint32_t exact_lookahead) noexcept {
  if (row.ended) return choice.steps + exact_lookahead;
  return choice.steps + (exact_lookahead - std::min(choice.lookahead, exact_lookahead));
}

void plan_decode(std::span<const DecodeRow> rows, const DecodeRules& rules, const CostModel& costs, std::vector<DecodeChoice>& chosen) {
  chosen.clear();
  const bool needed_now =
      std::any_of(rows.begin(), rows.end(), [](const DecodeRow& row) { return row.runnable && row.urgency == Urgency::kNow; });
  bool anyone_due = false;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (needed_now && can_wait(rows[i], rules)) continue;
    const auto how = due(rows[i], rules);
    if (!how && !worth_taking_along(rows[i], rules)) continue;
    anyone_due |= how.has_value();
    chosen.push_back({.row = i, .steps = how ? how->steps : rows[i].pending, .lookahead = how ? how->lookahead : kExactLookahead});
  }
  if (!anyone_due) return chosen.clear();
  std::sort(chosen.begin(), chosen.end(), [&](const DecodeChoice& a, const DecodeChoice& b) {
    const Duration of_a = need(rows[a.row]), of_b = need(rows[b.row]);
    return of_a != of_b ? of_a < of_b : a.row < b.row;
  });
  std::uint32_t work = 0;
  std::size_t fitting = 0;
  for (const DecodeChoice& choice : chosen) {
    work += decode_work(rows[choice.row], choice, rules.exact_lookahead);
    if (fitting > 0 && costs.decode(work) > rules.budget) break;
    ++fitting;
  }
  chosen.resize(fitting);
}

}  // namespace tts::scheduling
