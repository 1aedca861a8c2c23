#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "polar.cpp"
#include <hwy/foreach_target.h>
// Highway's include idiom: the lines above must stand first.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "polar.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void polar_to_complex(const float* log_magnitude, const float* phase, std::size_t n, float limit, float* out) {
  const hn::ScalableTag<float> d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  const std::size_t lanes = hn::Lanes(d);
  const auto cap = hn::Set(d, limit);
  const auto max_phase = hn::Set(d, 39000.0F);  // the range in which the library reduces angles
  const auto convert = [&](const float* m, const float* p, float* to) HWY_ATTR {
    const auto magnitude = hn::Min(hn::Exp(d, hn::LoadU(d, m)), cap);
    const auto angle = hn::Max(hn::Min(hn::LoadU(d, p), max_phase), hn::Neg(max_phase));
    hn::StoreInterleaved2(hn::Mul(magnitude, hn::Cos(d, angle)), hn::Mul(magnitude, hn::Sin(d, angle)), d, to);
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) convert(log_magnitude + i, phase + i, out + 2 * i);
  if (i == n) return;
  float m[kLanes] = {}, p[kLanes] = {}, to[2 * kLanes];
  for (std::size_t j = i; j < n; ++j) m[j - i] = log_magnitude[j], p[j - i] = phase[j];
  convert(m, p, to);
  for (std::size_t j = 2 * i; j < 2 * n; ++j) out[j] = to[j - 2 * i];
}

}  // namespace tts::model::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model {

HWY_EXPORT(polar_to_complex);

void polar_to_complex(const float* log_magnitude, const float* phase, std::size_t n, float limit, float* out) {
  HWY_DYNAMIC_DISPATCH(polar_to_complex)(log_magnitude, phase, n, limit, out);
}

}  // namespace tts::model
#endif
