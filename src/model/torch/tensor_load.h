#pragma once
// From host memory to tensors on a device, and back.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tts::model {

// A copy of the values; `type` is a floating-point type.
at::Tensor to_tensor(std::span<const float> values, at::IntArrayRef shape, at::ScalarType type, c10::Device device);

// The same values in host memory of their own, which the host need not wait for any more.
at::Tensor copy_to_host(const at::Tensor& values);

// Of one index of the first dimension.
inline std::size_t row_bytes(const at::Tensor& tensor) { return tensor.nbytes() / static_cast<std::size_t>(tensor.size(0)); }

// y = x Wt + bias. x of any floating-point type is rounded to the weights' type, which is also the result's.
struct DenseTensors {
  at::Tensor weight;  // [outputs, inputs]
  at::Tensor bias;    // [outputs], or undefined

  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace tts::model
