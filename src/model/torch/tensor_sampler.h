#pragma once
// Sampler on tensors: many rows at once, fixed shapes, nothing read back, so that it can be part of recorded work. The same filters
// and tie rules as sampler.h, and given the same noise the same tokens.

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tts::model {

inline constexpr std::int64_t kBrokenToken = -1;  // a logit was NaN or infinite

// int64 and float32 but for the noise. Ranges as in SampleRequest.
struct TensorSampleRequest {
  at::Tensor logits;              // [rows, codebooks, vocabulary]
  at::Tensor noise;               // the same shape, float64: Exp(1) draws
  at::Tensor temperature;         // [rows, codebooks]
  at::Tensor repetition_penalty;  // [rows]
  at::Tensor top_p;               // [rows]
  at::Tensor top_k;               // [rows]
  at::Tensor forbidden;           // [rows]; a token, or -1
  at::Tensor greedy;              // [rows], bool
  at::Tensor recent;              // [rows, codebooks, window]
  at::Tensor recent_count;        // [rows]; entries of `recent` that hold a token, from the front
};

// [rows, codebooks]
at::Tensor sample(const TensorSampleRequest& request);

}  // namespace tts::model
