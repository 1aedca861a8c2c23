#pragma once
// y = epilogue(x Wt + bias) over packed weights: the one interface behind which a number format and an instruction set hide.
//
// Contract of every implementation: the bits of an output row depend on that input row only: not on the other rows, their
// number, the number of workers or how the work was cut.
//
// float32: one chain of multiply-adds over ascending k an output. bfloat16: weights and activations rounded to nearest even, float32
// sums in a fixed order. int8: weights symmetric per output channel, activations symmetric per row, exact int32 sums.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ops/compute_pool.h"
#include "ops/linear_input.h"
#include "ops/weight_format.h"

namespace tts::model::ops {

enum class Activation : std::uint8_t {
  kNone,
  kGelu,    // exact (erf) form
  kSwiGlu,  // only with weights made by make_gate_up(): y[j] = silu(gate[j]) * up[j]
};

// The x of a product. Its row r is the input rows first + r * step .. + span - 1 laid end to end, where span = inputs() / input.width():
// span 1 is a plain matrix, span 3 and step 1 a convolution of width 3 over [time, channel] data. int8 takes span 1 only.
struct InputRows {
  const LinearInput& input;
  std::size_t rows = 0, first = 0, step = 1;
};

struct MutableRows {  // `stride` floats apart
  float* data = nullptr;
  std::size_t stride = 0;
};

// Immutable. Calls run on the pool and never allocate. x (and a y that is an input) have the linear's own format and are not written
// meanwhile; y is not x.
class Linear {
 public:
  virtual ~Linear() = default;
  virtual WeightFormat format() const noexcept = 0;
  virtual std::size_t inputs() const noexcept = 0;
  virtual std::size_t outputs() const noexcept = 0;
  virtual std::size_t weight_bytes() const noexcept = 0;  // read by one pass over the weights

  virtual void forward(ComputePool& pool, const InputRows& x, const MutableRows& y, Activation activation = Activation::kNone) const = 0;

  // The same into rows 0 .. x.rows - 1 of another input, committed; sets its width to outputs(). Only a float32 y has its floats
  // (LinearInput::row) written: the other formats may go straight to what the next product reads.
  virtual void forward(ComputePool& pool, const InputRows& x, LinearInput& y, Activation activation = Activation::kNone) const = 0;

  // y += x Wt + bias: the residual form.
  virtual void forward_add(ComputePool& pool, const InputRows& x, const MutableRows& y) const = 0;
};

// `weight` is row-major [outputs, inputs], `bias` [outputs] or null; both are copied.
std::unique_ptr<const Linear> make_linear(WeightFormat format, const float* weight, std::size_t outputs, std::size_t inputs,
                                          const float* bias = nullptr);

// Gate and up projections of a gated MLP, [outputs, inputs] each, as one linear whose result has `outputs` columns (kSwiGlu).
std::unique_ptr<const Linear> make_gate_up(WeightFormat format, const float* gate, const float* up, std::size_t outputs,
                                           std::size_t inputs);

}  // namespace tts::model::ops
