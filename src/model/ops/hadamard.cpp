#include "ops/hadamard.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/hadamard.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

// Partners `step` lanes apart: a lower lane gets own + other, an upper one other - own.
class LaneButterfly {
 public:
  HWY_INLINE explicit LaneButterfly(std::size_t step) {
    HWY_ALIGN std::int32_t partner[kLanes];
    HWY_ALIGN float sign[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) {
      partner[i] = static_cast<std::int32_t>((i ^ step) % kLanes);
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

// Transforms kMaxHadamardBlock values.
class HadamardBlock {
 public:
  static constexpr std::size_t kVectors = kMaxHadamardBlock / kLanes;

  HWY_INLINE HadamardBlock() : one_(1), two_(2), four_(4), eight_(8) {}

  HWY_INLINE void operator()(FloatVec (&v)[kVectors]) const {
    for (FloatVec& lanes : v) {
      if constexpr (kLanes > 1) lanes = one_(lanes);
      if constexpr (kLanes > 2) lanes = two_(lanes);
      if constexpr (kLanes > 4) lanes = four_(lanes);
      if constexpr (kLanes > 8) lanes = eight_(lanes);
    }
    for (std::size_t step = 1; step < kVectors; step *= 2) {
      for (std::size_t first = 0; first < kVectors; first += 2 * step) {
        for (std::size_t i = first; i < first + step; ++i) {
          const FloatVec a = v[i], b = v[i + step];
          v[i] = hn::Add(a, b);
          v[i + step] = hn::Sub(a, b);
        }
      }
    }
  }

 private:
  LaneButterfly one_, two_, four_, eight_;
};

// n is a multiple of the largest block.
void hadamard_kernel(float* x, std::size_t n) {
  const FloatTag d;
  const HadamardBlock transform;
  for (std::size_t first = 0; first < n; first += kMaxHadamardBlock) {
    FloatVec v[HadamardBlock::kVectors];
    for (std::size_t i = 0; i < HadamardBlock::kVectors; ++i) v[i] = hn::LoadU(d, x + first + i * kLanes);
    transform(v);
    for (std::size_t i = 0; i < HadamardBlock::kVectors; ++i) hn::StoreU(v[i], d, x + first + i * kLanes);
  }
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(hadamard_kernel);

namespace {

// Blocks that are smaller than a register file come from odd sizes only.
void transform_blocks(float* x, std::size_t n, std::size_t block) {
  for (std::size_t step = 1; step < block; step *= 2) {
    for (std::size_t first = 0; first < n; first += 2 * step) {
      for (std::size_t i = first; i < first + step; ++i) {
        const float a = x[i], b = x[i + step];
        x[i] = a + b;
        x[i + step] = a - b;
      }
    }
  }
}

}  // namespace

void hadamard(float* x, std::size_t n) noexcept {
  const std::size_t block = hadamard_block(n);
  if (block == kMaxHadamardBlock) return HWY_DYNAMIC_DISPATCH(hadamard_kernel)(x, n);
  transform_blocks(x, n, block);
}

}  // namespace tts::model::ops
#endif  // HWY_ONCE
