#include "torch/tensor_stream_decoder.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "torch/batch_sizes.h"
#include "torch/stream_pass.h"
#include "torch/tensor_load.h"

namespace tts::model {
namespace {

constexpr std::int64_t kFramesPerStep = 2;
constexpr std::int64_t kFirstBlock = 2;  // the centred transform cuts the blocks before it
constexpr std::uint32_t kMinSteps = 4;   // smallest number of steps worth a recording of its own

enum Control : std::int64_t { kSlot, kFirstFrame, kFrames, kControls };  // columns of the control matrix; ring rows follow

}  // namespace

TensorStreamDecoder::TensorStreamDecoder(const SoundTensors& sound, const StepRing& ring, c10::Device device, Runtime& runtime,
                                         Queue& queue, TensorStreamDecoderOptions options)
    : sound_(sound),
      ring_(ring),
      runtime_(runtime),
      queue_(queue),
      options_(std::move(options)),
      step_sizes_(make_batch_sizes({}, kMinSteps, options_.max_steps)),
      streams_(options_.slots) {
  const c10::InferenceMode inference;
  queue_.run([&] {
    const at::TensorOptions floats = at::TensorOptions().dtype(at::kFloat).device(device);
    const std::int64_t slots = options_.slots + 1, streams = options_.batch_sizes.back(), controls = kControls + options_.max_steps;
    const std::int64_t rows = std::max(rows_of({engine::MelPath::kHidden, 0, options_.max_steps, true}),
                                       rows_of({engine::MelPath::kCodes, 0, options_.max_steps, true}));
    decoder_state_ = at::zeros({slots, sound_.decoder.state_values()}, floats);
    dvae_state_ = at::zeros({slots, sound_.dvae_decoder.state_values()}, floats);
    vocos_state_ = at::zeros({slots, sound_.vocos.state_values()}, floats);
    control_ = at::zeros({streams, controls}, floats.dtype(at::kLong));
    host_control_ = runtime_.host_buffer({streams, controls}, at::kLong);
    audio_ = at::zeros({streams, rows, sound_.vocos.hop()}, floats);
    host_audio_ = runtime_.host_buffer({streams, rows, sound_.vocos.hop()}, at::kFloat);
  });
  group_.reserve(options_.batch_sizes.back());
}

const MelNetworkTensors& TensorStreamDecoder::network(engine::MelPath path) const {
  return path == engine::MelPath::kHidden ? sound_.decoder : sound_.dvae_decoder;
}

at::Tensor& TensorStreamDecoder::mel_state(engine::MelPath path) { return path == engine::MelPath::kHidden ? decoder_state_ : dvae_state_; }

const at::Tensor& TensorStreamDecoder::mel_state(engine::MelPath path) const {
  return path == engine::MelPath::kHidden ? decoder_state_ : dvae_state_;
}

std::int64_t TensorStreamDecoder::delay(engine::MelPath path) const { return network(path).pad() + sound_.vocos.pad(); }

// A tail holds the frames held back and the block after the last frame.
std::int64_t TensorStreamDecoder::rows_of(const Shape& shape) const {
  return kFramesPerStep * shape.steps + (shape.tail ? delay(shape.path) + 1 : 0);
}

std::uint32_t TensorStreamDecoder::lookahead_steps() const noexcept {
  const std::int64_t frames = std::max(delay(engine::MelPath::kHidden), delay(engine::MelPath::kCodes)) + kFirstBlock;
  return static_cast<std::uint32_t>((frames + kFramesPerStep - 1) / kFramesPerStep);
}

std::uint32_t TensorStreamDecoder::samples_per_step() const noexcept {
  return static_cast<std::uint32_t>(kFramesPerStep * sound_.vocos.hop());
}

std::size_t TensorStreamDecoder::max_samples(std::uint32_t steps) const noexcept {
  return std::size_t{samples_per_step()} * (std::size_t{steps} + lookahead_steps());
}

void TensorStreamDecoder::open(std::uint32_t slot, engine::MelPath path) {
  streams_[slot] = {.path = path, .frames = 0, .next_block = kFirstBlock};
}

TensorStreamDecoder::Saved TensorStreamDecoder::save(std::uint32_t slot) {
  Saved saved{.stream = streams_[slot], .mel_state = {}, .vocos_state = {}};
  if (saved.stream.frames == 0) return saved;  // what is there is an earlier utterance's
  queue_.run([&] {
    saved.mel_state = copy_to_host(mel_state(saved.stream.path).select(0, slot));
    saved.vocos_state = copy_to_host(vocos_state_.select(0, slot));
  });
  return saved;
}

void TensorStreamDecoder::restore(std::uint32_t slot, const Saved& saved) {
  streams_[slot] = saved.stream;
  if (saved.stream.frames == 0) return;
  queue_.run([&] {
    mel_state(saved.stream.path).select(0, slot).copy_(saved.mel_state);
    vocos_state_.select(0, slot).copy_(saved.vocos_state);
  });
}

std::size_t TensorStreamDecoder::saved_bytes(std::uint32_t slot) const {
  if (streams_[slot].frames == 0) return 0;
  return row_bytes(mel_state(streams_[slot].path)) + row_bytes(vocos_state_);
}

// The block after the last that may be written once `frames` frames have been pushed.
std::int64_t TensorStreamDecoder::end_block(const Stream& stream, const TensorDecodePush& push, std::int64_t frames) const {
  if (push.last) return frames > 0 ? frames + 1 : 0;
  if (push.lookahead >= lookahead_steps()) return frames - delay(stream.path);
  return std::min(frames + 1, frames - kFramesPerStep * std::int64_t{push.lookahead} + kFirstBlock);
}

void TensorStreamDecoder::push(std::span<TensorDecodePush> work) {
  const c10::InferenceMode inference;
  for (TensorDecodePush& push : work) {
    assert(push.steps <= options_.max_steps && push.pcm.size() >= max_samples(push.steps));
    push.samples = 0;
  }
  for (const engine::MelPath path : {engine::MelPath::kHidden, engine::MelPath::kCodes}) {
    group_.clear();
    for (TensorDecodePush& push : work) {
      if (streams_[push.slot].path != path || (push.steps == 0 && !push.last)) continue;
      if (group_.size() == options_.batch_sizes.back()) {
        push_group(group_, path);
        group_.clear();
      }
      group_.push_back(&push);
    }
    if (!group_.empty()) push_group(group_, path);
  }
}

void TensorStreamDecoder::push_group(std::span<TensorDecodePush*> group, engine::MelPath path) {
  std::uint32_t steps = 0;
  bool tail = false;
  for (const TensorDecodePush* push : group) {
    steps = std::max(steps, push->steps);
    tail |= push->last || push->lookahead < lookahead_steps();
  }
  const Shape shape{path, batch_size_for(options_.batch_sizes, static_cast<std::uint32_t>(group.size())),
                    batch_size_for(step_sizes_, steps), tail};

  std::int64_t* const host = host_control_.mutable_data_ptr<std::int64_t>();
  const std::int64_t columns = host_control_.size(1), nobody = options_.slots;
  for (std::uint32_t s = 0; s < shape.streams; ++s) {
    std::int64_t* const control = host + s * columns;
    const TensorDecodePush* const push = s < group.size() ? group[s] : nullptr;
    control[kSlot] = push != nullptr ? push->slot : nobody;
    control[kFirstFrame] = push != nullptr ? streams_[push->slot].frames : 0;
    control[kFrames] = push != nullptr ? kFramesPerStep * push->steps : 0;
    for (std::uint32_t t = 0; t < shape.steps; ++t) {
      const bool real = push != nullptr && t < push->steps;
      control[kControls + t] = real ? ring_.row(push->slot, streams_[push->slot].frames / kFramesPerStep + t) : ring_.row(nobody, 0);
    }
  }

  queue_.run([&] {
    RecordedWork& work = recording(shape);
    control_.narrow(0, 0, shape.streams).copy_(host_control_.narrow(0, 0, shape.streams), /*non_blocking=*/true);
    work.replay();
    for (std::size_t s = 0; s < group.size(); ++s) {
      TensorDecodePush& push = *group[s];
      Stream& stream = streams_[push.slot];
      const std::int64_t oldest = stream.frames - delay(path);  // block of row 0
      stream.frames += kFramesPerStep * push.steps;
      const std::int64_t end = end_block(stream, push, stream.frames), count = std::max<std::int64_t>(end - stream.next_block, 0);
      push.samples = static_cast<std::size_t>(count * sound_.vocos.hop());
      if (count == 0) continue;
      const std::int64_t row = stream.next_block - oldest;
      assert(row >= 0 && row + count <= rows_of(shape));
      const auto index = static_cast<std::int64_t>(s);
      host_audio_.select(0, index).narrow(0, 0, count).copy_(audio_.select(0, index).narrow(0, row, count), /*non_blocking=*/true);
      stream.next_block = end;
    }
    queue_.mark();
  });
  queue_.wait();
  const std::int64_t stride = host_audio_.stride(0);
  for (std::size_t s = 0; s < group.size(); ++s) {
    std::copy_n(host_audio_.const_data_ptr<float>() + static_cast<std::int64_t>(s) * stride, group[s]->samples, group[s]->pcm.begin());
  }
}

void TensorStreamDecoder::prepare(engine::MelPath path) {
  const c10::InferenceMode inference;
  // Largest first: what the smaller ones need is then there already.
  for (auto streams = options_.batch_sizes.rbegin(); streams != options_.batch_sizes.rend(); ++streams) {
    for (auto steps = step_sizes_.rbegin(); steps != step_sizes_.rend(); ++steps) {
      for (const bool tail : {true, false}) queue_.run([&] { recording({path, *streams, *steps, tail}); });
    }
  }
}

RecordedWork& TensorStreamDecoder::recording(const Shape& shape) {
  std::unique_ptr<RecordedWork>& work = recordings_[shape];
  if (!work) {
    control_.zero_().select(1, kSlot).fill_(std::int64_t{options_.slots});  // recording touches nobody's state
    work = queue_.record(control_.device(), [this, shape] { compute(shape); });
  }
  return *work;
}

void TensorStreamDecoder::compute(const Shape& shape) {
  const std::int64_t streams = shape.streams, steps = shape.steps;
  const at::Tensor control = control_.narrow(0, 0, streams);
  const at::Tensor slot = control.select(1, kSlot), ring_row = control.narrow(1, kControls, steps).flatten();
  const MelNetworkTensors& mel_network = network(shape.path);
  StreamPass pass(control.select(1, kFirstFrame), control.select(1, kFrames), rows_of(shape));
  const auto through = [&](const auto& layers, at::Tensor& states, const at::Tensor& x) {
    pass.enter(states.index_select(0, slot));
    const at::Tensor y = layers.forward(pass, x);
    states.index_copy_(0, slot, pass.leave());
    return y;
  };

  // The two frames of a step lie one behind the other: the first half of a hidden state, or of the embedded codes, is the first.
  const at::Tensor taken = shape.path == engine::MelPath::kHidden ? ring_.hidden.index_select(0, ring_row)
                                                                  : sound_.code_table.embed(ring_.codes.index_select(0, ring_row));
  const at::Tensor frames = taken.view({streams, kFramesPerStep * steps, mel_network.inputs()});
  const at::Tensor rows = at::constant_pad_nd(frames, {0, 0, 0, pass.rows() - frames.size(1)});
  const at::Tensor mel = through(mel_network, mel_state(shape.path), rows);
  audio_.narrow(0, 0, streams).narrow(1, 0, pass.rows()).copy_(through(sound_.vocos, vocos_state_, mel));
}

}  // namespace tts::model
