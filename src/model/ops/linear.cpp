#include "ops/linear.h"

#include "ops/float32_linear.h"
#include "ops/tiled_linear.h"

namespace tts::model::ops {

std::unique_ptr<const Linear> make_linear(WeightFormat format, const float* weight, std::size_t outputs, std::size_t inputs,
                                          const float* bias) {
  if (format == WeightFormat::kFloat32) return std::make_unique<Float32Linear>(weight, outputs, inputs, bias);
  return std::make_unique<TiledLinear>(format, weight, outputs, inputs, bias);
}

std::unique_ptr<const Linear> make_gate_up(WeightFormat format, const float* gate, const float* up, std::size_t outputs,
                                           std::size_t inputs) {
  if (format == WeightFormat::kFloat32) return std::make_unique<Float32Linear>(gate, up, outputs, inputs);
  return std::make_unique<TiledLinear>(format, gate, up, outputs, inputs);
}

}  // namespace tts::model::ops
