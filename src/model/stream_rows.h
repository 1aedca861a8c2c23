#pragma once
// The activations of several streams on their way through convolution layers, and what each stream remembers between pushes.
//
// A centred convolution needs `pad` rows on each side. A stream keeps the last 2 * pad input rows of every such layer, so that
// new rows can be computed the moment their right neighbours arrive. As in the whole-utterance graph, each layer sees zero rows
// of its own before the first and after the last row.
//
// Beside its final rows a stream may carry provisional ones: those that still lack right neighbours, computed as if the utterance
// ended here. They go through the layers in the same pass and leave no trace in the stream's memory.

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "ops/aligned_buffer.h"
#include "ops/compute_pool.h"
#include "ops/linear.h"
#include "ops/linear_input.h"
#include "sound_linear.h"

namespace tts::model {

// The context one layer keeps for a stream.
struct ContextSpec {
  std::size_t pad = 0, width = 0;  // rows on each side, channels
};

// One stream's memory for one network: a context for each of its layers that looks sideways. Nothing needs clearing between
// utterances, because a layer never asks for a row before the first; pages that no stream used take no memory.
class StreamState {
 public:
  // The last 2 * pad input rows of a layer: a ring in which row p of the utterance has place p % (2 * pad).
  struct Context {
    ContextSpec spec;
    float* ring = nullptr;

    float* row(std::int64_t position) const noexcept { return ring + static_cast<std::size_t>(position) % (2 * spec.pad) * spec.width; }
  };

  explicit StreamState(std::span<const ContextSpec> layers);

  const Context& context(std::size_t layer) const noexcept { return contexts_[layer]; }

  // All of it, to be copied to and from the state of another stream of the same network.
  std::span<float> values() noexcept { return {rings_.data(), rings_.size()}; }
  std::span<const float> values() const noexcept { return {rings_.data(), rings_.size()}; }

 private:
  ops::AlignedBuffer rings_;
  std::vector<Context> contexts_;
};

// A matrix of rows, cut into one segment a stream, plus the scratch memory that layers need. Not thread-safe; allocates in the
// constructor only. A layer replaces the matrix by its output and shortens or lengthens the segments.
class StreamRows {
 public:
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

  // Neighbouring rows of an utterance.
  struct Run {
    std::int64_t begin = 0;  // place of the first row in its utterance
    std::size_t rows = 0;
    std::size_t first = 0;  // row of the matrix that holds it

    std::int64_t end() const noexcept { return begin + static_cast<std::int64_t>(rows); }
  };

  struct Segment {
    std::size_t stream = 0;  // index into the states that layers are given
    Run rows;                // final rows; `first` is filled in by append()
    bool last = false;       // no rows follow: layers also flush what they held back

    // Provisional rows are made where the final ones do not reach: [wanted_begin, wanted_end) at the input of the next layer, which
    // narrows it by its pad on each side. Empty = none.
    std::int64_t wanted_begin = 0, wanted_end = 0;
    Run provisional{};

    std::int64_t end = kNoEnd;  // rows of the utterance if it ended now; needed for provisional rows
  };

  struct Sizes {
    std::size_t rows = 0;      // over all streams of a pass and at any layer: the rows, and the padding of its windows
    std::size_t width = 0;     // the widest matrix
    std::size_t inner = 0;     // the widest inner layer of a block
    std::size_t segments = 0;
    ops::WeightFormat format = ops::WeightFormat::kFloat32;  // of the linears
  };

  explicit StreamRows(const Sizes& sizes);

  void clear(std::size_t width);
  float* append(const Segment& segment);  // where the caller puts the segment's rows, the final ones first

  std::size_t width() const noexcept { return width_; }
  std::size_t rows() const noexcept { return rows_; }  // of the matrix; some may belong to no segment
  const float* row(std::size_t r) const noexcept { return data_.data() + r * width_; }
  std::span<const Segment> segments() const noexcept { return segments_; }

  // Multiply-adds of the matrix products done on these rows since construction.
  std::uint64_t multiply_adds() const noexcept { return multiply_adds_; }

  // --- For layers ---

  // Row-wise map to a matrix of another width: fn(const float* in, float* out, worker) for each row.
  template <class Fn>
  void map_rows(ops::ComputePool& pool, std::size_t out_width, Fn&& fn) {
    begin_layer(0);
    for_each_tile(pool, [&](const Tile& tile, std::uint32_t worker) {
      for (std::size_t r = 0; r < tile.rows; ++r) fn(row(tile.in + r), other_.data() + (tile.out + r) * out_width, worker);
    });
    take_other(out_width);
  }

