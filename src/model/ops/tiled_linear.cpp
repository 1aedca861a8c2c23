#include "ops/tiled_linear.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "ops/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/tiled_linear.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/linear_finish-inl.h"
#include "ops/simd_math-inl.h"

#ifndef TTS_MODEL_OPS_TILED_LINEAR_ONCE
#define TTS_MODEL_OPS_TILED_LINEAR_ONCE
namespace tts::model::ops {

// Sums of one group on their way out.
struct FinishBlock {
  Finish finish;
  const std::uint32_t* sums;      // [row][kGroup]
  std::size_t rows, columns;      // columns: outputs of this group that exist
  const float *bias, *scales;     // [kGroup]; scales: int8, else null
  const QuantizedRow* quantized;  // int8: of the first row
  std::size_t quantized_step;
  float* y;  // first output of the first row, or null
  std::uint16_t* y_bfloat16;
  std::size_t y_stride;
  const std::byte* fetch;  // what the next block reads: kFetchLines lines a row are brought near meanwhile; or null
};

constexpr std::size_t kFetchLines = 2;

}  // namespace tts::model::ops
#endif

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;

// Values of one row from int8 sums.
class Dequantizer {
 public:
  HWY_INLINE explicit Dequantizer(const QuantizedRow& row)
      : excess_(hn::Set(IntTag(), kWeightOffset * row.sum)), scale_(hn::Set(FloatTag(), row.scale)) {}

  HWY_INLINE FloatVec operator()(const std::uint32_t* sums, const float* scales, const float* bias) const {
    const FloatTag d;
    const auto sum = hn::Sub(hn::Load(IntTag(), reinterpret_cast<const std::int32_t*>(sums)), excess_);
    return hn::Add(hn::Mul(hn::Mul(hn::ConvertTo(d, sum), scale_), hn::LoadU(d, scales)), hn::LoadU(d, bias));
  }

 private:
  hn::Vec<IntTag> excess_;
  FloatVec scale_;
};

template <Finish kFinish, class Row>
HWY_INLINE void finish_sums(const FinishBlock& block, std::size_t r, std::size_t columns, const Row& row) {
  const FloatTag d;
  const std::uint32_t* const sums = block.sums + r * kGroup;
  if (block.scales == nullptr) {
    const auto* const floats = reinterpret_cast<const float*>(sums);
    finish_row<kFinish>(
        columns, [&](std::size_t c) { return hn::Add(hn::Load(d, floats + c), hn::LoadU(d, block.bias + c)); }, row);
  } else {
    const Dequantizer value(block.quantized[r * block.quantized_step]);
    finish_row<kFinish>(
        columns, [&](std::size_t c) { return value(sums + c, block.scales + c, block.bias + c); }, row);
  }
}

template <Finish kFinish>
HWY_INLINE void finish_rows(const FinishBlock& block, std::size_t columns) {
  const std::byte* fetch = block.fetch;
  for (std::size_t r = 0; r < block.rows; ++r) {
    if (fetch != nullptr) {
      for (std::size_t line = 0; line < kFetchLines; ++line) hwy::Prefetch(fetch + line * 64);
      fetch += kFetchLines * 64;
    }
    if constexpr (kFinish != Finish::kAdd) {
      if (block.y_bfloat16 != nullptr) {
        finish_sums<kFinish>(block, r, columns, BfloatRow{block.y_bfloat16 + r * block.y_stride});
        continue;
      }
    }
    finish_sums<kFinish>(block, r, columns, CoarseFloatRow{{block.y + r * block.y_stride}});
  }
}

template <Finish kFinish>
HWY_INLINE void finish_columns(const FinishBlock& block) {
  constexpr std::size_t kWhole = kFinish == Finish::kSwiGlu ? kPanel : kGroup;
  if (block.columns == kWhole) {
    finish_rows<kFinish>(block, kWhole);
  } else {
    finish_rows<kFinish>(block, block.columns);
  }
}

