#include "stream_decoder.h"

#include <algorithm>
#include <cassert>

namespace tts::model {
namespace {

constexpr std::size_t kFramesPerStep = 2;

// Rows of one pass over the weights when many streams are pushed: enough to be bound by arithmetic, small enough for the caches.
constexpr std::size_t kGroupRows = 512;

std::size_t max_mel_pad(const SoundModel& model) {
  return std::max(total_pad(model.decoder.contexts()), total_pad(model.dvae_decoder.contexts()));
}

std::size_t lookahead_frames(const SoundModel& model) {
  return max_mel_pad(model) + total_pad(model.vocos.contexts()) + InverseStft::kLookaheadFrames;
}

// The most rows that one push of a stream can make any layer lay out.
std::size_t rows_of_push(const SoundModel& model, std::size_t steps, bool last) {
  const std::size_t context =
      2 * std::max({max_pad(model.decoder.contexts()), max_pad(model.dvae_decoder.contexts()), max_pad(model.vocos.contexts())});
  return context + kFramesPerStep * steps + (last ? max_mel_pad(model) + total_pad(model.vocos.contexts()) : 0);
}

std::vector<StreamState> make_states(std::size_t slots, std::span<const ContextSpec> contexts) {
  return std::vector<StreamState>(slots, StreamState(contexts));
}

}  // namespace

StreamDecoder::StreamDecoder(const SoundModel& model, ops::ComputePool& pool, const StreamDecoderOptions& options)
    : model_(model),
      pool_(pool),
      max_steps_(options.max_steps),
      max_rows_(std::max(kGroupRows, rows_of_push(model, options.max_steps, true))),
      inverse_stft_(model.vocos.window(), model.vocos.hop(), pool.workers()),
      streams_(options.slots),
      decoder_states_(make_states(options.slots, model.decoder.contexts())),
      dvae_states_(make_states(options.slots, model.dvae_decoder.contexts())),
      vocos_states_(make_states(options.slots, model.vocos.contexts())),
      rows_(max_rows_, std::max({model.decoder.max_width(), model.dvae_decoder.max_width(), model.vocos.max_width()}),
            std::max({model.decoder.max_inner(), model.dvae_decoder.max_inner(), model.vocos.max_inner()}), options.slots, model.format),
      mel_(max_rows_, model.vocos.inputs(), 0, options.slots) {
  for (Stream& stream : streams_) stream.tail = inverse_stft_.make_tail();
}

void StreamDecoder::open(std::uint32_t slot, engine::MelPath path) {
  Stream& stream = streams_[slot];
  stream.path = path;
  stream.open = true;
  InverseStft::reset(stream.tail);
  (path == engine::MelPath::kHidden ? decoder_states_ : dvae_states_)[slot].reset();
  vocos_states_[slot].reset();
}

void StreamDecoder::push(std::span<DecodePush> work) {
  for (std::size_t begin = 0; begin < work.size();) {
    std::size_t end = begin, rows = 0;
    do {
      rows += rows_of_push(model_, work[end].steps, work[end].last);
      ++end;
    } while (end < work.size() && rows + rows_of_push(model_, work[end].steps, work[end].last) <= max_rows_);
    push_group(work.subspan(begin, end - begin));
    begin = end;
  }
}

void StreamDecoder::push_group(std::span<DecodePush> group) {
  mel_.clear(model_.vocos.inputs());
  compute_mel(group, engine::MelPath::kHidden);
  compute_mel(group, engine::MelPath::kCodes);

  rows_.clear(mel_.width());
  const float* mel = mel_.data();
  for (const StreamRows::Segment& segment : mel_.segments()) {
    const std::size_t values = segment.rows * mel_.width();
    std::copy_n(mel, values, rows_.append(segment));
    mel += values;
  }
  model_.vocos.forward(pool_, rows_, vocos_states_);
  inverse_stft_.to_time(pool_, rows_);

  const float* frames = rows_.data();
  for (const StreamRows::Segment& segment : rows_.segments()) {
    DecodePush& push = *std::find_if(group.begin(), group.end(), [&](const DecodePush& p) { return p.slot == segment.stream; });
    Stream& stream = streams_[push.slot];
    push.samples = inverse_stft_.overlap_add({frames, segment.rows * rows_.width()}, segment.rows, segment.last, stream.tail, push.pcm);
    stream.open = !segment.last;
    frames += segment.rows * rows_.width();
  }
}

// Runs the group's streams of one path and appends their log-mel rows to mel_.
void StreamDecoder::compute_mel(std::span<DecodePush> group, engine::MelPath path) {
  const bool from_hidden = path == engine::MelPath::kHidden;
  const MelNetwork& network = from_hidden ? model_.decoder : model_.dvae_decoder;
  // The two frames of a step lie one behind the other: the first half of a hidden state, or of the embedded codes, is the first.
  const std::size_t step_width = kFramesPerStep * network.inputs();
  rows_.clear(network.inputs());
  for (const DecodePush& push : group) {
    if (streams_[push.slot].path != path) continue;
    assert(streams_[push.slot].open && push.steps <= max_steps_ && push.pcm.size() >= max_samples(push.steps, push.last));
    float* to = rows_.append({push.slot, push.steps * kFramesPerStep, push.last});
    if (from_hidden) {
      std::copy_n(push.hidden, push.steps * step_width, to);
    } else {
      for (std::size_t t = 0; t < push.steps; ++t) model_.quantizer.embed(push.codes[t], to + t * step_width);
    }
  }
  if (rows_.segments().empty()) return;
  network.forward(pool_, rows_, from_hidden ? decoder_states_ : dvae_states_);
  const float* mel = rows_.data();
  for (const StreamRows::Segment& segment : rows_.segments()) {
    std::copy_n(mel, segment.rows * rows_.width(), mel_.append(segment));
    mel += segment.rows * rows_.width();
  }
}

std::uint32_t StreamDecoder::lookahead_steps() const noexcept {
  return static_cast<std::uint32_t>((lookahead_frames(model_) + kFramesPerStep - 1) / kFramesPerStep);
}

std::uint32_t StreamDecoder::samples_per_step() const noexcept { return static_cast<std::uint32_t>(kFramesPerStep * model_.vocos.hop()); }

std::size_t StreamDecoder::max_samples(std::uint32_t steps, bool last) const noexcept {
  // A flush brings everything held back, less the hop that centring costs an utterance.
  const std::size_t frames = kFramesPerStep * steps + (last ? lookahead_frames(model_) : 0);
  return frames * model_.vocos.hop();
}

std::uint64_t StreamDecoder::multiply_adds() const noexcept { return rows_.multiply_adds(); }

}  // namespace tts::model
