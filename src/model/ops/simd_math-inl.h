// Vector functions that several kernels share, compiled once per instruction set (Highway's include idiom).

#if defined(TTS_MODEL_OPS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TTS_MODEL_OPS_SIMD_MATH_INL_H_
#undef TTS_MODEL_OPS_SIMD_MATH_INL_H_
#else
#define TTS_MODEL_OPS_SIMD_MATH_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a panel of 16 columns is a whole number of vectors everywhere.
using FloatTag = hn::CappedTag<float, 16>;
using FloatVec = hn::Vec<FloatTag>;
constexpr std::size_t kLanes = hn::MaxLanes(FloatTag());

// The first `count` < kLanes elements; the rest is zero. Reads nothing past them.
HWY_INLINE FloatVec load_first(const float* from, std::size_t count) {
  HWY_ALIGN float lanes[kLanes] = {};
  std::memcpy(lanes, from, count * sizeof(float));
  return hn::Load(FloatTag(), lanes);
}

HWY_INLINE void store_first(FloatVec v, float* to, std::size_t count) {
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, FloatTag(), lanes);
  std::memcpy(to, lanes, count * sizeof(float));
}

// Round to nearest even, as to_bfloat16() does. `count` >= kLanes stores a whole vector.
HWY_INLINE void store_as_bfloat16(FloatVec v, std::uint16_t* to, std::size_t count) {
  const hn::RebindToSigned<FloatTag> di;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, v);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(hn::Set(du, 0x7FFFU), hn::And(upper, hn::Set(du, 1U)))));
  const auto quiet_nan = hn::Or(upper, hn::Set(du, 0x40U));
  const auto result = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet_nan, rounded);
  const hn::Rebind<std::uint16_t, FloatTag> d16;
  const auto narrow = hn::DemoteTo(d16, hn::BitCast(di, result));
  if (count >= kLanes) {
    hn::StoreU(narrow, d16, to);
  } else {
    HWY_ALIGN std::uint16_t lanes[kLanes];
    hn::Store(narrow, d16, lanes);
    std::memcpy(to, lanes, count * sizeof(std::uint16_t));
  }
}

// Calls fn(load, store) for each vector of [0, n), the last one partial if need be.
template <class Fn>
HWY_INLINE void map_vectors(const float* x, std::size_t n, float* y, Fn&& fn) {
  const FloatTag d;
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(fn(hn::LoadU(d, x + i), i), d, y + i);
  if (i < n) store_first(fn(load_first(x + i, n - i), i), y + i, n - i);
}

// x * Phi(x). The tail 0.5 * erfc(|x| / sqrt 2) is Abramowitz & Stegun 7.1.26 (absolute error 1.5e-7), used on both sides so that
// nothing cancels for negative x.
HWY_INLINE FloatVec gelu_vector(FloatVec x) {
  const FloatTag d;
  const FloatVec magnitude = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118654752F));
  const FloatVec t = hn::Div(hn::Set(d, 1.0F), hn::MulAdd(magnitude, hn::Set(d, 0.3275911F), hn::Set(d, 1.0F)));
  FloatVec poly = hn::Set(d, 1.061405429F);
  poly = hn::MulAdd(poly, t, hn::Set(d, -1.453152027F));
  poly = hn::MulAdd(poly, t, hn::Set(d, 1.421413741F));
  poly = hn::MulAdd(poly, t, hn::Set(d, -0.284496736F));
  poly = hn::MulAdd(poly, t, hn::Set(d, 0.254829592F));
  const FloatVec half_erfc = hn::Mul(hn::Mul(hn::Mul(poly, t), hn::Set(d, 0.5F)), hn::Exp(d, hn::Neg(hn::Mul(magnitude, magnitude))));
  const FloatVec tail = hn::Mul(x, half_erfc);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(x, tail));
}

// x / (1 + exp(-x)); the clamp keeps exp in its range and changes nothing that float can show.
HWY_INLINE FloatVec silu_vector(FloatVec x) {
  const FloatTag d;
  const FloatVec e = hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 88.0F)));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0F), e));
}

// The same two where the result is rounded to fewer bits anyway: a third of the time.

// x * Phi(x), absolute error below 6e-5 for |x| < 20. A polynomial of x^2 for (Phi(x) - 1/2) / x that meets 1 at the clamp.
HWY_INLINE FloatVec coarse_gelu_vector(FloatVec x) {
  const FloatTag d;
  const FloatVec limit = hn::Set(d, 4.4F);
  const FloatVec clamped = hn::Max(hn::Min(x, limit), hn::Neg(limit));
  const FloatVec u = hn::Mul(clamped, clamped);
  FloatVec poly = hn::Set(d, 3.56943133e-11F);
  poly = hn::MulAdd(poly, u, hn::Set(d, -3.75405093e-09F));
  poly = hn::MulAdd(poly, u, hn::Set(d, 1.74084804e-07F));
  poly = hn::MulAdd(poly, u, hn::Set(d, -4.72486966e-06F));
  poly = hn::MulAdd(poly, u, hn::Set(d, 8.42930331e-05F));
  poly = hn::MulAdd(poly, u, hn::Set(d, -1.05499262e-03F));
  poly = hn::MulAdd(poly, u, hn::Set(d, 9.64302845e-03F));
  poly = hn::MulAdd(poly, u, hn::Set(d, -6.60764309e-02F));
  poly = hn::MulAdd(poly, u, hn::Set(d, 3.98761610e-01F));
  return hn::Mul(x, hn::MulAdd(poly, clamped, hn::Set(d, 0.5F)));
}

// x / (1 + exp(-x)), relative error below 1e-5.
HWY_INLINE FloatVec coarse_silu_vector(FloatVec x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const FloatVec limit = hn::Set(d, 120.0F);  // exp(-x) and its reciprocal stay normal numbers
  const FloatVec power = hn::Max(hn::Min(hn::Mul(x, hn::Set(d, -1.44269504F)), limit), hn::Neg(limit));
  const auto whole = hn::NearestInt(power);
  const FloatVec part = hn::Sub(power, hn::ConvertTo(d, whole));
  FloatVec poly = hn::Set(d, 9.57011089e-03F);
  poly = hn::MulAdd(poly, part, hn::Set(d, 5.59178930e-02F));
  poly = hn::MulAdd(poly, part, hn::Set(d, 2.40247449e-01F));
  poly = hn::MulAdd(poly, part, hn::Set(d, 6.93121811e-01F));
  poly = hn::MulAdd(poly, part, hn::Set(d, 9.99999261e-01F));
  const FloatVec exponential = hn::BitCast(d, hn::Add(hn::BitCast(di, poly), hn::ShiftLeft<23>(whole)));
  const FloatVec sum = hn::Add(exponential, hn::Set(d, 1.0F));
  const FloatVec estimate = hn::ApproximateReciprocal(sum);
  return hn::Mul(x, hn::Mul(estimate, hn::NegMulAdd(sum, estimate, hn::Set(d, 2.0F))));
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
