#pragma once
// The language model's layers on tensors, with the keys and values they remember. A stage is a run of layers on one device.
//
// Utterances live in lanes of the cache. A pass moves `length` positions of each of some lanes: one position of the lanes 0 .. n - 1
// (a step), or several of one lane anywhere (a piece of a prompt). Rows without a purpose go to a position that nobody reads.
// Shapes depend on the pass's sizes only; nothing is read back.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "torch/gpt_tensors.h"

namespace tts::model {

// Which rows a pass has, on one device.
struct GptRows {
  at::Tensor place;     // [lanes * length] int64: row of the cache that takes the keys and values, see TensorGpt::place()
  at::Tensor position;  // [lanes * length] int64: of the utterance
  at::Tensor lane{};    // [1] int64: the lane; undefined = lanes 0 .. lanes - 1
  std::int64_t lanes = 1, length = 1;
  std::int64_t context = 0;  // positions that attention looks at, at least the largest of `position` + 1
};

class TensorGpt {
 public:
  // Reserves the cache: `lanes` utterances of `positions`. `weights` is not owned.
  TensorGpt(const GptTensors& weights, std::int64_t lanes, std::int64_t positions);

  std::size_t stages() const { return stages_.size(); }
  c10::Device device(std::size_t stage) const { return stages_[stage].device; }
  std::int64_t positions() const { return positions_; }  // of a lane; a whole number of kPositionUnit
  std::int64_t place(std::int64_t lane, std::int64_t position) const { return lane * (positions_ + 1) + position; }
  std::int64_t no_place(std::int64_t lane) const { return place(lane, positions_); }

  // x [lanes * length, hidden] float32 through a stage's layers. Keys and values are written before they are read.
  at::Tensor forward(std::size_t stage, const at::Tensor& x, const GptRows& rows) const;

  // Copies the first `count` positions. Other lanes are not touched.
  void move_lane(std::int64_t from, std::int64_t to, std::int64_t count) const;
  // The same out of a lane into host memory that is new, and from there into any lane.
  std::vector<at::Tensor> save_lane(std::int64_t lane, std::int64_t count) const;
  void restore_lane(std::int64_t lane, const std::vector<at::Tensor>& saved) const;
  std::size_t saved_bytes(std::int64_t count) const;
  void clear_lane(std::int64_t lane) const;

 private:
  struct Stage {
    c10::Device device;
    std::size_t first, count;  // layers
    at::Tensor keys, values;   // [layers, lanes * (positions + 1), kv_width]
    at::Tensor turns;          // [positions, head_dim / 2], complex: the rotary code
  };

  at::Tensor attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values, const GptRows& rows,
                    const at::Tensor& bias) const;
  at::Tensor cached(const at::Tensor& cache, const GptRows& rows) const;
  at::Tensor attention_bias(const GptRows& rows) const;

  const GptTensors& weights_;
  std::int64_t lanes_, positions_;
  std::vector<Stage> stages_;
};

}  // namespace tts::model
