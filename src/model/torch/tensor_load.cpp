#include "torch/tensor_load.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>

namespace tts::model {

at::Tensor to_tensor(std::span<const float> values, at::IntArrayRef shape, at::ScalarType type, c10::Device device) {
  const at::Tensor view = at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat);
  return view.to(at::TensorOptions().dtype(type).device(device), /*non_blocking=*/false, /*copy=*/true);
}

at::Tensor copy_to_host(const at::Tensor& values) {
  return values.to(values.options().device(c10::kCPU), /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous);
}

at::Tensor DenseTensors::operator()(const at::Tensor& x) const { return at::linear(x.to(weight.scalar_type()), weight, bias); }

}  // namespace tts::model
