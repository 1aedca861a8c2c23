#include "embedding_table.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ops/kernels.h"
#include "ops/quantize.h"

namespace tts::model {

EmbeddingTable::EmbeddingTable(std::vector<float> values, std::size_t width, ops::WeightFormat format) : width_(width) {
  if (format == ops::WeightFormat::kFloat32) {
    wide_ = std::move(values);
  } else {
    narrow_.resize(values.size());
    ops::to_bfloat16(values.data(), values.size(), narrow_.data());
  }
}

void EmbeddingTable::copy_row(std::size_t row, std::span<float> out) const {
  assert(out.size() == width_);
  if (narrow_.empty()) {
    std::copy_n(wide_.data() + row * width_, width_, out.data());
  } else {
    std::transform(narrow_.data() + row * width_, narrow_.data() + (row + 1) * width_, out.data(), ops::from_bfloat16);
  }
}

void EmbeddingTable::add_row(std::size_t row, std::span<float> out) const {
  assert(out.size() == width_);
  if (narrow_.empty()) {
    ops::axpy(1.0F, wide_.data() + row * width_, width_, out.data());
  } else {
    const std::uint16_t* const values = narrow_.data() + row * width_;
    for (std::size_t i = 0; i < width_; ++i) out[i] += ops::from_bfloat16(values[i]);
  }
}

}  // namespace tts::model
