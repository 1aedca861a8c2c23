#include "stream_rows.h"

namespace tts::model {
namespace {

bool joined(const StreamRows::Segment& segment) {
  return segment.rows.rows > 0 && segment.provisional.rows > 0 && segment.provisional.begin == segment.rows.end();
}

}  // namespace

StreamState::StreamState(std::span<const ContextSpec> layers) {
  std::size_t floats = 0;
  for (const ContextSpec& spec : layers) floats += 2 * spec.pad * spec.width;
  rings_ = ops::AlignedBuffer(floats);
  float* ring = rings_.data();
  for (const ContextSpec& spec : layers) {
    contexts_.push_back({spec, ring});
    ring += 2 * spec.pad * spec.width;
  }
}

StreamRows::StreamRows(const Sizes& sizes)
    : max_rows_(sizes.rows),
      max_width_(sizes.width),
      max_inner_(sizes.inner),
      max_segments_(sizes.segments),
      tiles_left_(sizes.segments),
      data_(sizes.rows * sizes.width),
      other_(sizes.rows * sizes.width),
      zero_(sizes.width),
      input_(sizes.format, sizes.rows, SoundLinear::max_terms(sizes.format) * sizes.width),
      inner_(sizes.format, sizes.rows, sizes.inner) {
  segments_.reserve(sizes.segments);
  before_.reserve(sizes.segments);
  tiles_.reserve(sizes.rows / kTileRows + 2 * sizes.segments);
}

void StreamRows::clear(std::size_t width) {
  assert(width <= max_width_);
  width_ = width;
  rows_ = 0;
  segments_.clear();
}

float* StreamRows::append(const Segment& segment) {
  assert(rows_ + segment.rows.rows + segment.provisional.rows <= max_rows_ && segments_.size() < max_segments_);
  float* const to = data_.data() + rows_ * width_;
  Segment& placed = segments_.emplace_back(segment);
  placed.rows.first = rows_;
  placed.provisional.first = rows_ + placed.rows.rows;
  rows_ = placed.provisional.first + placed.provisional.rows;
  if (segment.last) placed.end = segment.rows.end();
  return to;
}

void StreamRows::take_other(std::size_t width) {
  assert(width <= max_width_);
  std::swap(data_, other_);
  width_ = width;
}

void StreamRows::begin_layer(std::size_t pad) {
  assert(pad <= kMaxPad);
  const auto reach = static_cast<std::int64_t>(pad);
  before_.assign(segments_.begin(), segments_.end());
  tiles_.clear();
  rows_ = 0;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Segment& before = before_[i];
    Segment& segment = segments_[i];
    segment.rows.begin = std::max<std::int64_t>(0, before.rows.begin - reach);
    const std::int64_t end = before.last ? before.rows.end() : std::max(segment.rows.begin, before.rows.end() - reach);
    segment.rows.rows = static_cast<std::size_t>(end - segment.rows.begin);

    segment.provisional = {};
    if (before.wanted_begin < before.wanted_end) {
      segment.wanted_begin = before.wanted_begin + reach;
      segment.wanted_end = before.wanted_end - reach;
      segment.provisional.begin = std::max(end, segment.wanted_begin);
      const std::int64_t left = std::min(before.end, segment.wanted_end) - segment.provisional.begin;
      segment.provisional.rows = static_cast<std::size_t>(std::max<std::int64_t>(0, left));
    }

    const std::size_t tiles = tiles_.size();
    add_tiles(i, segment.rows, before.rows, 0);
    add_tiles(i, segment.provisional, before.provisional, tiles_.size() == tiles ? 1 : 0);
    tiles_left_[i].store(static_cast<std::uint32_t>(tiles_.size() - tiles), std::memory_order_relaxed);
  }
  assert(rows_ <= max_rows_);
}

std::size_t StreamRows::begin_layer(std::span<StreamState> states, std::size_t layer) {
  if (segments_.empty()) return begin_layer(0), 0;
  const ContextSpec& spec = states[segments_.front().stream].context(layer).spec;
  assert(spec.width == width_);
  begin_layer(spec.pad);
  return spec.pad;
}