void finish_block(const FinishBlock& block) {
  switch (block.finish) {
    case Finish::kStore: return finish_columns<Finish::kStore>(block);
    case Finish::kGelu: return finish_columns<Finish::kGelu>(block);
    case Finish::kSwiGlu: return finish_columns<Finish::kSwiGlu>(block);
    case Finish::kAdd: return finish_columns<Finish::kAdd>(block);
  }
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(finish_block);

namespace {

constexpr std::size_t kMaxGroups = 4;                  // of one block of work
constexpr std::size_t kBlockWeightBytes = 200 * 1024;  // of one block of work, when there is a choice
constexpr std::size_t kFetchAhead = 1024;

// Rows of one block of work: as many as leave room for the weights in a core's second cache.
constexpr std::size_t kInputBytes = 768 * 1024;

std::size_t code_bytes(WeightFormat format) { return format == WeightFormat::kInt8 ? sizeof(std::int8_t) : sizeof(std::uint16_t); }

constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

Finish finish_of(Activation activation) {
  switch (activation) {
    case Activation::kNone: return Finish::kStore;
    case Activation::kGelu: return Finish::kGelu;
    case Activation::kSwiGlu: return Finish::kSwiGlu;
  }
  return Finish::kStore;
}

}  // namespace

struct TiledLinear::Output {
  Finish finish;
  float* floats;
  std::uint16_t* bfloats;
  std::size_t stride;
};

TiledLinear::TiledLinear(WeightFormat format, const float* weight, std::size_t outputs, std::size_t inputs, const float* bias)
    : format_(format),
      gated_(false),
      outputs_(outputs),
      inputs_(inputs),
      groups_(divide_up(outputs, kGroup)),
      depth_(divide_up(inputs * code_bytes(format), kBlockBytes)),
      weight_(groups_ * depth_ * 2 * kTileBytes),
      bias_(groups_ * kGroup),
      scales_(format == WeightFormat::kInt8 ? groups_ * kGroup : 0) {
  pack(weight, 0, 1);
  if (bias != nullptr) std::copy_n(bias, outputs, bias_.data());
}

TiledLinear::TiledLinear(WeightFormat format, const float* gate, const float* up, std::size_t outputs, std::size_t inputs)
    : format_(format),
      gated_(true),
      outputs_(outputs),
      inputs_(inputs),
      groups_(divide_up(outputs, kPanel)),
      depth_(divide_up(inputs * code_bytes(format), kBlockBytes)),
      weight_(groups_ * depth_ * 2 * kTileBytes),
      bias_(groups_ * kGroup),
      scales_(format == WeightFormat::kInt8 ? groups_ * kGroup : 0) {
  pack(gate, 0, 2);
  pack(up, 1, 2);
}

// Column n of `weight` goes to panel first_panel + n / kPanel * panel_step.
void TiledLinear::pack(const float* weight, std::size_t first_panel, std::size_t panel_step) {
  constexpr std::size_t kLineBytes = sizeof(std::uint32_t);  // of one column
  const std::size_t row_bytes = inputs_ * code_bytes(format_);
  std::vector<std::uint8_t> codes(divide_up(row_bytes, kLineBytes) * kLineBytes);  // of one column
  std::vector<std::int8_t> signed_codes(inputs_);
  std::vector<std::uint16_t> bfloats(inputs_);
  std::byte* const tiles = weight_.data();
  for (std::size_t n = 0; n < outputs_; ++n) {
    const std::size_t panel = first_panel + n / kPanel * panel_step, column = n % kPanel;
    if (format_ == WeightFormat::kInt8) {
      scales_[panel * kPanel + column] = quantize(weight + n * inputs_, inputs_, signed_codes.data()).scale;
      for (std::size_t k = 0; k < inputs_; ++k) codes[k] = static_cast<std::uint8_t>(signed_codes[k] + kWeightOffset);
    } else {
      to_bfloat16(weight + n * inputs_, inputs_, bfloats.data());
      std::memcpy(codes.data(), bfloats.data(), row_bytes);
    }
    std::byte* const to = tiles + (panel / 2 * depth_ * 2 + panel % 2) * kTileBytes + column * kLineBytes;
    for (std::size_t line = 0; line * kLineBytes < row_bytes; ++line) {
      std::memcpy(to + line / kPanel * 2 * kTileBytes + line % kPanel * kBlockBytes, codes.data() + line * kLineBytes, kLineBytes);
    }
  }
}

// Two blocks a worker at least, so that a worker that falls behind can be helped out.
std::size_t TiledLinear::groups_per_block_for(const ComputePool& pool) const noexcept {
  const std::size_t most = std::clamp<std::size_t>(kBlockWeightBytes / (depth_ * 2 * kTileBytes), 1, kMaxGroups);
  return std::clamp<std::size_t>(groups_ / (2 * std::size_t{pool.workers()}), 1, most);
}

void TiledLinear::run(ComputePool& pool, const InputRows& x, const Output& y) const {
  if (x.rows == 0) return;
  const std::size_t width = x.input.width();
  assert(x.input.format() == format_ && inputs_ % width == 0);
  assert(format_ != WeightFormat::kInt8 || inputs_ == width);
  assert(gated_ == (y.finish == Finish::kSwiGlu));
  const std::size_t size = code_bytes(format_), row_bytes = inputs_ * size, stride = x.step * width * size;
  const auto* const first_x = format_ == WeightFormat::kInt8 ? reinterpret_cast<const std::byte*>(x.input.bytes(x.first))
                                                             : reinterpret_cast<const std::byte*>(x.input.bfloats(x.first));
  // What follows a row in memory meets zero weights: harmless as an integer, not as a NaN.
  const std::size_t body_bytes = (depth_ - 1) * kBlockBytes;
  const bool copy_last = format_ == WeightFormat::kBfloat16 && row_bytes % kBlockBytes != 0;
  const TileKernel kernel = tile_kernel(format_);
  const auto finish = HWY_DYNAMIC_DISPATCH(finish_block);

  const std::size_t groups_per_block = groups_per_block_for(pool);
  const std::size_t column_blocks = divide_up(groups_, groups_per_block);
  const std::size_t rows_per_block = std::max(kTileRows, kInputBytes / row_bytes / kTileRows * kTileRows);
  const std::size_t row_blocks = divide_up(x.rows, rows_per_block);
  pool.run(column_blocks * row_blocks, [&](std::size_t index, std::uint32_t) {
    alignas(64) std::uint32_t sums[kMaxGroups * kTileRows * kGroup];
    alignas(64) std::byte last[kTileRows * kBlockBytes];
    const std::size_t first_group = index / row_blocks * groups_per_block;
    const std::size_t groups = std::min(groups_per_block, groups_ - first_group);
    const std::size_t row_begin = index % row_blocks * rows_per_block, row_end = std::min(x.rows, row_begin + rows_per_block);
    const std::byte* const weight = weight_.data() + first_group * depth_ * 2 * kTileBytes;
    const std::size_t weight_bytes = groups * depth_ * 2 * kTileBytes;
    for (std::size_t row = row_begin; row < row_end; row += kTileRows) {
      const std::size_t rows = std::min(kTileRows, row_end - row);
      const std::byte* const rows_x = first_x + row * stride;
      if (copy_last) {
        for (std::size_t r = 0; r < rows; ++r) {
          std::byte* const to = last + r * kBlockBytes;
          std::memcpy(to, rows_x + r * stride + body_bytes, row_bytes - body_bytes);
          std::memset(to + (row_bytes - body_bytes), 0, kBlockBytes - (row_bytes - body_bytes));
        }
      }
      kernel.multiply({.weight = weight,
                       .groups = groups,
                       .depth = depth_,
                       .x = rows_x,
                       .x_stride = stride,
                       .x_last = copy_last ? last : rows_x + body_bytes,
                       .x_last_stride = copy_last ? kBlockBytes : stride,
                       .rows = rows,
                       .sums = sums,
                       .fetch = row == row_begin ? weight + kFetchAhead : nullptr});
      // The weights behind these are what this worker reads next, unless more rows take these again.
      const std::byte* fetch = row_end == x.rows && row + rows == row_end ? weight + weight_bytes + kFetchAhead : nullptr;
      for (std::size_t group = 0; group < groups; ++group) {
        const std::size_t column = (first_group + group) * columns_per_group();
        const std::size_t y_offset = row * y.stride + column;
        finish({.finish = y.finish,
                .sums = sums + group * kTileRows * kGroup,
                .rows = rows,
                .columns = std::min(columns_per_group(), outputs_ - column),
                .bias = bias_.data() + (first_group + group) * kGroup,
                .scales = scales_.empty() ? nullptr : scales_.data() + (first_group + group) * kGroup,
                .quantized = scales_.empty() ? nullptr : &x.input.quantized(x.first + row * x.step),
                .quantized_step = x.step,
                .y = y.floats == nullptr ? nullptr : y.floats + y_offset,
                .y_bfloat16 = y.bfloats == nullptr ? nullptr : y.bfloats + y_offset,
                .y_stride = y.stride,
                .fetch = fetch});
        if (fetch != nullptr) fetch += rows * kFetchLines * kBlockBytes;
      }
    }
  });
}

void TiledLinear::forward(ComputePool& pool, const InputRows& x, const MutableRows& y, Activation activation) const {
  run(pool, x, {.finish = finish_of(activation), .floats = y.data, .bfloats = nullptr, .stride = y.stride});
}

void TiledLinear::forward(ComputePool& pool, const InputRows& x, LinearInput& y, Activation activation) const {
  assert(y.format() == format_ && &y != &x.input && x.rows <= y.max_rows());
  y.set_width(outputs_);
  if (format_ == WeightFormat::kBfloat16) {
    run(pool, x, {.finish = finish_of(activation), .floats = nullptr, .bfloats = y.bfloats(0), .stride = outputs_});
  } else {  // a row's step is known when all of it is there
    run(pool, x, {.finish = finish_of(activation), .floats = y.row(0), .bfloats = nullptr, .stride = outputs_});
    y.commit(pool, x.rows);
  }
}

void TiledLinear::forward_add(ComputePool& pool, const InputRows& x, const MutableRows& y) const {
  run(pool, x, {.finish = Finish::kAdd, .floats = y.data, .bfloats = nullptr, .stride = y.stride});
}

}  // namespace tts::model::ops
#endif  // HWY_ONCE
