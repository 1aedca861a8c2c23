#include "ops/linear.h"

#include "ops/packed_linear.h"
#include "ops/plain_linear.h"

namespace tts::model::ops {

std::unique_ptr<const Linear> make_linear(WeightFormat format, const float* weight, std::size_t outputs, std::size_t inputs,
                                          const float* bias) {
  if (format == WeightFormat::kFloat32) return std::make_unique<PackedLinear>(weight, outputs, inputs, bias);
  return std::make_unique<PlainLinear>(format, weight, outputs, inputs, bias);
}

std::unique_ptr<const Linear> make_gate_up(WeightFormat format, const float* gate, const float* up, std::size_t outputs,
                                           std::size_t inputs) {
  if (format == WeightFormat::kFloat32) return std::make_unique<PackedLinear>(gate, up, outputs, inputs);
  return std::make_unique<PlainLinear>(format, gate, up, outputs, inputs);
}

}  // namespace tts::model::ops