void StreamRows::add_tiles(std::size_t segment, Run& run, const Run& before, std::size_t min_tiles) {
  run.first = rows_;
  for (std::size_t row = 0, tile = 0; row < run.rows || tile < min_tiles; row += kTileRows, ++tile) {
    tiles_.push_back({.segment = segment,
                      .position = run.begin + static_cast<std::int64_t>(row),
                      .rows = std::min(kTileRows, run.rows - row),
                      .in = before.first + row,
                      .out = rows_ + row});
  }
  rows_ += run.rows;
}

// Row `position` of the layer's input.
const float* StreamRows::input_row(const Segment& before, const StreamState::Context& context, std::int64_t position) const noexcept {
  if (position < 0 || position >= before.end) return zero_.data();
  if (position < before.rows.begin) return context.row(position);
  if (position < before.rows.end()) return row(before.rows.first + static_cast<std::size_t>(position - before.rows.begin));
  assert(position >= before.provisional.begin && position < before.provisional.end());
  return row(before.provisional.first + static_cast<std::size_t>(position - before.provisional.begin));
}

void StreamRows::remember(const Segment& before, const StreamState::Context& context) const noexcept {
  const std::size_t kept = std::min(before.rows.rows, 2 * context.spec.pad);
  for (std::size_t i = before.rows.rows - kept; i < before.rows.rows; ++i) {
    std::copy_n(row(before.rows.first + i), width_, context.row(before.rows.begin + static_cast<std::int64_t>(i)));
  }
}

void StreamRows::begin_input(const SoundLinear& linear) noexcept {
  assert(linear.width() == width_);
  input_.set_width(linear.terms() * width_);
}

void StreamRows::multiply(ops::ComputePool& pool, const SoundLinear& linear, std::size_t rows, ops::Activation activation) {
  const std::size_t outputs = linear.linear().outputs();
  assert(rows <= max_rows_ && outputs <= max_width_);
  if (rows > 0) linear.linear().forward(pool, {input_, rows}, ops::MutableRows{other_.data(), outputs}, activation);
  multiply_adds_ += rows * linear.linear().inputs() * outputs;
  take_other(outputs);
}

void StreamRows::window_linear(ops::ComputePool& pool, std::span<StreamState> states, std::size_t layer, const SoundLinear& linear,
                               ops::Activation activation) {
  const std::size_t pad = begin_layer(states, layer);
  begin_input(linear);
  assert(segments_.empty() || linear.linear().inputs() == (2 * pad + 1) * input_.width());
  // Each run stands between its neighbours; provisional rows that follow the final ones share their window. Output rows that straddle
  // two windows are computed too and belong to no segment: a few, against one pass over the weights for all streams.
  std::size_t window_rows = 0;
  const auto place = [&](Run& run) {
    run.first = window_rows;
    if (run.rows > 0) window_rows += run.rows + 2 * pad;
  };
  for (Segment& segment : segments_) {
    place(segment.rows);
    if (joined(segment)) window_rows -= 2 * pad;
    place(segment.provisional);
  }
  assert(window_rows <= max_rows_);
  pool.run(segments_.size(), [&](std::size_t index, std::uint32_t) {
    const Segment &segment = segments_[index], &before = before_[index];
    const StreamState::Context& context = states[segment.stream].context(layer);
    const auto fill = [&](const Run& run) {
      const std::int64_t begin = run.begin - static_cast<std::int64_t>(pad);
      for (std::size_t i = 0; run.rows > 0 && i < run.rows + 2 * pad; ++i) {
        linear.commit_row(input_, run.first + i, input_row(before, context, begin + static_cast<std::int64_t>(i)));
      }
    };
    if (joined(segment)) {
      fill({segment.rows.begin, segment.rows.rows + segment.provisional.rows, segment.rows.first});
    } else {
      fill(segment.rows);
      fill(segment.provisional);
    }
    remember(before, context);
  });
  rows_ = window_rows > 2 * pad ? window_rows - 2 * pad : 0;
  multiply(pool, linear, rows_, activation);
}

void StreamRows::feed_forward(ops::ComputePool& pool, const SoundLinear& wide, const ops::Linear& narrow) {
  assert(wide.linear().outputs() <= max_inner_ && narrow.outputs() == width_);
  if (rows_ == 0) return;
  wide.linear().forward(pool, {input_, rows_}, inner_, ops::Activation::kGelu);
  narrow.forward_add(pool, {inner_, rows_}, {data_.data(), width_});
  multiply_adds_ += rows_ * wide.linear().outputs() * (wide.linear().inputs() + narrow.outputs());
}

}  // namespace tts::model