  // The linear of fn(row): fn(const float* in, float* out) for each row, both as wide as the matrix.
  template <class Fn>
  void map_linear(ops::ComputePool& pool, const SoundLinear& linear, Fn&& fn) {
    begin_layer(0);
    begin_input(linear);
    for_each_tile(pool, [&](const Tile& tile, std::uint32_t) {
      for (std::size_t r = 0; r < tile.rows; ++r) {
        float* const out = input_.row(tile.out + r);
        fn(row(tile.in + r), out);
        linear.commit_row(input_, tile.out + r, out);
      }
    });
    multiply(pool, linear, rows_, ops::Activation::kNone);
  }

  // A convolution without dilation whose kernel spans 2 * pad + 1 rows, as one linear over overlapping rows.
  void window_linear(ops::ComputePool& pool, std::span<StreamState> states, std::size_t layer, const SoundLinear& linear,
                     ops::Activation activation);

  // x + narrow(gelu(wide(fn(x)))): fn(rows, count, input, first) makes rows first .. first + count - 1 of `input`, committed; its row
  // first + r sees the matrix's rows rows[r] to rows[r + 2 * pad], itself in the middle.
  template <class Fn>
  void residual_block(ops::ComputePool& pool, std::span<StreamState> states, std::size_t layer, const SoundLinear& wide,
                      const ops::Linear& narrow, Fn&& fn) {
    const std::size_t pad = begin_layer(states, layer);
    begin_input(wide);
    for_each_tile(pool, [&](const Tile& tile, std::uint32_t) {
      const float* around[kTileRows + 2 * kMaxPad] = {};
      const Segment& before = before_[tile.segment];
      const StreamState::Context& context = states[before.stream].context(layer);
      if (tile.rows > 0) {
        const std::int64_t begin = tile.position - static_cast<std::int64_t>(pad);
        for (std::size_t i = 0; i < tile.rows + 2 * pad; ++i) {
          around[i] = input_row(before, context, begin + static_cast<std::int64_t>(i));
        }
        fn(std::as_const(around), tile.rows, input_, tile.out);
      }
      for (std::size_t r = 0; r < tile.rows; ++r) std::copy_n(around[r + pad], width_, other_.data() + (tile.out + r) * width_);
      if (tiles_left_[tile.segment].fetch_sub(1, std::memory_order_acq_rel) == 1) remember(before, context);
    });
    take_other(width_);
    feed_forward(pool, wide, narrow);
  }

 private:
  static constexpr std::size_t kTileRows = 8, kMaxPad = 8;

  // Output rows of the layer in hand that lie in one segment.
  struct Tile {
    std::size_t segment = 0;
    std::int64_t position = 0;             // of the first row in its utterance
    std::size_t rows = 0, in = 0, out = 0;  // count (0: only to remember), row of the old matrix and of the new one
  };

  // Moves the segments on to the output of a layer; before_ keeps what they were. Lays the output rows out without gaps and cuts
  // them into tiles.
  void begin_layer(std::size_t pad);
  std::size_t begin_layer(std::span<StreamState> states, std::size_t layer);  // the same; returns the pad
  void add_tiles(std::size_t segment, Run& run, const Run& before, std::size_t min_tiles);

  template <class Fn>
  void for_each_tile(ops::ComputePool& pool, Fn&& fn) {
    pool.run(tiles_.size(), [&](std::size_t index, std::uint32_t worker) { fn(std::as_const(tiles_[index]), worker); });
  }

  const float* input_row(const Segment& before, const StreamState::Context& context, std::int64_t position) const noexcept;
  void remember(const Segment& before, const StreamState::Context& context) const noexcept;

  void begin_input(const SoundLinear& linear) noexcept;
  void multiply(ops::ComputePool& pool, const SoundLinear& linear, std::size_t rows, ops::Activation activation);
  void feed_forward(ops::ComputePool& pool, const SoundLinear& wide, const ops::Linear& narrow);
  void take_other(std::size_t width);

  std::size_t max_rows_, max_width_, max_inner_, max_segments_;
  std::size_t width_ = 0, rows_ = 0;
  std::vector<Segment> segments_, before_;
  std::vector<Tile> tiles_;
  std::vector<std::atomic<std::uint32_t>> tiles_left_;  // by segment
  ops::AlignedBuffer data_, other_;                     // the matrix, and where the next one grows
  ops::AlignedBuffer zero_;                             // one row
  ops::LinearInput input_, inner_;                      // rows on their way into a linear, and into a block's second one
  std::uint64_t multiply_adds_ = 0;
};

}  // namespace tts::model
