#include "ops/kernels.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

HWY_INLINE float sum_lanes(FloatVec v) { return hn::GetLane(hn::SumOfLanes(FloatTag(), v)); }

// Sum of term(x) over n values in four interleaved chains, always the same ones.
template <class Term>
HWY_INLINE float reduce(const float* x, std::size_t n, Term&& term) {
  const FloatTag d;
  FloatVec s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    s0 = term(s0, hn::LoadU(d, x + i));
    s1 = term(s1, hn::LoadU(d, x + i + kLanes));
    s2 = term(s2, hn::LoadU(d, x + i + 2 * kLanes));
    s3 = term(s3, hn::LoadU(d, x + i + 3 * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) s0 = term(s0, hn::LoadU(d, x + i));
  float tail = 0.0F;
  if (i < n) {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(term(hn::Zero(d), load_first(x + i, n - i)), d, lanes);
    for (std::size_t j = 0; j < n - i; ++j) tail += lanes[j];
  }
  return sum_lanes(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))) + tail;
}

void rms_norm_kernel(const float* x, const float* weight, float eps, std::size_t n, float* y) {
  const FloatTag d;
  const float squares = reduce(x, n, [](FloatVec sum, FloatVec v) { return hn::MulAdd(v, v, sum); });
  const FloatVec factor = hn::Set(d, 1.0F / std::sqrt(squares / static_cast<float>(n) + eps));
  map_vectors(x, n, y, [&](FloatVec v, std::size_t i) {
    const FloatVec w = i + kLanes <= n ? hn::LoadU(d, weight + i) : load_first(weight + i, n - i);
    return hn::Mul(hn::Mul(v, factor), w);
  });
}

void layer_norm_kernel(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* y) {
  const FloatTag d;
  const float mean = reduce(x, n, [](FloatVec sum, FloatVec v) { return hn::Add(sum, v); }) / static_cast<float>(n);
  const FloatVec centre = hn::Set(d, mean);
  const float squares = reduce(x, n, [&](FloatVec sum, FloatVec v) {
    const FloatVec distance = hn::Sub(v, centre);
    return hn::MulAdd(distance, distance, sum);
  });
  const FloatVec factor = hn::Set(d, 1.0F / std::sqrt(squares / static_cast<float>(n) + eps));
  map_vectors(x, n, y, [&](FloatVec v, std::size_t i) {
    const bool whole = i + kLanes <= n;
    const FloatVec w = whole ? hn::LoadU(d, weight + i) : load_first(weight + i, n - i);
    const FloatVec b = whole ? hn::LoadU(d, bias + i) : load_first(bias + i, n - i);
    return hn::MulAdd(hn::Mul(hn::Sub(v, centre), factor), w, b);
  });
}

void axpy_kernel(float a, const float* x, std::size_t n, float* y) {
  const FloatTag d;
  const FloatVec factor = hn::Set(d, a);
  map_vectors(x, n, y, [&](FloatVec v, std::size_t i) {
    return hn::MulAdd(factor, v, i + kLanes <= n ? hn::LoadU(d, y + i) : load_first(y + i, n - i));
  });
}

void scale_kernel(float a, std::size_t n, float* y) {
  const FloatVec factor = hn::Set(FloatTag(), a);
  map_vectors(y, n, y, [&](FloatVec v, std::size_t) { return hn::Mul(factor, v); });
}

float sum_exp_kernel(const float* x, std::size_t n, float highest) {
  const FloatVec offset = hn::Set(FloatTag(), highest);
  return reduce(x, n, [&](FloatVec sum, FloatVec v) { return hn::Add(sum, hn::Exp(FloatTag(), hn::Sub(v, offset))); });
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(rms_norm_kernel);
HWY_EXPORT(layer_norm_kernel);
HWY_EXPORT(axpy_kernel);
HWY_EXPORT(scale_kernel);
HWY_EXPORT(sum_exp_kernel);

void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(rms_norm_kernel)(x, weight, eps, n, y);
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(layer_norm_kernel)(x, weight, bias, eps, n, y);
}

void axpy(float a, const float* x, std::size_t n, float* y) { HWY_DYNAMIC_DISPATCH(axpy_kernel)(a, x, n, y); }

void scale(float a, std::size_t n, float* y) { HWY_DYNAMIC_DISPATCH(scale_kernel)(a, n, y); }

float sum_exp(const float* x, std::size_t n, float highest) { return HWY_DYNAMIC_DISPATCH(sum_exp_kernel)(x, n, highest); }

}  // namespace tts::model::ops
#endif  // HWY_ONCE
