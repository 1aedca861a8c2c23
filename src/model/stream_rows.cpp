#include "stream_rows.h"

#include <algorithm>
#include <cassert>

namespace tts::model {

StreamState::StreamState(std::span<const ContextSpec> layers) {
  contexts_.reserve(layers.size());
  for (const ContextSpec& spec : layers) contexts_.push_back({spec, std::vector<float>(2 * spec.pad * spec.width), spec.pad});
}

void StreamState::reset() {
  for (Context& context : contexts_) {
    context.filled = context.spec.pad;
    std::fill_n(context.rows.begin(), context.spec.pad * context.spec.width, 0.0F);
  }
}

namespace {

// Appends `rows` to the context and lets the oldest go.
void remember(StreamState::Context& context, const float* rows, std::size_t count) {
  const std::size_t capacity = 2 * context.spec.pad, width = context.spec.width;
  if (count >= capacity) {
    std::copy_n(rows + (count - capacity) * width, capacity * width, context.rows.data());
    context.filled = capacity;
    return;
  }
  const std::size_t drop = context.filled + count > capacity ? context.filled + count - capacity : 0;
  std::copy(context.rows.data() + drop * width, context.rows.data() + context.filled * width, context.rows.data());
  std::copy_n(rows, count * width, context.rows.data() + (context.filled - drop) * width);
  context.filled += count - drop;
}

}  // namespace

StreamRows::StreamRows(std::size_t max_rows, std::size_t max_width, std::size_t max_inner, std::size_t max_segments,
                       ops::WeightFormat format)
    : max_rows_(max_rows),
      max_width_(max_width),
      max_inner_(max_inner),
      data_(max_rows * max_width),
      other_(max_rows * max_width),
      matrix_input_(format, max_rows, max_width),
      window_(format, max_rows, max_width),
      inner_(format, max_rows, max_inner) {
  segments_.reserve(max_segments);
  tiles_.reserve(max_rows / kTileRows + max_segments);
}

void StreamRows::clear(std::size_t width) {
  assert(width <= max_width_);
  width_ = width;
  rows_ = 0;
  segments_.clear();
}

float* StreamRows::append(const Segment& segment) {
  assert(rows_ + segment.rows <= max_rows_ && segments_.size() < segments_.capacity());
  float* const to = data_.data() + rows_ * width_;
  segments_.push_back(segment);
  rows_ += segment.rows;
  return to;
}

void StreamRows::take_other(std::size_t width) {
  assert(width <= max_width_);
  data_.swap(other_);
  width_ = width;
}

void StreamRows::linear(ops::ComputePool& pool, const ops::Linear& linear, ops::Activation activation) {
  assert(linear.inputs() == width_);
  if (rows_ > 0) {
    matrix_input_.set_width(width_);
    std::copy_n(data_.data(), rows_ * width_, matrix_input_.row(0));
    matrix_input_.commit(pool, rows_);
    linear.forward(pool, {matrix_input_, rows_}, ops::MutableRows{other_.data(), linear.outputs()}, activation);
  }
  multiply_adds_ += rows_ * linear.inputs() * linear.outputs();
  take_other(linear.outputs());
}

void StreamRows::window_linear(ops::ComputePool& pool, std::span<StreamState> states, std::size_t layer, const ops::Linear& linear,
                               ops::Activation activation) {
  gather(states, layer);
  const std::size_t kernel = linear.inputs() / width_, outputs = linear.outputs();
  assert(linear.inputs() == kernel * width_ && outputs <= max_width_);
  if (rows_ > 0) {
    // Rows that straddle two segments are computed too and not used: a few, against one pass over the weights for all streams.
    const std::size_t positions = window_rows_ - (kernel - 1);
    window_.commit(pool, window_rows_);
    linear.forward(pool, {window_, positions}, ops::MutableRows{other_.data(), outputs}, activation);
    multiply_adds_ += positions * linear.inputs() * outputs;
    for (const Tile& tile : tiles_) {
      std::copy_n(other_.data() + (tile.centre - kernel / 2) * outputs, tile.rows * outputs, data_.data() + tile.out * outputs);
    }
  }
  width_ = outputs;
}

// Lays the segments out in window_, each between its contexts, and cuts the rows that can now be computed into tiles.
void StreamRows::gather(std::span<StreamState> states, std::size_t layer) {
  const float* input = data_.data();
  window_rows_ = 0;
  rows_ = 0;
  tiles_.clear();
  window_.set_width(width_);
  for (Segment& segment : segments_) {
    StreamState::Context& context = states[segment.stream].context(layer);
    const std::size_t pad = context.spec.pad;
    assert(context.spec.width == width_);
    const std::size_t known = context.filled + segment.rows;
    const std::size_t total = known + (segment.last ? pad : 0);
    const std::size_t outputs = total > 2 * pad ? total - 2 * pad : 0;
    if (outputs > 0) {
      assert(window_rows_ + total <= max_rows_);
      float* to = window_.row(window_rows_);
      to = std::copy_n(context.rows.data(), context.filled * width_, to);
      to = std::copy_n(input, segment.rows * width_, to);
      std::fill_n(to, (total - known) * width_, 0.0F);
      for (std::size_t row = 0; row < outputs; row += kTileRows) {
        tiles_.push_back({window_rows_ + pad + row, std::min(kTileRows, outputs - row), rows_ + row});
      }
      window_rows_ += total;
    }
    remember(context, input, segment.rows);
    input += segment.rows * width_;
    segment.rows = outputs;
    rows_ += outputs;
  }
}

void StreamRows::feed_forward(ops::ComputePool& pool, const ops::Linear& wide, const ops::Linear& narrow) {
  assert(wide.outputs() <= max_inner_ && narrow.outputs() == width_);
  if (rows_ == 0) return;
  wide.forward(pool, {matrix_input_, rows_}, inner_, ops::Activation::kGelu);
  narrow.forward_add(pool, {inner_, rows_}, {data_.data(), width_});
  multiply_adds_ += rows_ * wide.outputs() * (wide.inputs() + narrow.outputs());
}

}  // namespace tts::model
