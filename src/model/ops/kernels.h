#pragma once
// Row kernels on plain float32 memory: one call, one thread; callers cut the work over the pool.
// Every function treats rows independently and in a fixed order, so a row's bits never depend on its neighbours.

#include <cstddef>

namespace tts::model::ops {

// y = weight * x / sqrt(mean(x^2) + eps). x and y may be the same row.
void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* y);

// y = (x - mean) / sqrt(variance + eps) * weight + bias over n channels. x and y may be the same row.
void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* y);

// y += a * x
void axpy(float a, const float* x, std::size_t n, float* y);

// y *= a
void scale(float a, std::size_t n, float* y);

// sum_i exp(x[i] - highest); `highest` is the largest of x.
float sum_exp(const float* x, std::size_t n, float highest);

}  // namespace tts::model::ops
