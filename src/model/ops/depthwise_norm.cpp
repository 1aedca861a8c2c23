#include "ops/depthwise_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/depthwise_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

constexpr std::size_t kTaps = 7;

HWY_INLINE FloatVec load_up_to(const float* from, std::size_t count) {
  return count >= kLanes ? hn::LoadU(FloatTag(), from) : load_first(from, count);
}

HWY_INLINE void store_up_to(FloatVec v, float* to, std::size_t count) {
  if (count >= kLanes) {
    hn::StoreU(v, FloatTag(), to);
  } else {
    store_first(v, to, count);
  }
}

// Output rows 0, d, 2 d .. of `rows`, which share all but one of their taps: each input row is loaded once. y and rounded are the place
// of the first one, theirs are `step` rows further each.
template <std::size_t kRows>
void finish_rows(const DepthwiseNorm& layer, const float* const* rows, float* HWY_RESTRICT y, std::size_t y_stride,
                 std::uint16_t* HWY_RESTRICT rounded) {
  const FloatTag d;
  const std::size_t n = layer.channels, y_step = layer.dilation * y_stride;
  const float* taps[kRows + kTaps - 1];
  for (std::size_t i = 0; i < kRows + kTaps - 1; ++i) taps[i] = rows[i * layer.dilation];

  FloatVec total[kRows];
  for (std::size_t r = 0; r < kRows; ++r) total[r] = hn::Zero(d);
  const auto convolve = [&](std::size_t c, std::size_t count) HWY_ATTR {
    FloatVec weight[kTaps], sum[kRows];
    for (std::size_t i = 0; i < kTaps; ++i) weight[i] = load_up_to(layer.weight + i * n + c, count);
    const FloatVec bias = load_up_to(layer.bias + c, count);
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = bias;
    for (std::size_t i = 0; i < kRows + kTaps - 1; ++i) {
      const FloatVec x = load_up_to(taps[i] + c, count);
      for (std::size_t r = 0; r < kRows; ++r) {
        if (i >= r && i - r < kTaps) sum[r] = hn::MulAdd(x, weight[i - r], sum[r]);
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      total[r] = hn::Add(total[r], sum[r]);
      store_up_to(sum[r], y + r * y_step + c, count);
    }
  };
  std::size_t c = 0;
  for (; c + kLanes <= n; c += kLanes) convolve(c, kLanes);
  if (c < n) convolve(c, n - c);

  FloatVec mean[kRows], squares[kRows];
  for (std::size_t r = 0; r < kRows; ++r) {
    mean[r] = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, total[r])) / static_cast<float>(n));
    squares[r] = hn::Zero(d);
  }
  const auto add_squares = [&](std::size_t at, std::size_t count) HWY_ATTR {
    for (std::size_t r = 0; r < kRows; ++r) {
      FloatVec distance = hn::Sub(load_up_to(y + r * y_step + at, count), mean[r]);
      if (count < kLanes) distance = hn::IfThenElseZero(hn::FirstN(d, count), distance);
      squares[r] = hn::MulAdd(distance, distance, squares[r]);
    }
  };
  for (c = 0; c + kLanes <= n; c += kLanes) add_squares(c, kLanes);
  if (c < n) add_squares(c, n - c);

  FloatVec factor[kRows];
  for (std::size_t r = 0; r < kRows; ++r) {
    const float variance = hn::GetLane(hn::SumOfLanes(d, squares[r])) / static_cast<float>(n);
    factor[r] = hn::Set(d, 1.0F / std::sqrt(variance + layer.eps));
  }
  const auto normalise = [&](std::size_t at, std::size_t count) HWY_ATTR {
    const FloatVec weight = load_up_to(layer.norm_weight + at, count), bias = load_up_to(layer.norm_bias + at, count);
    for (std::size_t r = 0; r < kRows; ++r) {
      float* const row = y + r * y_step + at;
      const FloatVec value = hn::MulAdd(hn::Mul(hn::Sub(load_up_to(row, count), mean[r]), factor[r]), weight, bias);
      if (rounded != nullptr) {
        store_as_bfloat16(value, rounded + r * layer.dilation * n + at, count);
      } else {
        store_up_to(value, row, count);
      }
    }
  };
  for (c = 0; c + kLanes <= n; c += kLanes) normalise(c, kLanes);
  if (c < n) normalise(c, n - c);
}

void depthwise_norm_kernel(const DepthwiseNorm& layer, const float* const* rows, std::size_t count, float* y, std::size_t y_stride,
                           std::uint16_t* rounded) {
  constexpr std::size_t kGroup = 4;
  for (std::size_t phase = 0; phase < layer.dilation && phase < count; ++phase) {
    std::size_t r = phase;
    const auto finish = [&](auto finish_group, std::size_t group) {
      finish_group(layer, rows + r, y + r * y_stride, y_stride, rounded == nullptr ? nullptr : rounded + r * layer.channels);
      r += group * layer.dilation;
    };
    while (r + (kGroup - 1) * layer.dilation < count) finish(finish_rows<kGroup>, kGroup);
    if (r + 2 * layer.dilation < count) {
      finish(finish_rows<3>, 3);
    } else if (r + layer.dilation < count) {
      finish(finish_rows<2>, 2);
    } else if (r < count) {
      finish(finish_rows<1>, 1);
    }
  }
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(depthwise_norm_kernel);

void depthwise_norm(const DepthwiseNorm& layer, const float* const* rows, std::size_t count, float* y, std::size_t y_stride,
                    std::uint16_t* rounded) {
  HWY_DYNAMIC_DISPATCH(depthwise_norm_kernel)(layer, rows, count, y, y_stride, rounded);
}

}  // namespace tts::model::ops
#endif  // HWY_ONCE
