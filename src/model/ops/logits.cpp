#include "ops/logits.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/logits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

constexpr std::size_t kGroupVectors = kLogitGroups / kLanes;

// q = x / d rounded, from r = 1 / d rounded: the remainder of the first guess is exact, which makes the second one right (Markstein).
void divide_kernel(const float* x, float divisor, std::size_t n, float* y) {
  const FloatTag d;
  const FloatVec by = hn::Set(d, divisor), reciprocal = hn::Set(d, 1.0F / divisor);
  map_vectors(x, n, y, [&](FloatVec v, std::size_t) {
#if HWY_TARGET <= HWY_AVX2  // with fused multiply-add
    const FloatVec guess = hn::Mul(v, reciprocal);
    return hn::MulAdd(hn::NegMulAdd(guess, by, v), reciprocal, guess);
#else
    (void)reciprocal;
    return hn::Div(v, by);
#endif
  });
}

void summarise_kernel(const float* x, std::size_t n, LogitSummary& summary) {
  const FloatTag d;
  const FloatVec lowest = hn::Set(d, std::numeric_limits<float>::lowest()), zero = hn::Zero(d);
  FloatVec highest[kGroupVectors], spoilt = zero;  // 0 * x sums to zero unless some x is not finite
  for (FloatVec& h : highest) h = lowest;
  std::size_t i = 0;
  for (; i + kLogitGroups <= n; i += kLogitGroups) {
    for (std::size_t g = 0; g < kGroupVectors; ++g) {
      const FloatVec v = hn::LoadU(d, x + i + g * kLanes);
      spoilt = hn::MulAdd(v, zero, spoilt);
      highest[g] = hn::Max(highest[g], v);
    }
  }
  for (std::size_t g = 0; i < n; ++g, i += kLanes) {
    const std::size_t count = HWY_MIN(kLanes, n - i);
    const FloatVec v = count == kLanes ? hn::LoadU(d, x + i) : load_first(x + i, count);
    spoilt = hn::MulAdd(v, zero, spoilt);
    highest[g] = hn::Max(highest[g], hn::IfThenElse(hn::FirstN(d, count), v, lowest));
  }
  FloatVec all = highest[0];
  for (std::size_t g = 0; g < kGroupVectors; ++g) {
    hn::StoreU(highest[g], d, summary.group_highest + g * kLanes);
    all = hn::Max(all, highest[g]);
  }
  summary.highest = hn::GetLane(hn::MaxOfLanes(d, all));
  summary.finite = hn::GetLane(hn::SumOfLanes(d, spoilt)) == 0.0F;
}

float reached_by_kernel(const LogitSummary& summary, std::size_t k) {
  const FloatTag d;
  float best = std::numeric_limits<float>::lowest();
  for (const float candidate : summary.group_highest) {
    std::size_t as_large = 0;
    for (std::size_t g = 0; g < kGroupVectors; ++g)
      as_large += hn::CountTrue(d, hn::Ge(hn::LoadU(d, summary.group_highest + g * kLanes), hn::Set(d, candidate)));
    if (as_large >= k) best = HWY_MAX(best, candidate);
  }
  return best;
}

std::size_t indices_reaching_kernel(const float* x, std::size_t n, float threshold, std::span<std::uint32_t> indices) {
  const FloatTag d;
  const FloatVec limit = hn::Set(d, threshold);
  std::size_t found = 0;
  for (std::size_t i = 0; i < n; i += kLanes) {
    const std::size_t count = HWY_MIN(kLanes, n - i);
    auto mask = hn::Ge(count == kLanes ? hn::LoadU(d, x + i) : load_first(x + i, count), limit);
    if (count < kLanes) mask = hn::And(mask, hn::FirstN(d, count));
    if (hn::AllFalse(d, mask)) continue;
    HWY_ALIGN std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, mask, bytes);
    for (unsigned bits = bytes[0] | unsigned{bytes[1]} << 8; bits != 0; bits &= bits - 1, ++found) {
      if (found < indices.size()) indices[found] = static_cast<std::uint32_t>(i + static_cast<unsigned>(__builtin_ctz(bits)));
    }
  }
  return found;
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(divide_kernel);
HWY_EXPORT(summarise_kernel);
HWY_EXPORT(reached_by_kernel);
HWY_EXPORT(indices_reaching_kernel);

void divide(const float* x, float divisor, std::size_t n, float* y) { HWY_DYNAMIC_DISPATCH(divide_kernel)(x, divisor, n, y); }

void summarise(const float* x, std::size_t n, LogitSummary& summary) { HWY_DYNAMIC_DISPATCH(summarise_kernel)(x, n, summary); }

float reached_by(const LogitSummary& summary, std::size_t k) { return HWY_DYNAMIC_DISPATCH(reached_by_kernel)(summary, k); }

std::size_t indices_reaching(const float* x, std::size_t n, float threshold, std::span<std::uint32_t> indices) {
  return HWY_DYNAMIC_DISPATCH(indices_reaching_kernel)(x, n, threshold, indices);
}

}  // namespace tts::model::ops
#endif  // HWY_ONCE
