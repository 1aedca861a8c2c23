#include "choose.h"

#include <algorithm>
#include <cstdint>

namespace tts::dispatch {
namespace {

// Utterances that it serves well at once.
std::uint32_t capacity(const engine::EngineLoad& load) noexcept {
  return load.realtime_streams == 0 ? load.max_active : std::min(load.realtime_streams, load.max_active);
}

// Ratios compared by cross-multiplication: exact, and an engine without slots is the fullest of all.
bool less_loaded(const engine::EngineLoad& a, const engine::EngineLoad& b) noexcept {
  const std::uint64_t capacity_a = capacity(a), capacity_b = capacity(b);
  if (capacity_a == 0 || capacity_b == 0) return capacity_a > capacity_b;
  if (a.expected_wait != b.expected_wait) return a.expected_wait < b.expected_wait;
  const auto work_a = std::uint64_t{a.queued} + a.active;
  const auto work_b = std::uint64_t{b.queued} + b.active;
  return work_a * capacity_b < work_b * capacity_a;
}

}  // namespace

std::vector<std::size_t> order_of_trial(std::span<const Candidate> candidates, std::optional<std::size_t> avoid,
                                        std::optional<std::size_t> prefer) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].ready && i != avoid) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (a == prefer || b == prefer) return a == prefer && b != prefer;
    return less_loaded(candidates[a].load, candidates[b].load);
  });
  if (order.empty() && avoid && candidates[*avoid].ready) order.push_back(*avoid);
  return order;
}

}  // namespace tts::dispatch
