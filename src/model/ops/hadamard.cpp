#include "ops/hadamard.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/hadamard.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

void butterflies(float* x, std::size_t n, std::size_t step) {
  for (std::size_t first = 0; first < n; first += 2 * step) {
    for (std::size_t i = first; i < first + step; ++i) {
      const float a = x[i], b = x[i + step];
      x[i] = a + b;
      x[i + step] = a - b;
    }
  }
}

// Partners `step` lanes apart inside a vector: a lower lane gets own + other, an upper one other - own.
class LaneButterfly {
 public:
  HWY_INLINE explicit LaneButterfly(std::size_t step) {
    HWY_ALIGN std::int32_t partner[kLanes];
    HWY_ALIGN float sign[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) {
      partner[i] = static_cast<std::int32_t>(i ^ step);
      sign[i] = (i & step) == 0 ? 1.0F : -1.0F;
    }
    partner_ = hn::SetTableIndices(FloatTag(), partner);
    sign_ = hn::Load(FloatTag(), sign);
  }
  HWY_INLINE FloatVec operator()(FloatVec v) const { return hn::MulAdd(v, sign_, hn::TableLookupLanes(v, partner_)); }

 private:
  decltype(hn::SetTableIndices(FloatTag(), static_cast<const std::int32_t*>(nullptr))) partner_;
  FloatVec sign_;
};

constexpr std::size_t kLaneSteps = kLanes == 16 ? 4 : kLanes == 8 ? 3 : kLanes == 4 ? 2 : 0;

void hadamard_kernel(float* x, std::size_t n, std::size_t block) {
  if (block < kLanes || kLaneSteps == 0) {
    for (std::size_t step = 1; step < block; step *= 2) butterflies(x, n, step);
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  const FloatTag d;
  const LaneButterfly one(1), two(2), four(kLaneSteps > 2 ? 4 : 1), eight(kLaneSteps > 3 ? 8 : 1);
  for (std::size_t i = 0; i < n; i += kLanes) {
    FloatVec v = two(one(hn::LoadU(d, x + i)));
    if constexpr (kLaneSteps > 2) v = four(v);
    if constexpr (kLaneSteps > 3) v = eight(v);
    hn::StoreU(v, d, x + i);
  }
  std::size_t step = kLanes;
  for (; 4 * step <= block; step *= 4) {  // two steps in one pass
    for (std::size_t first = 0; first < n; first += 4 * step) {
      for (std::size_t i = first; i < first + step; i += kLanes) {
        const FloatVec a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + step), c = hn::LoadU(d, x + i + 2 * step),
                       e = hn::LoadU(d, x + i + 3 * step);
        const FloatVec ab = hn::Add(a, b), a_b = hn::Sub(a, b), ce = hn::Add(c, e), c_e = hn::Sub(c, e);
        hn::StoreU(hn::Add(ab, ce), d, x + i);
        hn::StoreU(hn::Add(a_b, c_e), d, x + i + step);
        hn::StoreU(hn::Sub(ab, ce), d, x + i + 2 * step);
        hn::StoreU(hn::Sub(a_b, c_e), d, x + i + 3 * step);
      }
    }
  }
  if (step < block) {
    for (std::size_t first = 0; first < n; first += 2 * step) {
      for (std::size_t i = first; i < first + step; i += kLanes) {
        const FloatVec a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + step);
        hn::StoreU(hn::Add(a, b), d, x + i);
        hn::StoreU(hn::Sub(a, b), d, x + i + step);
      }
    }
  }
#endif
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(hadamard_kernel);

void hadamard(float* x, std::size_t n) noexcept { HWY_DYNAMIC_DISPATCH(hadamard_kernel)(x, n, hadamard_block(n)); }

}  // namespace tts::model::ops
#endif  // HWY_ONCE
