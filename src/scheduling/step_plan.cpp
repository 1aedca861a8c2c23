#include "step_plan.h"

#include <algorithm>

namespace tts::scheduling {

void StepPlan::clear() noexcept {
  work.clear();
  rows.clear();
  decode_rows = 0;
  prefill_tokens = 0;
}

void StepPlan::reserve(std::size_t count) {
  work.reserve(count);
  rows.reserve(count);
}

void plan_step(std::span<const StepRow> rows, const StepLimits& limits, StepPlan& plan) {
  plan.clear();
  std::uint32_t budget = limits.max_rows;
  for (std::uint32_t i = 0; i < rows.size() && budget > 0; ++i) {
    const StepRow& row = rows[i];
    if (!row.runnable || row.prefill_left > 0 || row.pending >= limits.max_pending) continue;
    plan.work.push_back({.slot = row.slot, .prefill_tokens = 0});
    plan.rows.push_back(i);
    ++plan.decode_rows;
    --budget;
  }
  const std::uint32_t chunk = plan.decode_rows > 0 ? limits.prefill_chunk : limits.max_rows;
  for (std::uint32_t i = 0; i < rows.size() && budget > 0; ++i) {
    const StepRow& row = rows[i];
    if (!row.runnable || row.prefill_left == 0) continue;
    const std::uint32_t tokens = std::min({row.prefill_left, chunk, budget});
    plan.work.push_back({.slot = row.slot, .prefill_tokens = tokens});
    plan.rows.push_back(i);
    plan.prefill_tokens += tokens;
    budget -= tokens;
  }
}

}  // namespace tts::scheduling
