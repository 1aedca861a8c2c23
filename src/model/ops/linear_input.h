#pragma once
// Activations as the linears of one format read them.
//
// Whoever makes a row writes float32 to row(r) and then calls commit_row(r), which converts it (float32: nothing to do). Rows may be
// written by different workers, one row's pieces too; a row is committed once, when it is complete. A row's conversion depends on that
// row only. Nothing allocates after construction.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/aligned_buffer.h"
#include "ops/compute_pool.h"
#include "ops/quantize.h"
#include "ops/weight_format.h"

namespace tts::model::ops {

class LinearInput {
 public:
  LinearInput() = default;  // holds no rows
  // `rotated`: commit_row() of an int8 input puts the row, floats included, through ops/hadamard.h before it is rounded; for linears whose
  // weights were rotated alike. The other formats have no use for it and ignore it.
  LinearInput(WeightFormat format, std::size_t max_rows, std::size_t max_width, bool rotated = false);

  WeightFormat format() const noexcept { return format_; }
  std::size_t max_rows() const noexcept { return max_rows_; }
  std::size_t width() const noexcept { return width_; }
  void set_width(std::size_t width) noexcept;  // of the rows written from now on; at most max_width; forgets the rows

  float* row(std::size_t r) noexcept { return floats_.data() + r * width_; }  // row r + 1 follows without a gap
  const float* row(std::size_t r) const noexcept { return floats_.data() + r * width_; }
  void commit_row(std::size_t r) noexcept;
  void commit(ComputePool& pool, std::size_t rows);  // rows 0 .. rows - 1

  // --- For kernels: what commit_row() wrote. Rows follow each other without a gap; kReadable bytes behind the last may be read. ---

  static constexpr std::size_t kReadable = 64;
  const std::uint16_t* bfloats(std::size_t r) const noexcept { return codes<const std::uint16_t>() + r * width_; }
  const std::int8_t* bytes(std::size_t r) const noexcept { return codes<const std::int8_t>() + r * width_; }
  const QuantizedRow& quantized(std::size_t r) const noexcept { return quantized_[r]; }  // int8: what bytes(r) mean

  // For a linear that writes its result here. bfloat16: it rounds by itself.
  std::uint16_t* bfloats(std::size_t r) noexcept { return codes<std::uint16_t>() + r * width_; }

 private:
  template <class Code>
  Code* codes() const noexcept {
    return reinterpret_cast<Code*>(const_cast<float*>(codes_.data()));
  }

  WeightFormat format_ = WeightFormat::kFloat32;
  bool rotated_ = false;
  std::size_t max_rows_ = 0, max_width_ = 0, width_ = 0;
  AlignedBuffer floats_;
  AlignedBuffer codes_;                  // bfloat16 or signed bytes, seen through floats
  std::vector<QuantizedRow> quantized_;  // [row], int8 only
};

}  // namespace tts::model::ops
