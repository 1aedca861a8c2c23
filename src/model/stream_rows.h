#pragma once
// The activations of several streams on their way through convolution layers, and what each stream remembers between pushes.
//
// A centred convolution needs `pad` rows on each side. A stream keeps the last 2 * pad input rows of every such layer, so that
// new rows can be computed the moment their right neighbours arrive. As in the whole-utterance graph, each layer sees zero rows
// of its own before the first and after the last row.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/compute_pool.h"
#include "ops/linear.h"
#include "ops/linear_input.h"

namespace tts::model {

// The context one layer keeps for a stream.
struct ContextSpec {
  std::size_t pad = 0, width = 0;  // rows on each side, channels
};

// One stream's memory for one network: a context for each of its layers that looks sideways.
class StreamState {
 public:
  struct Context {
    ContextSpec spec;
    std::vector<float> rows;  // 2 * pad rows of `width`, the oldest first
    std::size_t filled = 0;   // rows that are valid
  };

  explicit StreamState(std::span<const ContextSpec> layers);

  void reset();  // before the first row of an utterance
  Context& context(std::size_t layer) noexcept { return contexts_[layer]; }

 private:
  std::vector<Context> contexts_;
};

// A dense [rows, width] matrix cut into one segment a stream, plus the scratch memory that layers need. Not thread-safe;
// allocates in the constructor only. A layer replaces the matrix by its output and shortens or lengthens the segments.
class StreamRows {
 public:
  struct Segment {
    std::size_t stream = 0;  // index into the states that layers are given
    std::size_t rows = 0;
    bool last = false;  // no rows follow: layers also flush what they held back
  };

  // `max_rows` must cover, over all streams of a pass, the rows put in, all padding of the network after a last row, and the
  // longest context; `max_width` and `max_inner` the widest matrix and the widest inner layer of a block. `format` is the linears'.
  StreamRows(std::size_t max_rows, std::size_t max_width, std::size_t max_inner, std::size_t max_segments,
             ops::WeightFormat format = ops::WeightFormat::kFloat32);

  void clear(std::size_t width);
  float* append(const Segment& segment);  // where the caller puts the segment's rows

  std::size_t width() const noexcept { return width_; }
  std::size_t rows() const noexcept { return rows_; }
  const float* data() const noexcept { return data_.data(); }
  std::span<const Segment> segments() const noexcept { return segments_; }

  // Multiply-adds of the matrix products done on these rows since construction.
  std::uint64_t multiply_adds() const noexcept { return multiply_adds_; }

  // --- For layers ---

  // Row-wise map to a matrix of another width: fn(const float* in, float* out, worker) for each row.
  template <class Fn>
  void map_rows(ops::ComputePool& pool, std::size_t out_width, Fn&& fn) {
    const std::size_t tiles = (rows_ + kTileRows - 1) / kTileRows;
    pool.run(tiles, [&](std::size_t tile, std::uint32_t worker) {
      for (std::size_t row = tile * kTileRows; row < std::min(rows_, (tile + 1) * kTileRows); ++row) {
        fn(data_.data() + row * width_, other_.data() + row * out_width, worker);
      }
    });
    take_other(out_width);
  }

  void linear(ops::ComputePool& pool, const ops::Linear& linear, ops::Activation activation);

  // A convolution without dilation whose kernel spans 2 * pad + 1 rows, as one linear over overlapping rows.
  void window_linear(ops::ComputePool& pool, std::span<StreamState> states, std::size_t layer, const ops::Linear& linear,
                     ops::Activation activation);

  // x + narrow(gelu(wide(fn(x)))): fn(centre, rows, out) turns `rows` rows and the context around them into as many output rows
  // of the same width; `centre` points into memory that holds pad rows on each side.
  template <class Fn>
  void residual_block(ops::ComputePool& pool, std::span<StreamState> states, std::size_t layer, const ops::Linear& wide,
                      const ops::Linear& narrow, Fn&& fn) {
    gather(states, layer);
    matrix_input_.set_width(width_);
    pool.run(tiles_.size(), [&](std::size_t index, std::uint32_t) {
      const Tile& tile = tiles_[index];
      const float* centre = window_.row(tile.centre);
      fn(centre, tile.rows, matrix_input_.row(tile.out));
      for (std::size_t row = tile.out; row < tile.out + tile.rows; ++row) matrix_input_.commit_row(row);
      std::copy_n(centre, tile.rows * width_, data_.data() + tile.out * width_);
    });
    feed_forward(pool, wide, narrow);
  }

 private:
  static constexpr std::size_t kTileRows = 16;

  struct Tile {
    std::size_t centre = 0, rows = 0, out = 0;  // row in window_, count, row in the output
  };

  void gather(std::span<StreamState> states, std::size_t layer);
  void feed_forward(ops::ComputePool& pool, const ops::Linear& wide, const ops::Linear& narrow);
  void take_other(std::size_t width);

  std::size_t max_rows_, max_width_, max_inner_;
  std::size_t width_ = 0, rows_ = 0;
  std::vector<Segment> segments_;
  std::vector<float> data_, other_;  // the matrix, and where the next one grows
  ops::LinearInput matrix_input_;    // rows on their way into a linear as wide as the matrix
  ops::LinearInput window_;          // input rows of each segment between their contexts
  std::size_t window_rows_ = 0;
  std::vector<Tile> tiles_;  // the output rows of the layer in hand, in pieces that lie in one segment
  ops::LinearInput inner_;
  std::uint64_t multiply_adds_ = 0;
};

}  // namespace tts::model
