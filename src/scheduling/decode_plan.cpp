#include "decode_plan.h"

#include <algorithm>

namespace tts::scheduling {
namespace {

bool due(const DecodeRow& row, std::uint32_t max_pending) noexcept {
  if (!row.runnable) return false;
  return row.ended || row.pending >= std::min(row.wanted, max_pending);
}

bool worth_taking_along(const DecodeRow& row) noexcept {
  return row.runnable && row.steady && row.pending > 0 && row.pending >= (row.wanted + 1) / 2;
}

}  // namespace

void plan_decode(std::span<const DecodeRow> rows, std::uint32_t max_pending, std::vector<std::uint32_t>& chosen) {
  chosen.clear();
  const bool anyone_due = std::any_of(rows.begin(), rows.end(), [&](const DecodeRow& row) { return due(row, max_pending); });
  if (!anyone_due) return;
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (due(rows[i], max_pending) || worth_taking_along(rows[i])) chosen.push_back(i);
  }
}

}  // namespace tts::scheduling
