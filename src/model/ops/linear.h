#pragma once
// y = epilogue(x Wt + bias) over packed weights: the one interface behind which a weight format (float32 today) hides.
//
// Contract of every implementation: the bits of an output row depend on that input row only: not on the other rows, their
// number, the number of workers or how the work was cut. Each output accumulates over k in ascending order in one chain.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ops/compute_pool.h"

namespace tts::model::ops {

enum class WeightFormat : std::uint8_t { kFloat32 };

enum class Activation : std::uint8_t {
  kNone,
  kGelu,    // exact (erf) form
  kSwiGlu,  // only with weights made by make_gate_up(): y[j] = silu(gate[j]) * up[j]
};

// Rows are `stride` floats apart. Input rows may overlap: a k=3 convolution over contiguous [time, channel] data is a linear
// with inputs() == 3 * channels and stride == channels.
struct Rows {
  const float* data = nullptr;
  std::size_t rows = 0, stride = 0;
};

struct MutableRows {
  float* data = nullptr;
  std::size_t stride = 0;
};

class Linear {
 public:
  virtual ~Linear() = default;
  virtual std::size_t inputs() const noexcept = 0;
  virtual std::size_t outputs() const noexcept = 0;

  // Runs on the pool; never allocates. y must not overlap x.
  virtual void forward(ComputePool& pool, const Rows& x, const MutableRows& y, Activation activation = Activation::kNone) const = 0;

  // y += x Wt + bias: the residual form.
  virtual void forward_add(ComputePool& pool, const Rows& x, const MutableRows& y) const = 0;
};

// `weight` is row-major [outputs, inputs], `bias` [outputs] or null; both are copied.
std::unique_ptr<const Linear> make_linear(WeightFormat format, const float* weight, std::size_t outputs, std::size_t inputs,
                                          const float* bias = nullptr);

// Gate and up projections of a gated MLP, [outputs, inputs] each, as one linear whose result has `outputs` columns (kSwiGlu).
std::unique_ptr<const Linear> make_gate_up(WeightFormat format, const float* gate, const float* up, std::size_t outputs,
                                           std::size_t inputs);

}  // namespace tts::model::ops
