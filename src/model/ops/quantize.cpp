#include "ops/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;

void to_bfloat16_kernel(const float* x, std::size_t n, std::uint16_t* y) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_as_bfloat16(hn::LoadU(FloatTag(), x + i), y + i, kLanes);
  if (i < n) store_as_bfloat16(load_first(x + i, n - i), y + i, n - i);
}

// The largest |x| as an integer: without their sign, floats are ordered like their bits, and infinity and NaN above all others.
std::int32_t largest_magnitude(const float* x, std::size_t n) {
  const IntTag di;
  const IntVec mask = hn::Set(di, 0x7FFFFFFF);
  IntVec m0 = hn::Zero(di), m1 = m0;
  const auto magnitude = [&](FloatVec v) { return hn::And(hn::BitCast(di, v), mask); };
  std::size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    m0 = hn::Max(m0, magnitude(hn::LoadU(FloatTag(), x + i)));
    m1 = hn::Max(m1, magnitude(hn::LoadU(FloatTag(), x + i + kLanes)));
  }
  for (; i < n; i += kLanes) m0 = hn::Max(m0, magnitude(i + kLanes <= n ? hn::LoadU(FloatTag(), x + i) : load_first(x + i, n - i)));
  return hn::GetLane(hn::MaxOfLanes(di, hn::Max(m0, m1)));
}

// Codes of finite values; returns their sum.
std::int32_t quantize_kernel(const float* x, std::size_t n, float factor, std::int8_t* y) {
  const FloatTag d;
  const IntTag di;
  const hn::Rebind<std::int8_t, FloatTag> d8;
  const FloatVec f = hn::Set(d, factor);
  IntVec sum = hn::Zero(di);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const IntVec codes = hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), f));
    sum = hn::Add(sum, codes);
    hn::StoreU(hn::DemoteTo(d8, codes), d8, y + i);
  }
  if (i < n) {
    const IntVec codes = hn::NearestInt(hn::Mul(load_first(x + i, n - i), f));
    sum = hn::Add(sum, codes);
    HWY_ALIGN std::int8_t lanes[kLanes];
    hn::Store(hn::DemoteTo(d8, codes), d8, lanes);
    std::copy_n(lanes, n - i, y + i);
  }
  return hn::GetLane(hn::SumOfLanes(di, sum));
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(to_bfloat16_kernel);
HWY_EXPORT(largest_magnitude);
HWY_EXPORT(quantize_kernel);

namespace {

constexpr float kLargestCode = 127.0F;

}  // namespace

void to_bfloat16(const float* x, std::size_t n, std::uint16_t* y) noexcept { HWY_DYNAMIC_DISPATCH(to_bfloat16_kernel)(x, n, y); }

bool all_finite(const float* x, std::size_t n) noexcept {
  return std::isfinite(std::bit_cast<float>(HWY_DYNAMIC_DISPATCH(largest_magnitude)(x, n)));
}

QuantizedRow quantize(const float* x, std::size_t n, std::int8_t* y) noexcept {
  const auto largest = std::bit_cast<float>(HWY_DYNAMIC_DISPATCH(largest_magnitude)(x, n));
  const float factor = kLargestCode / largest;
  if (!std::isfinite(largest) || !std::isfinite(factor)) {
    std::fill_n(y, n, std::int8_t{0});
    return {.scale = std::isfinite(largest) ? 0.0F : std::numeric_limits<float>::quiet_NaN(), .sum = 0};
  }
  const std::int32_t sum = HWY_DYNAMIC_DISPATCH(quantize_kernel)(x, n, factor, y);
  return {.scale = largest / kLargestCode, .sum = sum};
}

}  // namespace tts::model::ops
#endif  // HWY_ONCE
