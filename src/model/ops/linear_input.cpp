#include "ops/linear_input.h"

#include <algorithm>
#include <cassert>

#include "ops/hadamard.h"
#include "ops/quantize.h"

namespace tts::model::ops {
namespace {

constexpr std::size_t kValuesPerBlock = 4096;  // fewer are not worth handing to another worker

std::size_t code_size(WeightFormat format) {
  switch (format) {
    case WeightFormat::kFloat32: return 0;
    case WeightFormat::kBfloat16: return sizeof(std::uint16_t);
    case WeightFormat::kInt8: return sizeof(std::int8_t);
  }
  return 0;
}

// AlignedBuffer counts floats.
std::size_t floats_for(std::size_t bytes) { return (bytes + sizeof(float) - 1) / sizeof(float); }

}  // namespace

LinearInput::LinearInput(WeightFormat format, std::size_t max_rows, std::size_t max_width, bool rotated)
    : format_(format),
      rotated_(rotated),
      max_rows_(max_rows),
      max_width_(max_width),
      width_(max_width),
      floats_(max_rows * max_width),
      codes_(format == WeightFormat::kFloat32 ? 0 : floats_for(max_rows * max_width * code_size(format) + kReadable)),
      quantized_(format == WeightFormat::kInt8 ? max_rows : 0) {}

void LinearInput::set_width(std::size_t width) noexcept {
  assert(width <= max_width_);
  width_ = width;
}

void LinearInput::commit_row(std::size_t r) noexcept {
  assert(r < max_rows_);
  switch (format_) {
    case WeightFormat::kFloat32: return;
    case WeightFormat::kBfloat16: return to_bfloat16(row(r), width_, bfloats(r));
    case WeightFormat::kInt8:
      if (rotated_) hadamard(row(r), width_);
      quantized_[r] = quantize(row(r), width_, codes<std::int8_t>() + r * width_);
      return;
  }
}

void LinearInput::commit(ComputePool& pool, std::size_t rows) {
  if (format_ == WeightFormat::kFloat32) return;
  const std::size_t rows_per_block = std::max<std::size_t>(1, kValuesPerBlock / std::max<std::size_t>(1, width_));
  pool.run((rows + rows_per_block - 1) / rows_per_block, [&](std::size_t block, std::uint32_t) {
    const std::size_t end = std::min(rows, (block + 1) * rows_per_block);
    for (std::size_t r = block * rows_per_block; r < end; ++r) commit_row(r);
  });
}

}  // namespace tts::model::ops
