#pragma once
// A linear of the sound networks, rounded or precise.
//
// In bfloat16 a rounded one takes weights and activations as they are rounded. Precise ones, for the few products where that would be
// heard, take each of them as the sum of two bfloat16 terms, high + low, and a product as the sum of three: high high + low high +
// high low, which leaves an error of about 2^-16. The three lie one behind the other in one longer product, so that no kernel has to
// know. In float32 both are the same.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ops/linear.h"
#include "ops/linear_input.h"
#include "ops/weight_format.h"

namespace tts::model {

// Immutable.
class SoundLinear {
 public:
  enum class Grade : std::uint8_t { kRounded, kPrecise };

  // `weight` is row-major [outputs, span, width]: the product of `span` neighbouring input rows of `width` values. `bias` is [outputs], or
  // empty. `format` is float32 or bfloat16.
  SoundLinear(ops::WeightFormat format, Grade grade, std::span<const float> weight, std::size_t outputs, std::size_t span,
              std::span<const float> bias = {});

  const ops::Linear& linear() const noexcept { return *linear_; }

  // The LinearInput is terms * width() wide.
  std::size_t width() const noexcept { return width_; }
  std::size_t terms() const noexcept { return terms_; }
  static std::size_t max_terms(ops::WeightFormat format) noexcept { return format == ops::WeightFormat::kFloat32 ? 1 : 3; }

  // Makes x, width() values, row r of the input. x may be input.row(r).
  void commit_row(ops::LinearInput& input, std::size_t r, const float* x) const noexcept;

 private:
  std::size_t width_, terms_;
  std::unique_ptr<const ops::Linear> linear_;
};

}  // namespace tts::model
