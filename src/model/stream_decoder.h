#pragma once
// From generated steps to samples while they are generated: Decoder or DVAE decoder, Vocos and inverse STFT with state.
//
// Every layer keeps the rows its convolution still needs, so each step is computed once whatever the utterance's length, and
// the joined output of a stream is bit-identical to decoding all of its steps in one push: (2T - 1) * hop samples for T steps.
// A stream's samples do not depend on the other streams of a push.
//
// Samples may be taken sooner than that allows (DecodePush::lookahead): what is missing of them is computed as if the utterance ended
// after the newest step, in the same pass, and forgotten. Such samples are approximate; they are never written again, and those that
// follow with the whole lookahead are exact.
//
// Thread: one thread at a time, the one that may run the pool. Nothing allocates after construction but open() and save().

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tts/engine/step_engine.h"
#include "tts/engine/utterance.h"

#include "inverse_stft.h"
#include "ops/compute_pool.h"
#include "sound_model.h"
#include "stream_rows.h"

namespace tts::model {

struct StreamDecoderOptions {
  std::uint32_t slots = 1;       // streams that may be open at once
  std::uint32_t max_steps = 32;  // largest DecodePush::steps
};

// New steps of one stream. Exactly one of `hidden` and `codes` is used, by the path the stream was opened with.
struct DecodePush {
  std::uint32_t slot = 0;
  std::uint32_t steps = 0;                   // 0..max_steps; 0 only makes sense with `last`
  bool last = false;                         // no more steps will come: everything held back is flushed
  std::uint32_t lookahead = engine::kExactLookahead;  // steps that follow a written sample; lookahead_steps() or more = exact
  const float* hidden = nullptr;             // steps * 2 * decoder.idim (hidden_size) values, the hidden state that predicted each step
  const engine::CodeFrame* codes = nullptr;  // `steps` frames
  std::span<float> pcm{};                    // out; at least max_samples(steps) long
  std::size_t samples = 0;                   // out; samples written to the front of `pcm`
};

class StreamDecoder {
 public:
  // A stream between two pushes, by itself.
  class Saved;

  // `model` and `pool` are not owned and must outlive the decoder. All state of all slots is allocated here.
  StreamDecoder(const SoundModel& model, ops::ComputePool& pool, const StreamDecoderOptions& options);

  // Starts a new utterance in the slot and forgets whatever was there. The first one from codes loads their network: it may block for
  // that, allocate, and throw std::runtime_error (Dvae::decoder).
  void open(std::uint32_t slot, engine::MelPath path);

  // Each slot at most once per call; a slot that saw `last` must be opened again first. Streams share one pass over the weights
  // up to a bounded number of rows, beyond that they go in groups.
  void push(std::span<DecodePush> work);

  // Copies what an opened slot holds, and puts it into this or any other slot of the decoder, which then goes on with it: the samples are
  // those of a stream that stayed where it was.
  Saved save(std::uint32_t slot) const;
  std::size_t saved_bytes(std::uint32_t slot) const noexcept;  // that save() would copy
  void restore(std::uint32_t slot, const Saved& saved) noexcept;

  // Steps that are held back before the first exact sample; afterwards each step yields samples_per_step().
  std::uint32_t lookahead_steps() const noexcept;
  std::uint32_t samples_per_step() const noexcept;

  // Upper bound of the samples one push of `steps` steps may write: they and all that was held back.
  std::size_t max_samples(std::uint32_t steps) const noexcept;

  // Multiply-adds of all matrix products so far: the cost of decoding without a clock.
  std::uint64_t multiply_adds() const noexcept;

 private:
  // How far a stream has come.
  struct Progress {
    engine::MelPath path = engine::MelPath::kHidden;
    const MelNetwork* network = nullptr;  // of the path
    bool open = false;
    std::int64_t frames = 0;  // pushed
    std::int64_t blocks = 0;  // of hop samples, written
  };

  struct Stream : Progress {
    InverseStft::Tail tail;
    DecodePush* push = nullptr;  // of the group in hand
    InverseStft::Blocks early;   // that this push takes before they are exact
  };

  std::vector<StreamState>& mel_states(engine::MelPath path) noexcept;
  const std::vector<StreamState>& mel_states(engine::MelPath path) const noexcept;
  void push_group(std::span<DecodePush> group);
  void compute_mel(std::span<DecodePush> group, engine::MelPath path);
  StreamRows::Segment begin_segment(const DecodePush& push);
  void write_samples(const StreamRows::Segment& segment, InverseStft::Tail& scratch);

  const SoundModel& model_;
  ops::ComputePool& pool_;
  std::uint32_t max_steps_;
  std::size_t max_rows_;  // of one group
  InverseStft inverse_stft_;
  std::vector<Stream> streams_;
  std::vector<StreamState> decoder_states_, dvae_states_, vocos_states_;  // by slot
  std::vector<InverseStft::Tail> scratch_tails_;                          // by worker
  StreamRows rows_;
  std::vector<float> mel_;  // log-mel rows of the group, collected from both mel paths
  std::vector<StreamRows::Segment> mel_segments_;
};

class StreamDecoder::Saved {
 private:
  friend StreamDecoder;
  Progress progress_;
  std::int64_t tail_frames_ = 0;
  std::unique_ptr<float[]> values_;  // the mel network's rings, the vocoder's, the tail's sums; null before the first push
};

}  // namespace tts::model
