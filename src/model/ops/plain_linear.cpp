#include "ops/plain_linear.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ops/quantize.h"

namespace tts::model::ops {
namespace {

constexpr std::size_t kColumnsPerBlock = 16;

float gelu_of(float v) { return 0.5F * v * std::erfc(-v * 0.70710678118654752F); }
float silu_of(float v) { return v / (1.0F + std::exp(-v)); }

}  // namespace

PlainLinear::PlainLinear(WeightFormat format, const float* weight, std::size_t outputs, std::size_t inputs, const float* bias)
    : format_(format), outputs_(outputs), inputs_(inputs), bias_(outputs) {
  append(weight);
  if (bias != nullptr) std::copy_n(bias, outputs, bias_.data());
}

PlainLinear::PlainLinear(WeightFormat format, const float* gate, const float* up, std::size_t outputs, std::size_t inputs)
    : format_(format), outputs_(outputs), inputs_(inputs), gated_(true), bias_(outputs) {
  append(gate);
  append(up);
}

void PlainLinear::append(const float* weight) {
  const std::size_t count = outputs_ * inputs_;
  if (format_ == WeightFormat::kBfloat16) {
    bfloats_.resize(bfloats_.size() + count);
    to_bfloat16(weight, count, bfloats_.data() + bfloats_.size() - count);
    return;
  }
  bytes_.resize(bytes_.size() + count);
  std::int8_t* const to = bytes_.data() + bytes_.size() - count;
  for (std::size_t n = 0; n < outputs_; ++n) scales_.push_back(quantize_channel(weight + n * inputs_, inputs_, to + n * inputs_));
}

float PlainLinear::product(const InputRows& x, std::size_t row, std::size_t channel) const noexcept {
  const std::size_t input_row = x.first + row * x.step;
  if (format_ == WeightFormat::kBfloat16) {
    const std::uint16_t *a = x.input.bfloats(input_row), *w = bfloats_.data() + channel * inputs_;
    float sum = 0.0F;
    for (std::size_t k = 0; k < inputs_; ++k) sum += from_bfloat16(a[k]) * from_bfloat16(w[k]);
    return sum;
  }
  const std::uint8_t* a = x.input.bytes(input_row);
  const std::int8_t* w = bytes_.data() + channel * inputs_;
  std::int32_t sum = 0;
  for (std::size_t k = 0; k < inputs_; ++k) sum += (a[k] - LinearInput::kInt8Offset) * w[k];
  return static_cast<float>(sum) * x.input.scale(input_row) * scales_[channel];
}

template <class Finish>
void PlainLinear::run(ComputePool& pool, const InputRows& x, const MutableRows& y, Finish finish) const {
  assert(x.input.format() == format_ && inputs_ % x.input.width() == 0);
  assert(format_ != WeightFormat::kInt8 || inputs_ == x.input.width());
  pool.run((outputs_ + kColumnsPerBlock - 1) / kColumnsPerBlock, [&](std::size_t block, std::uint32_t) {
    const std::size_t begin = block * kColumnsPerBlock, end = std::min(outputs_, begin + kColumnsPerBlock);
    for (std::size_t r = 0; r < x.rows; ++r) {
      for (std::size_t n = begin; n < end; ++n) finish(r, n, product(x, r, n) + bias_[n], y.data[r * y.stride + n]);
    }
  });
}

void PlainLinear::forward(ComputePool& pool, const InputRows& x, const MutableRows& y, Activation activation) const {
  assert(gated_ == (activation == Activation::kSwiGlu));
  switch (activation) {
    case Activation::kNone: return run(pool, x, y, [](std::size_t, std::size_t, float v, float& out) { out = v; });
    case Activation::kGelu: return run(pool, x, y, [](std::size_t, std::size_t, float v, float& out) { out = gelu_of(v); });
    case Activation::kSwiGlu:
      return run(pool, x, y, [&](std::size_t r, std::size_t n, float v, float& out) { out = silu_of(v) * product(x, r, outputs_ + n); });
  }
}

void PlainLinear::forward(ComputePool& pool, const InputRows& x, LinearInput& y, Activation activation) const {
  assert(y.format() == format_);
  y.set_width(outputs_);
  forward(pool, x, MutableRows{y.row(0), outputs_}, activation);
  y.commit(pool, x.rows);
}

void PlainLinear::forward_add(ComputePool& pool, const InputRows& x, const MutableRows& y) const {
  assert(!gated_);
  run(pool, x, y, [](std::size_t, std::size_t, float v, float& out) { out += v; });
}

}  // namespace tts::model::ops
