#pragma once
// bfloat16 and int8 linears over weights in tiles (tile_kernels.h).

#include <cstddef>
#include <vector>

#include "ops/linear.h"
#include "ops/tile_kernels.h"
#include "ops/weight_memory.h"

namespace tts::model::ops {

class TiledLinear final : public Linear {
 public:
  TiledLinear(WeightFormat format, const float* weight, std::size_t outputs, std::size_t inputs, const float* bias);
  // Each group holds a panel of gates and the panel of ups that belongs to it.
  TiledLinear(WeightFormat format, const float* gate, const float* up, std::size_t outputs, std::size_t inputs);

  WeightFormat format() const noexcept override { return format_; }
  std::size_t inputs() const noexcept override { return inputs_; }
  std::size_t outputs() const noexcept override { return outputs_; }
  std::size_t weight_bytes() const noexcept override { return weight_.size(); }
  void forward(ComputePool& pool, const InputRows& x, const MutableRows& y, Activation activation) const override;
  void forward(ComputePool& pool, const InputRows& x, LinearInput& y, Activation activation) const override;
  void forward_add(ComputePool& pool, const InputRows& x, const MutableRows& y) const override;

 private:
  struct Output;

  std::size_t columns_per_group() const noexcept { return gated_ ? kPanel : kGroup; }
  std::size_t groups_per_block_for(const ComputePool& pool) const noexcept;
  void pack(const float* weight, std::size_t first_panel, std::size_t panel_step);
  void run(ComputePool& pool, const InputRows& x, const Output& y) const;

  WeightFormat format_;
  bool gated_;
  std::size_t outputs_, inputs_;
  std::size_t groups_, depth_;  // of weight_; depth: blocks of a row
  WeightMemory weight_;
  std::vector<float> bias_;    // [group][kGroup]
  std::vector<float> scales_;  // int8: of each column, [group][kGroup]
};

}  // namespace tts::model::ops
