#pragma once
// Depthwise convolution of width 7 over time and LayerNorm over channels, on [time, channel] rows: what a ConvNeXt block begins with.

#include <cstddef>
#include <cstdint>

namespace tts::model::ops {

struct DepthwiseNorm {
  const float *weight, *bias;            // [7][channels], [channels]
  const float *norm_weight, *norm_bias;  // [channels]
  std::size_t channels, dilation;
  float eps;
};

// y[r] = layer_norm(bias + sum_i weight[i] * rows[r + i * dilation]): output row r lies under input row r + 3 * dilation. `rows` are
// count + 6 * dilation pointers to rows of `channels` values; rows of y lie y_stride floats apart and overlap no input. With `rounded` the
// result goes there in bfloat16, in rows of `channels` that follow each other, and y is scratch memory. A row's bits depend on its
// seven input rows only.
void depthwise_norm(const DepthwiseNorm& layer, const float* const* rows, std::size_t count, float* y, std::size_t y_stride,
                    std::uint16_t* rounded = nullptr);

}  // namespace tts::model::ops
