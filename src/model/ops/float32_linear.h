#pragma once
// float32 weights in panels of 16 output columns, [panel][k][16]: every pass over the weights is one forward sweep of memory, and
// the layout is the same for every instruction set.

#include <cstddef>

#include "ops/aligned_buffer.h"
#include "ops/linear.h"
#include "ops/linear_finish.h"
#include "ops/weight_memory.h"

namespace tts::model::ops {

class Float32Linear final : public Linear {
 public:
  Float32Linear(const float* weight, std::size_t outputs, std::size_t inputs, const float* bias);
  // Gate and up panels alternate.
  Float32Linear(const float* gate, const float* up, std::size_t outputs, std::size_t inputs);

  WeightFormat format() const noexcept override { return WeightFormat::kFloat32; }
  std::size_t inputs() const noexcept override { return inputs_; }
  std::size_t outputs() const noexcept override { return outputs_; }
  std::size_t weight_bytes() const noexcept override { return weight_.size(); }
  void forward(ComputePool& pool, const InputRows& x, const MutableRows& y, Activation activation) const override;
  void forward(ComputePool& pool, const InputRows& x, LinearInput& y, Activation activation) const override;
  void forward_add(ComputePool& pool, const InputRows& x, const MutableRows& y) const override;

 private:
  void pack(const float* weight, std::size_t first_panel, std::size_t panel_step);
  template <class Kernel>
  void run(ComputePool& pool, const InputRows& x, const MutableRows& y, Kernel kernel) const;

  std::size_t outputs_ = 0, inputs_ = 0;
  std::size_t panels_ = 0;  // gate and up counted apart
  bool gated_ = false;
  WeightMemory weight_;  // floats, padded with zero columns to whole panels
  AlignedBuffer bias_;   // the same
};

}  // namespace tts::model::ops
