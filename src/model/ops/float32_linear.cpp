#include "ops/float32_linear.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <iterator>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/float32_linear.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/linear_finish-inl.h"
#include "ops/simd_math-inl.h"

#ifndef TTS_MODEL_OPS_FLOAT32_LINEAR_ONCE
#define TTS_MODEL_OPS_FLOAT32_LINEAR_ONCE
namespace tts::model::ops {

constexpr std::size_t kPanelsPerBlock = 4;  // 64 columns: the widest tile a kernel computes at once

// One block of work: `panels` neighbouring panels times some rows.
struct LinearBlock {
  const float* weight;  // first panel
  const float* bias;    // of the first panel
  std::size_t inputs, panels;
  const float* x;
  std::size_t x_stride, rows;
  float* y;  // first output column of the block
  std::size_t y_stride;
  std::size_t columns;  // outputs of this block that exist; the last panel may be padded
};

}  // namespace tts::model::ops
#endif

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

constexpr std::size_t kVectors = kPanel / kLanes;  // per panel
constexpr std::size_t kTile = kPanelsPerBlock * kPanel;
// Accumulators of one kernel: they and the operands fill the register file (32 registers with AVX-512, else 16).
constexpr std::size_t kMaxSums = HWY_MAX(kVectors, kLanes == 16 ? 24 : 12);
// Rows of one kernel. With AVX-512 two panels wide: one panel and more rows measured slower, the loads then limit.
constexpr std::size_t kMaxRows = kVectors == 1 ? kMaxSums / 2 : kMaxSums / kVectors;
// How far ahead weights are fetched: the tall kernels use a line too slowly for the processor to run ahead by itself.
constexpr std::size_t kPrefetch = 16 * kPanel;

constexpr bool fits(std::size_t rows, std::size_t panels) { return rows * panels * kVectors <= kMaxSums; }

// The fewer rows, the more panels at once: products per load of a weight stay high, and the weights are still read once.
constexpr std::size_t panels_at_once(std::size_t rows) { return fits(rows, 4) ? 4 : fits(rows, 2) ? 2 : 1; }

// tile[r][0..] = x[r] . panels, rows kTile apart. Each output is one chain of multiply-adds over ascending k.
template <std::size_t kRows, std::size_t kPanels>
void multiply_tile(const float* HWY_RESTRICT weight, std::size_t inputs, const float* HWY_RESTRICT x, std::size_t x_stride,
                   float* HWY_RESTRICT tile) {
  const FloatTag d;
  FloatVec sum[kRows][kPanels * kVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kPanels * kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  const std::size_t panel_size = inputs * kPanel;
  // Four rows share a pointer: with one for each, the taller kernels would run out of address registers.
  constexpr std::size_t kGroup = 4;
  const float* group[(kRows + kGroup - 1) / kGroup];
  for (std::size_t g = 0; g < std::size(group); ++g) group[g] = x + g * kGroup * x_stride;
  for (std::size_t k = 0; k < inputs; ++k) {
    FloatVec w[kPanels * kVectors];
    for (std::size_t v = 0; v < kPanels * kVectors; ++v) {
      w[v] = hn::Load(d, weight + (v / kVectors) * panel_size + (v % kVectors) * kLanes);
    }
    for (std::size_t p = 0; p < kPanels; ++p) hwy::Prefetch(weight + p * panel_size + kPrefetch);
    weight += kPanel;
    for (std::size_t r = 0; r < kRows; ++r) {
      const FloatVec value = hn::Set(d, group[r / kGroup][r % kGroup * x_stride]);
      for (std::size_t v = 0; v < kPanels * kVectors; ++v) sum[r][v] = hn::MulAdd(value, w[v], sum[r][v]);
    }
    for (const float*& row : group) ++row;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kPanels * kVectors; ++v) hn::Store(sum[r][v], d, tile + r * kTile + v * kLanes);
  }
}

using TileKernel = void (*)(const float*, std::size_t, const float*, std::size_t, float*);

template <std::size_t kRows, std::size_t kPanels>
constexpr TileKernel tile_kernel() {
  if constexpr (kPanels <= panels_at_once(kRows)) {
    return &multiply_tile<kRows, kPanels>;
  } else {
    return nullptr;
  }
}

template <std::size_t... kIndex>
constexpr auto tile_kernels(std::index_sequence<kIndex...>) {
  return std::array<TileKernel, sizeof...(kIndex)>{tile_kernel<kIndex / kPanelsPerBlock + 1, kIndex % kPanelsPerBlock + 1>()...};
}
constexpr auto kTileKernels = tile_kernels(std::make_index_sequence<kMaxRows * kPanelsPerBlock>());  // [rows - 1][panels - 1]

template <Finish kFinish>
void run_block(const LinearBlock& block) {
  HWY_ALIGN float tile[kMaxRows * kTile];
  const std::size_t chunks = (block.rows + kMaxRows - 1) / kMaxRows;
  std::size_t row = 0;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t rows = block.rows / chunks + (chunk < block.rows % chunks ? 1 : 0);  // even, so that no chunk is thin
    const float* x = block.x + row * block.x_stride;
    for (std::size_t panel = 0; panel < block.panels; panel += panels_at_once(rows)) {
      const std::size_t panels = HWY_MIN(panels_at_once(rows), block.panels - panel);
      kTileKernels[(rows - 1) * kPanelsPerBlock + panels - 1](block.weight + panel * kPanel * block.inputs, block.inputs, x, block.x_stride,
                                                              tile + panel * kPanel);
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const float* const sums = tile + r * kTile;
      const auto value = [&](std::size_t c) { return hn::Add(hn::Load(FloatTag(), sums + c), hn::Load(FloatTag(), block.bias + c)); };
      finish_row<kFinish>(block.columns, value, FloatRow{block.y + (row + r) * block.y_stride});
    }
    row += rows;
  }
}

