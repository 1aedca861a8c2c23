#include "ops/rope.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

void rotate_kernel(const float* cosine, const float* sine, std::size_t half, float* head) {
  const FloatTag d;
  std::size_t j = 0;
  for (; j + kLanes <= half; j += kLanes) {
    const FloatVec c = hn::LoadU(d, cosine + j), s = hn::LoadU(d, sine + j), a = hn::LoadU(d, head + j), b = hn::LoadU(d, head + half + j);
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, head + j);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, head + half + j);
  }
  for (; j < half; ++j) {
    const float a = head[j], b = head[half + j];
    head[j] = a * cosine[j] - b * sine[j];
    head[half + j] = b * cosine[j] + a * sine[j];
  }
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(rotate_kernel);

RopeTable::RopeTable(std::size_t positions, std::size_t dim, double theta)
    : half_(dim / 2), cos_(positions * half_), sin_(positions * half_) {
  for (std::size_t j = 0; j < half_; ++j) {
    const auto frequency = static_cast<float>(1.0 / std::pow(theta, static_cast<double>(2 * j) / static_cast<double>(dim)));
    for (std::size_t position = 0; position < positions; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      cos_[position * half_ + j] = static_cast<float>(std::cos(static_cast<double>(angle)));
      sin_[position * half_ + j] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
}

void RopeTable::rotate(std::size_t position, float* head) const {
  HWY_DYNAMIC_DISPATCH(rotate_kernel)(cos_.data() + position * half_, sin_.data() + position * half_, half_, head);
}

}  // namespace tts::model::ops
#endif  // HWY_ONCE
