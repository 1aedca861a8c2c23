#include "sound_linear.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "ops/quantize.h"

namespace tts::model {
namespace {

// [rows, width] as [rows, high | low | high]: what stands beside an activation's high, high and low terms.
std::vector<float> three_terms(std::span<const float> weight, std::size_t width) {
  std::vector<float> terms(3 * weight.size());
  for (std::size_t row = 0; row < weight.size() / width; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      const float value = weight[row * width + i], high = ops::from_bfloat16(ops::to_bfloat16(value));
      float* const to = terms.data() + 3 * row * width + i;
      to[0] = to[2 * width] = high;
      to[width] = value - high;
    }
  }
  return terms;
}

}  // namespace

SoundLinear::SoundLinear(ops::WeightFormat format, Grade grade, std::span<const float> weight, std::size_t outputs, std::size_t span,
                         std::span<const float> bias)
    : width_(weight.size() / outputs / span), terms_(grade == Grade::kPrecise ? max_terms(format) : 1) {
  assert(format != ops::WeightFormat::kInt8 && weight.size() == outputs * span * width_);
  const std::vector<float> terms = terms_ == 3 ? three_terms(weight, width_) : std::vector<float>();
  linear_ = ops::make_linear(format, terms_ == 3 ? terms.data() : weight.data(), outputs, terms_ * span * width_,
                             bias.empty() ? nullptr : bias.data());
}

void SoundLinear::commit_row(ops::LinearInput& input, std::size_t r, const float* x) const noexcept {
  assert(input.width() == terms_ * width_ && input.format() == linear_->format());
  float* const row = input.row(r);
  if (input.format() == ops::WeightFormat::kFloat32) {
    if (x != row) std::copy_n(x, width_, row);
    return;
  }
  std::uint16_t* const codes = input.bfloats(r);
  ops::to_bfloat16(x, width_, codes);
  if (terms_ == 1) return;
  float* const low = row + 2 * width_;
  for (std::size_t i = 0; i < width_; ++i) low[i] = x[i] - ops::from_bfloat16(codes[i]);
  std::copy_n(codes, width_, codes + width_);
  ops::to_bfloat16(low, width_, codes + 2 * width_);
}

}  // namespace tts::model
