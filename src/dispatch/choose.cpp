#include "choose.h"

#include <algorithm>
#include <cstdint>

namespace tts::dispatch {
namespace {

// Ratios compared by cross-multiplication: exact, and an engine without slots is the fullest of all.
bool less_loaded(const engine::EngineLoad& a, const engine::EngineLoad& b) noexcept {
  if (a.max_active == 0 || b.max_active == 0) return a.max_active > b.max_active;
  const auto work_a = std::uint64_t{a.queued} + a.active;
  const auto work_b = std::uint64_t{b.queued} + b.active;
  return work_a * b.max_active < work_b * a.max_active;
}

}  // namespace

std::vector<std::size_t> order_of_trial(std::span<const Candidate> candidates, std::optional<std::size_t> avoid) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].ready && i != avoid) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return less_loaded(candidates[a].load, candidates[b].load); });
  if (order.empty() && avoid && candidates[*avoid].ready) order.push_back(*avoid);
  return order;
}

}  // namespace tts::dispatch
