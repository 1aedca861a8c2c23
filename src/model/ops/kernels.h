#pragma once
// Row kernels on plain float32 memory: one call, one thread; callers cut the work over the pool.
// Every function treats rows independently and in a fixed order, so a row's bits never depend on its neighbours.

#include <cstddef>

namespace tts::model::ops {

// y = weight * x / sqrt(mean(x^2) + eps). x and y may be the same row.
void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* y);

// y = (x - mean) / sqrt(variance + eps) * weight + bias over n channels. x and y may be the same row.
void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* y);

// y = x * Phi(x), exact (erf) form; absolute error below 1e-6. x and y may be the same.
void gelu(const float* x, std::size_t n, float* y);

// y += a * x
void axpy(float a, const float* x, std::size_t n, float* y);

// y *= a
void scale(float a, std::size_t n, float* y);

// y[i] *= x[i]
void multiply(const float* x, std::size_t n, float* y);

float max_value(const float* x, std::size_t n);  // n > 0
float sum(const float* x, std::size_t n);

// sum_i exp(x[i] - highest); `highest` is the largest of x.
float sum_exp(const float* x, std::size_t n, float highest);

// Depthwise convolution of width 7 over time: y[r][c] = bias[c] + sum_i weight[i][c] * rows[r + i * dilation][c], so output row r
// lies under input row r + 3 * dilation. `rows` are count + 6 * dilation pointers to rows of `channels` values; weight is [7][channels];
// rows of y lie y_stride floats apart and overlap no input.
void depthwise_conv7(const float* const* rows, std::size_t count, std::size_t channels, std::size_t dilation, const float* weight,
                     const float* bias, float* y, std::size_t y_stride);

}  // namespace tts::model::ops
