#include "statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace tts::bench {

double quantile(std::span<const double> sorted, double q) {
  assert(!sorted.empty() && q >= 0 && q <= 1);
  // 0.95 * 20 is a hair above 19; without the slack the rank would be one too high.
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size()) - 1e-9));
  return sorted[rank == 0 ? 0 : rank - 1];
}

Distribution describe(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {.count = values.size(),
          .mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
          .p50 = quantile(values, 0.50),
          .p95 = quantile(values, 0.95),
          .p99 = quantile(values, 0.99),
          .max = values.back()};
}

}  // namespace tts::bench
