#pragma once
// bfloat16 and int8 linears in plain C++, for every processor.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/linear.h"

namespace tts::model::ops {

class PlainLinear final : public Linear {
 public:
  PlainLinear(WeightFormat format, const float* weight, std::size_t outputs, std::size_t inputs, const float* bias);
  PlainLinear(WeightFormat format, const float* gate, const float* up, std::size_t outputs, std::size_t inputs);

  WeightFormat format() const noexcept override { return format_; }
  std::size_t inputs() const noexcept override { return inputs_; }
  std::size_t outputs() const noexcept override { return outputs_; }
  std::size_t weight_bytes() const noexcept override { return bfloats_.size() * sizeof(std::uint16_t) + bytes_.size(); }
  void forward(ComputePool& pool, const InputRows& x, const MutableRows& y, Activation activation) const override;
  void forward(ComputePool& pool, const InputRows& x, LinearInput& y, Activation activation) const override;
  void forward_add(ComputePool& pool, const InputRows& x, const MutableRows& y) const override;

 private:
  void append(const float* weight);
  float product(const InputRows& x, std::size_t row, std::size_t channel) const noexcept;
  template <class Finish>
  void run(ComputePool& pool, const InputRows& x, const MutableRows& y, Finish finish) const;

  WeightFormat format_;
  std::size_t outputs_, inputs_;
  bool gated_ = false;
  std::vector<std::uint16_t> bfloats_;  // [channel][input], gates before ups
  std::vector<std::int8_t> bytes_;
  std::vector<float> scales_;  // [channel], int8
  std::vector<float> bias_;
};

}  // namespace tts::model::ops