void linear_store(const LinearBlock& block) { run_block<Finish::kStore>(block); }
void linear_gelu(const LinearBlock& block) { run_block<Finish::kGelu>(block); }
void linear_swiglu(const LinearBlock& block) { run_block<Finish::kSwiGlu>(block); }
void linear_add(const LinearBlock& block) { run_block<Finish::kAdd>(block); }

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(linear_store);
HWY_EXPORT(linear_gelu);
HWY_EXPORT(linear_swiglu);
HWY_EXPORT(linear_add);

namespace {

// Rows of one block when there are many: enough to reuse a panel from cache, few enough to share narrow layers among workers.
constexpr std::size_t kRowsPerBlock = 48;

std::size_t panels_for(std::size_t columns) { return (columns + kPanel - 1) / kPanel; }

}  // namespace

Float32Linear::Float32Linear(const float* weight, std::size_t outputs, std::size_t inputs, const float* bias)
    : outputs_(outputs),
      inputs_(inputs),
      panels_(panels_for(outputs)),
      weight_(panels_ * kPanel * inputs * sizeof(float)),
      bias_(panels_ * kPanel) {
  pack(weight, 0, 1);
  if (bias != nullptr) std::memcpy(bias_.data(), bias, outputs * sizeof(float));
}

Float32Linear::Float32Linear(const float* gate, const float* up, std::size_t outputs, std::size_t inputs)
    : outputs_(outputs),
      inputs_(inputs),
      panels_(2 * panels_for(outputs)),
      gated_(true),
      weight_(panels_ * kPanel * inputs * sizeof(float)),
      bias_(panels_ * kPanel) {
  pack(gate, 0, 2);
  pack(up, 1, 2);
}

void Float32Linear::pack(const float* weight, std::size_t first_panel, std::size_t panel_step) {
  for (std::size_t n = 0; n < outputs_; ++n) {
    float* column = reinterpret_cast<float*>(weight_.data()) + (first_panel + n / kPanel * panel_step) * kPanel * inputs_ + n % kPanel;
    for (std::size_t k = 0; k < inputs_; ++k) column[k * kPanel] = weight[n * inputs_ + k];
  }
}

template <class Kernel>
void Float32Linear::run(ComputePool& pool, const InputRows& x, const MutableRows& y, Kernel kernel) const {
  if (x.rows == 0) return;
  assert(x.input.format() == WeightFormat::kFloat32 && inputs_ % x.input.width() == 0);
  const float* const first_x = x.input.row(x.first);
  const std::size_t x_stride = x.step * x.input.width();
  // Two blocks a worker at least, so that a worker that falls behind can be helped out; whole gate/up pairs.
  const std::size_t unit = gated_ ? 2 : 1;
  const std::size_t units = panels_ / unit;
  const std::size_t units_per_block = std::clamp<std::size_t>(units / (2 * std::size_t{pool.workers()}), 1, kPanelsPerBlock / unit);
  const std::size_t column_blocks = (units + units_per_block - 1) / units_per_block;
  const std::size_t row_blocks = (x.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  pool.run(column_blocks * row_blocks, [&](std::size_t index, std::uint32_t) {
    const std::size_t first_unit = index / row_blocks * units_per_block;
    const std::size_t first_row = index % row_blocks * kRowsPerBlock;
    const std::size_t block_units = std::min(units_per_block, units - first_unit);
    const std::size_t first_column = first_unit * kPanel;
    kernel(LinearBlock{.weight = reinterpret_cast<const float*>(weight_.data()) + first_unit * unit * kPanel * inputs_,
                       .bias = bias_.data() + first_unit * unit * kPanel,
                       .inputs = inputs_,
                       .panels = block_units * unit,
                       .x = first_x + first_row * x_stride,
                       .x_stride = x_stride,
                       .rows = std::min(kRowsPerBlock, x.rows - first_row),
                       .y = y.data + first_row * y.stride + first_column,
                       .y_stride = y.stride,
                       .columns = std::min(block_units * kPanel, outputs_ - first_column)});
  });
}

void Float32Linear::forward(ComputePool& pool, const InputRows& x, const MutableRows& y, Activation activation) const {
  assert(gated_ == (activation == Activation::kSwiGlu));
  switch (activation) {
    case Activation::kNone: return run(pool, x, y, HWY_DYNAMIC_DISPATCH(linear_store));
    case Activation::kGelu: return run(pool, x, y, HWY_DYNAMIC_DISPATCH(linear_gelu));
    case Activation::kSwiGlu: return run(pool, x, y, HWY_DYNAMIC_DISPATCH(linear_swiglu));
  }
}

void Float32Linear::forward(ComputePool& pool, const InputRows& x, LinearInput& y, Activation activation) const {
  assert(y.format() == WeightFormat::kFloat32 && &y != &x.input && x.rows <= y.max_rows());
  y.set_width(outputs_);
  forward(pool, x, MutableRows{y.row(0), outputs_}, activation);
}

void Float32Linear::forward_add(ComputePool& pool, const InputRows& x, const MutableRows& y) const {
  assert(!gated_);
  run(pool, x, y, HWY_DYNAMIC_DISPATCH(linear_add));
}

}  // namespace tts::model::ops
#endif  // HWY_ONCE
