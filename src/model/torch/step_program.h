#pragma once
// The recorded work of the language model: one step of many lanes with the sampler inside, and pieces of prompts.
//
// A lane's state is on the primary device and moves on by itself: a step takes the lane's next input, writes its keys and values, draws
// tokens, leaves the hidden state for the sound networks and prepares the next input. So a step can be queued before anybody has seen
// the tokens of the one before.
//
// A step's work is cut where layers change devices; each piece is recorded for each number of lanes and length of context.
//
// Thread: the engine's. Calls queue work and return, except where they say otherwise.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tts/engine/utterance.h"

#include "torch/runtime.h"
#include "torch/step_ring.h"
#include "torch/tensor_gpt.h"

namespace tts::model {

struct StepProgramOptions {
  std::uint32_t lanes = 1;
  std::uint32_t positions = 1;             // of a lane
  std::uint32_t prefill_rows = 1;          // largest sum of prompt positions between two waits
  std::vector<std::uint32_t> batch_sizes;  // numbers of lanes to prepare for; the last is all
  std::uint32_t ring_steps = 1;            // capacity of the step ring
};

// What a lane draws with.
struct LaneSettings {
  std::uint32_t slot = 0;      // of the step ring
  std::uint32_t position = 0;  // of the next input
  engine::SamplingParams sampling;
  std::int32_t end_token = 0;
};

// All that a lane holds, and its slot of the step ring, in host memory.
struct SavedLane {
  std::vector<at::Tensor> keys_values;
  std::vector<at::Tensor> state, ring;  // empty before the lane started
};

using StepTokens = std::array<std::int64_t, engine::kCodebooks>;  // kBrokenToken where a logit was not finite

class StepProgram {
 public:
  // `weights` and `runtime` are not owned. `queue` has the weights' devices, the primary first.
  StepProgram(const GptTensors& weights, Runtime& runtime, Queue& queue, StepProgramOptions options);

  // Records what code utterances will need, so that no step has to.
  void prepare();

  // Prompt positions `first`.. of a lane; `rows` holds their inputs, [count, hidden].
  void prefill(std::uint32_t lane, std::uint32_t first, std::span<const float> rows);

  // A lane starts to generate with this input.
  void start(std::uint32_t lane, const LaneSettings& settings, std::span<const float> input);

  // One step of `lanes` (each started) of one stage; `positions` = 1 + the largest of theirs.
  void step(engine::Stage stage, std::span<const std::uint32_t> lanes, std::uint32_t positions);

  // finish() ends a batch of calls; wait() blocks until the last finished batch is done, and throws when the device failed. Then tokens()
  // are those of each lane's last step.
  void finish();
  void wait();
  StepTokens tokens(std::uint32_t lane) const;

  void move_lane(std::uint32_t from, std::uint32_t to, std::uint32_t positions);
  void clear_lane(std::uint32_t lane);  // after values that are not finite

  // Out of a lane without work on the way, and into any lane and slot. Both return when the copies are made.
  SavedLane save_lane(std::uint32_t lane, std::uint32_t slot, std::uint32_t positions, bool started);
  void restore_lane(std::uint32_t lane, std::uint32_t slot, const SavedLane& saved);
  std::size_t saved_bytes(std::uint32_t positions, bool started) const;

  const StepRing& ring() const { return ring_; }
  std::span<const std::uint32_t> batch_sizes() const { return options_.batch_sizes; }

 private:
  // Work on one device: maybe the beginning, some stages, maybe the end.
  struct Piece {
    c10::Device device;
    std::vector<std::size_t> stages{};
    bool begins = false, ends = false;
    // What the piece before left, and what this one leaves for the next; undefined where there is none.
    at::Tensor in{}, out{};            // [rows, hidden]
    at::Tensor in_rows{}, out_rows{};  // [2, rows]: place and position of each row
    at::Tensor lane{};                 // [1]: of a piece of a prompt
  };
  enum class Kind : std::uint8_t { kCodeStep, kTextStep, kPrefill };
  struct Shape {
    Kind kind;
    std::uint32_t rows, context;
    friend auto operator<=>(const Shape&, const Shape&) = default;
  };
  using Recording = std::vector<std::unique_ptr<RecordedWork>>;  // by piece

  void make_pieces();
  const Recording& recording(const Shape& shape);
  void run(const Shape& shape);
  void compute(std::size_t piece, const Shape& shape);
  std::pair<at::Tensor, GptRows> begin_step(const Shape& shape);
  std::pair<at::Tensor, GptRows> begin_prefill(const Shape& shape) const;
  void end_step(const Shape& shape, const at::Tensor& x);
  at::Tensor make_noise(const Shape& shape) const;
  std::int64_t codebooks(Kind kind) const;
  std::int64_t vocabulary(Kind kind) const;
  std::uint32_t context_for(std::uint32_t positions) const;
  std::array<at::Tensor, 5> lane_state(std::uint32_t lane) const;
  std::array<at::Tensor, 2> ring_of(std::uint32_t slot) const;

  const GptTensors& weights_;
  Runtime& runtime_;
  Queue& queue_;
  StepProgramOptions options_;
  TensorGpt gpt_;
  std::vector<std::uint32_t> prefill_sizes_, context_sizes_;
  std::vector<Piece> pieces_;
  StepRing ring_;

  // By lane, on the primary device.
  at::Tensor integers_;  // [lanes, columns]: position, step, settings
  at::Tensor floats_;    // [lanes, columns]: settings
  at::Tensor recent_;    // [lanes, codebooks, window + 1]: tokens drawn; the last place is for rows that draw nothing
  at::Tensor input_;     // [lanes, hidden]
  at::Tensor live_;      // [lanes], bool: takes part in this step
  at::Tensor tokens_;    // [lanes, codebooks]: of the last step
  at::Tensor noise_;     // of the step in the making
  at::Tensor host_integers_, host_floats_, host_input_, host_live_, host_tokens_;

  at::Tensor prompt_, prompt_piece_;            // [rows, hidden]; [3]: lane, first position, count
  at::Tensor host_prompt_, host_prompt_piece_;  // [staged rows, hidden], [staged pieces, 3]
  std::int64_t staged_rows_ = 0, staged_pieces_ = 0;
  bool unfinished_ = false;  // work was queued since finish()
  std::map<Shape, Recording> recordings_;
};

}  // namespace tts::model
