#pragma once
// Passes over one row of logits: what a sampler needs without sorting it.

#include <cstddef>
#include <cstdint>
#include <span>

namespace tts::model::ops {

// y[i] = x[i] / divisor, rounded as a division is (multiplications only). divisor is normal and so are the quotients, or zero.
void divide(const float* x, float divisor, std::size_t n, float* y);

inline constexpr std::size_t kLogitGroups = 32;

struct LogitSummary {
  float highest = 0.0F;
  bool finite = false;                // neither NaN nor infinity anywhere; else the rest means nothing
  float group_highest[kLogitGroups];  // of the elements i with i % kLogitGroups equal; lowest float when there is none
};
void summarise(const float* x, std::size_t n, LogitSummary& summary);  // n > 0

// A number that at least k elements reach, and hardly more: the k-th largest of the groups' highest. 0 < k <= kLogitGroups.
float reached_by(const LogitSummary& summary, std::size_t k);

// Indices of the elements >= threshold, ascending, at most indices.size() of them; returns how many there are.
std::size_t indices_reaching(const float* x, std::size_t n, float threshold, std::span<std::uint32_t> indices);

}  // namespace tts::model::ops
