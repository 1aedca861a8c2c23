#include "gfsq.h"

#include <array>
#include <cassert>
#include <cmath>
#include <stdexcept>
#include <string>

namespace tts::model {
namespace {

constexpr std::array<float, Gfsq::kResiduals> kScale{1.0F, 0.25F};
constexpr float kHalfLevels = (Gfsq::kLevels - 1) / 2.0F;
// The quantiser widens the half range by a thousandth so that the outermost levels can be reached.
constexpr float kBound = kHalfLevels * 1.001F;

}  // namespace

Gfsq::Gfsq(TensorReader& reader, const engine::QuantizerSizes& sizes) : group_dim_(sizes.dim / kGroups) {
  if (sizes.groups != kGroups || sizes.residuals != kResiduals || sizes.levels != std::vector<std::uint32_t>(kDigits, kLevels)) {
    throw std::runtime_error("the quantiser must have 2 groups of 2 residuals with levels 5, 5, 5, 5");
  }
  for (std::size_t g = 0; g < kGroups; ++g) {
    const std::string prefix = "vq_layer.quantizer.rvqs." + std::to_string(g);
    groups_.push_back({reader.get(prefix + ".project_in.weight", {kDigits, group_dim_}), reader.get(prefix + ".project_in.bias", {kDigits}),
                       reader.get(prefix + ".project_out.weight", {group_dim_, kDigits}),
                       reader.get(prefix + ".project_out.bias", {group_dim_})});
  }
}

Gfsq::Digits Gfsq::digits(unsigned code) noexcept {
  Digits values;
  for (float& value : values) {
    value = (static_cast<float>(code % kLevels) - kHalfLevels) / kHalfLevels;
    code /= kLevels;
  }
  return values;
}

void Gfsq::embed(const engine::CodeFrame& codes, float* out) const {
  static_assert(engine::kCodebooks == kGroups * kResiduals);
  for (std::size_t g = 0; g < kGroups; ++g) {
    const Group& group = groups_[g];
    Digits v{};
    for (std::size_t r = 0; r < kResiduals; ++r) {
      assert(codes[g * kResiduals + r] < kCodes);
      const Digits value = digits(codes[g * kResiduals + r]);
      for (std::size_t k = 0; k < kDigits; ++k) v[k] += kScale[r] * value[k];
    }
    for (std::size_t o = 0; o < group_dim_; ++o) {
      float sum = group.out_bias[o];
      for (std::size_t k = 0; k < kDigits; ++k) sum += group.out_weight[o * kDigits + k] * v[k];
      out[g * group_dim_ + o] = sum;
    }
  }
}

engine::CodeFrame Gfsq::encode(const float* vector) const {
  engine::CodeFrame codes{};
  for (std::size_t g = 0; g < kGroups; ++g) {
    const Group& group = groups_[g];
    Digits residual;
    for (std::size_t k = 0; k < kDigits; ++k) {
      float sum = group.in_bias[k];
      for (std::size_t i = 0; i < group_dim_; ++i) sum += group.in_weight[k * group_dim_ + i] * vector[g * group_dim_ + i];
      residual[k] = kBound * std::tanh(sum);
    }
    for (std::size_t r = 0; r < kResiduals; ++r) {
      unsigned code = 0, place = 1;
      for (std::size_t k = 0; k < kDigits; ++k) {
        // Ties round to even, the default rounding mode.
        const float level = std::nearbyint(kBound * std::tanh(residual[k] / kScale[r]));
        residual[k] -= level / kHalfLevels * kScale[r];
        code += place * static_cast<unsigned>(level + kHalfLevels);
        place *= kLevels;
      }
      codes[g * kResiduals + r] = static_cast<std::uint16_t>(code);
    }
  }
  return codes;
}

}  // namespace tts::model
