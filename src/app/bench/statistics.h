#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tts::bench {

struct Distribution {
  std::size_t count = 0;  // 0: the rest means nothing
  double mean = 0, p50 = 0, p95 = 0, p99 = 0, max = 0;
};

// Nearest rank: the smallest of the values that at least the share q of them do not exceed. Precondition: sorted, not empty, 0 <= q <= 1.
double quantile(std::span<const double> sorted, double q);

Distribution describe(std::vector<double> values);

}  // namespace tts::bench
