#include "torch/stream_pass.h"

#include <cassert>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/where.h>

namespace tts::model {

StreamPass::StreamPass(const at::Tensor& first, const at::Tensor& count, std::int64_t rows)
    : first_(first.unsqueeze(1)),
      count_(count.unsqueeze(1)),
      end_(first_ + count_),
      row_(at::arange(rows, first.options())),
      streams_(first.size(0)),
      rows_(rows) {}

void StreamPass::enter(const at::Tensor& state) {
  state_ = at::where(first_ > 0, state, 0);
  next_ = at::empty_like(state_);
  offset_ = 0;
}

at::Tensor StreamPass::leave() {
  assert(offset_ == state_.size(1));
  state_.reset();
  return std::move(next_);
}

at::Tensor StreamPass::look_back(const at::Tensor& x, std::int64_t before) {
  const std::int64_t width = x.size(2), values = before * width;
  const at::Tensor known = at::where(exists(frame()).unsqueeze(2), x, 0);
  const at::Tensor window = at::cat({state_.narrow(1, offset_, values).view({streams_, before, width}), known}, 1);
  at::Tensor next = next_.narrow(1, offset_, values).view({streams_, before, width});
  const at::Tensor place = (count_ + at::arange(before, row_.options())).unsqueeze(2).expand({streams_, before, width});
  at::gather_out(next, window, 1, place);
  offset_ += values;
  return window;
}

at::Tensor StreamPass::look_around(const at::Tensor& x, std::int64_t pad) {
  at::Tensor window = look_back(x, 2 * pad);
  delay_ += pad;
  return window;
}

at::Tensor StreamPass::frame() const { return first_ + row_ - delay_; }

at::Tensor StreamPass::exists(const at::Tensor& frame) const { return (frame >= 0).logical_and_(frame < end_); }

}  // namespace tts::model
