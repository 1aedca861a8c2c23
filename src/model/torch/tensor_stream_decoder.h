#pragma once
// StreamDecoder on tensors: from generated steps to samples while they are generated. The same samples up to rounding, and the same
// number of them from each push. One recording for each number of streams, number of steps and need of a tail.
//
// Thread: the engine's. Blocking: push() returns when its samples are there.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tts/engine/step_engine.h"
#include "tts/engine/utterance.h"

#include "torch/runtime.h"
#include "torch/sound_tensors.h"
#include "torch/step_ring.h"

namespace tts::model {

struct TensorStreamDecoderOptions {
  std::uint32_t slots = 1;
  std::uint32_t max_steps = 32;            // largest push of a stream
  std::vector<std::uint32_t> batch_sizes;  // numbers of streams to prepare for; the last is the most one pass takes
};

struct TensorDecodePush {
  std::uint32_t slot = 0;
  std::uint32_t steps = 0;  // the next ones of the stream, taken from the ring
  bool last = false;
  std::uint32_t lookahead = engine::kExactLookahead;  // see DecodeWork
  std::span<float> pcm;                               // out; at least max_samples(steps) long
  std::size_t samples = 0;                            // out
};

class TensorStreamDecoder {
 public:
  // How far a stream has come.
  struct Stream {
    engine::MelPath path = engine::MelPath::kHidden;
    std::int64_t frames = 0;      // pushed
    std::int64_t next_block = 0;  // to be written
  };
  // A stream between two pushes, in host memory.
  struct Saved {
    Stream stream;
    at::Tensor mel_state, vocos_state;  // undefined before the first push
  };

  // Nothing is owned but the state; all must outlive the decoder. `queue` may be shared.
  TensorStreamDecoder(const SoundTensors& sound, const StepRing& ring, c10::Device device, Runtime& runtime, Queue& queue,
                      TensorStreamDecoderOptions options);

  // Records what utterances of `path` will need, so that no push has to.
  void prepare(engine::MelPath path);

  void open(std::uint32_t slot, engine::MelPath path);
  void push(std::span<TensorDecodePush> work);  // each slot at most once

  // Out of an opened slot, and into any slot. Both return when the copies are made.
  Saved save(std::uint32_t slot);
  void restore(std::uint32_t slot, const Saved& saved);
  std::size_t saved_bytes(std::uint32_t slot) const;

  std::uint32_t lookahead_steps() const noexcept;
  std::uint32_t samples_per_step() const noexcept;
  std::size_t max_samples(std::uint32_t steps) const noexcept;

 private:
  // What one recording was made for.
  struct Shape {
    engine::MelPath path;
    std::uint32_t streams, steps;
    bool tail;  // also rows for what is still held back
    friend auto operator<=>(const Shape&, const Shape&) = default;
  };

  const MelNetworkTensors& network(engine::MelPath path) const;
  at::Tensor& mel_state(engine::MelPath path);
  const at::Tensor& mel_state(engine::MelPath path) const;
  std::int64_t delay(engine::MelPath path) const;  // frames between the newest one pushed and the block that can be written
  std::int64_t rows_of(const Shape& shape) const;
  std::int64_t end_block(const Stream& stream, const TensorDecodePush& push, std::int64_t frames) const;

  void push_group(std::span<TensorDecodePush*> group, engine::MelPath path);
  RecordedWork& recording(const Shape& shape);
  void compute(const Shape& shape);

  const SoundTensors& sound_;
  const StepRing& ring_;
  Runtime& runtime_;
  Queue& queue_;
  TensorStreamDecoderOptions options_;
  std::vector<std::uint32_t> step_sizes_;
  std::vector<Stream> streams_;
  at::Tensor decoder_state_, dvae_state_, vocos_state_;  // [slots + 1, values]; the last slot is nobody's
  at::Tensor control_, host_control_;                    // [streams, kControls + max_steps]: of the current pass
  at::Tensor audio_, host_audio_;                        // [streams, rows, hop]
  std::map<Shape, std::unique_ptr<RecordedWork>> recordings_;
  std::vector<TensorDecodePush*> group_;
};

}  // namespace tts::model
