#include "ops/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tts::model::ops {
namespace {

constexpr float kLargestCode = 127.0F;

template <class Code, int kOffset>
float quantize(const float* x, std::size_t n, Code* y) noexcept {
  float largest = 0.0F;
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    finite &= std::isfinite(x[i]);
  }
  const float factor = kLargestCode / largest;
  // Nothing to divide by, or values too small for their quotient: the row is zero.
  if (!finite || !std::isfinite(factor)) {
    std::fill_n(y, n, static_cast<Code>(kOffset));
    return finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }
  for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<Code>(static_cast<int>(std::nearbyint(x[i] * factor)) + kOffset);
  return largest / kLargestCode;
}

}  // namespace

void to_bfloat16(const float* x, std::size_t n, std::uint16_t* y) noexcept {
  for (std::size_t i = 0; i < n; ++i) y[i] = to_bfloat16(x[i]);
}

float quantize_row(const float* x, std::size_t n, std::uint8_t* y) noexcept { return quantize<std::uint8_t, 128>(x, n, y); }

float quantize_channel(const float* x, std::size_t n, std::int8_t* y) noexcept { return quantize<std::int8_t, 0>(x, n, y); }

}  // namespace tts::model::ops
