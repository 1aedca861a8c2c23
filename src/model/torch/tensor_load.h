#pragma once
// From weight files to tensors on a device.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tts::model {

// A copy of the values; `type` is a floating-point type.
at::Tensor to_tensor(std::span<const float> values, at::IntArrayRef shape, at::ScalarType type, c10::Device device);

// y = x Wt + bias. x of any floating-point type is rounded to the weights' type, which is also the result's.
struct DenseTensors {
  at::Tensor weight;  // [outputs, inputs]
  at::Tensor bias;    // [outputs], or undefined

  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace tts::model
