#pragma once
// Several streams' frames on their way through layers that look sideways, with fixed shapes.
//
// A pass moves `rows` new rows a stream, of which the first `count` are frames of the stream and the rest stand for frames that never
// come: zero to every layer. A centred layer answers `pad` rows late, so after layers with D rows of padding in all, row r is frame
// first + r - D; a row outside the utterance as known so far, 0 .. first + count - 1, is zeroed before the next layer looks at it.
// Hence the first `count` rows are what they will always be, and those after them what they are if nothing follows. A stream
// remembers, for each layer, the rows before the next pass.

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tts::model {

class StreamPass {
 public:
  // int64 [streams] each: frames of the earlier passes, frames of this one.
  StreamPass(const at::Tensor& first, const at::Tensor& count, std::int64_t rows);

  // Begins a network whose layers remember `state` [streams, values] between them, in the order of their calls. All zero is forgotten
  // where a stream begins (first == 0), whatever is there.
  void enter(const at::Tensor& state);
  // What to remember for the next pass, the same shape. Every layer has been called.
  at::Tensor leave();

  // [streams, rows, width] -> [streams, before + rows, width]: the rows before, then these.
  at::Tensor look_back(const at::Tensor& x, std::int64_t before);

  // The same for a centred layer: `pad` rows on both sides of row i are rows i .. i + 2 pad of the result.
  at::Tensor look_around(const at::Tensor& x, std::int64_t pad);

  // Frame of each row [streams, rows], and whether the utterance has it.
  at::Tensor frame() const;
  at::Tensor exists(const at::Tensor& frame) const;

  std::int64_t streams() const { return streams_; }
  std::int64_t rows() const { return rows_; }

 private:
  at::Tensor first_, count_, end_;  // [streams, 1]
  at::Tensor row_;                  // [rows]
  std::int64_t streams_, rows_;
  std::int64_t delay_ = 0;  // rows
  at::Tensor state_, next_;
  std::int64_t offset_ = 0;  // of the next layer in them
};

}  // namespace tts::model
