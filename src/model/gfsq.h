#pragma once
// Grouped residual finite scalar quantiser (model spec, GFSQ): codes to vectors and back. The variant the model was trained with:
// encoding starts from 2.002 * tanh(x), the second residual has a quarter of the scale of the first.

#include <array>
#include <cstddef>
#include <vector>

#include "tts/engine/manifest.h"
#include "tts/engine/utterance.h"

#include "safetensors.h"

namespace tts::model {

// Immutable after loading.
class Gfsq {
 public:
  static constexpr std::size_t kGroups = 2, kResiduals = 2, kDigits = 4;
  static constexpr unsigned kLevels = 5;
  static constexpr unsigned kCodes = 625;  // kLevels ^ kDigits

  // Throws std::runtime_error when `sizes` is not 2 groups of 2 residuals with levels 5, 5, 5, 5.
  Gfsq(TensorReader& reader, const engine::QuantizerSizes& sizes);

  std::size_t dim() const noexcept { return kGroups * group_dim_; }

  // The digits of a code as values in {-1, -0.5, 0, 0.5, 1}, least significant first.
  using Digits = std::array<float, kDigits>;
  static Digits digits(unsigned code) noexcept;

  // Codes in the order group 0 residual 0, group 0 residual 1, group 1 residual 0, group 1 residual 1, each below kCodes.
  // out has dim() values, group 0 first.
  void embed(const engine::CodeFrame& codes, float* out) const;

  // `vector` has dim() values.
  engine::CodeFrame encode(const float* vector) const;

 private:
  struct Group {
    std::vector<float> in_weight, in_bias;    // [kDigits, group_dim], [kDigits]
    std::vector<float> out_weight, out_bias;  // [group_dim, kDigits], [group_dim]
  };

  std::size_t group_dim_;
  std::vector<Group> groups_;
};

}  // namespace tts::model
