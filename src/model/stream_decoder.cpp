#include "stream_decoder.h"

#include <algorithm>
#include <cassert>

namespace tts::model {
namespace {

constexpr std::size_t kFramesPerStep = 2;

// Rows of one pass over the weights when many streams are pushed: enough to be bound by arithmetic, small enough for the caches.
constexpr std::size_t kGroupRows = 512;

std::size_t max_mel_pad(const SoundModel& model) {
  return std::max(total_pad(model.decoder.contexts()), total_pad(model.dvae->contexts()));
}

std::size_t lookahead_frames(const SoundModel& model) {
  return max_mel_pad(model) + total_pad(model.vocos.contexts()) + InverseStft::kLookaheadFrames;
}

// The most rows that one push of a stream can make any layer lay out: the rows, and two windows between their neighbours.
std::size_t rows_of_push(const SoundModel& model, std::size_t steps, bool to_the_end) {
  const std::size_t context =
      4 * std::max({max_pad(model.decoder.contexts()), max_pad(model.dvae->contexts()), max_pad(model.vocos.contexts())});
  return context + kFramesPerStep * steps + (to_the_end ? max_mel_pad(model) + total_pad(model.vocos.contexts()) : 0);
}

std::vector<StreamState> make_states(std::size_t slots, std::span<const ContextSpec> contexts) {
  std::vector<StreamState> states;
  states.reserve(slots);
  for (std::size_t slot = 0; slot < slots; ++slot) states.emplace_back(contexts);
  return states;
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
      dvae_states_(make_states(options.slots, model.dvae->contexts())),
      vocos_states_(make_states(options.slots, model.vocos.contexts())),
      scratch_tails_(pool.workers(), inverse_stft_.make_tail()),
      rows_({.rows = max_rows_,
             .width = std::max({model.decoder.max_width(), model.dvae->max_width(), model.vocos.max_width()}),
             .inner = std::max({model.decoder.max_inner(), model.dvae->max_inner(), model.vocos.max_inner()}),
             .segments = options.slots,
             .format = model.format}),
      mel_(max_rows_ * model.vocos.inputs()) {
  mel_segments_.reserve(options.slots);
  for (Stream& stream : streams_) stream.tail = inverse_stft_.make_tail();
}

void StreamDecoder::open(std::uint32_t slot, engine::MelPath path) {
  const MelNetwork& network = path == engine::MelPath::kHidden ? model_.decoder : model_.dvae->decoder();
  Stream& stream = streams_[slot];
  static_cast<Progress&>(stream) = {.path = path, .network = &network, .open = true};
  InverseStft::reset(stream.tail);
}

std::vector<StreamState>& StreamDecoder::mel_states(engine::MelPath path) noexcept {
  return path == engine::MelPath::kHidden ? decoder_states_ : dvae_states_;
}

const std::vector<StreamState>& StreamDecoder::mel_states(engine::MelPath path) const noexcept {
  return path == engine::MelPath::kHidden ? decoder_states_ : dvae_states_;
}

// A stream that saw no frame has no past: nothing of its rings is ever read.
std::size_t StreamDecoder::saved_bytes(std::uint32_t slot) const noexcept {
  const Stream& stream = streams_[slot];
  if (stream.frames == 0) return 0;
  return sizeof(float) * (mel_states(stream.path)[slot].values().size() + vocos_states_[slot].values().size() + stream.tail.sums.size());
}

StreamDecoder::Saved StreamDecoder::save(std::uint32_t slot) const {
  const Stream& stream = streams_[slot];
  Saved saved;
  saved.progress_ = static_cast<const Progress&>(stream);
  saved.tail_frames_ = stream.tail.frames;
  if (stream.frames == 0) return saved;
  saved.values_ = std::make_unique_for_overwrite<float[]>(saved_bytes(slot) / sizeof(float));
  float* to = saved.values_.get();
  const StreamState &mel = mel_states(stream.path)[slot], &vocos = vocos_states_[slot];
  for (const std::span<const float> values : {mel.values(), vocos.values(), std::span(stream.tail.sums)}) {
    to = std::copy(values.begin(), values.end(), to);
  }
  return saved;
}

void StreamDecoder::restore(std::uint32_t slot, const Saved& saved) noexcept {
  Stream& stream = streams_[slot];
  static_cast<Progress&>(stream) = saved.progress_;
  stream.tail.frames = saved.tail_frames_;
  if (saved.values_ == nullptr) return InverseStft::reset(stream.tail);
  const float* from = saved.values_.get();
  StreamState &mel = mel_states(stream.path)[slot], &vocos = vocos_states_[slot];
  for (const std::span<float> values : {mel.values(), vocos.values(), std::span(stream.tail.sums)}) {
    std::copy_n(from, values.size(), values.begin());
    from += values.size();
  }
}

void StreamDecoder::push(std::span<DecodePush> work) {
  const auto rows_of = [&](const DecodePush& push) {
    return rows_of_push(model_, push.steps, push.last || push.lookahead < lookahead_steps());
  };
  for (std::size_t begin = 0; begin < work.size();) {
    std::size_t end = begin, rows = 0;
    do {
      rows += rows_of(work[end]);
      ++end;
    } while (end < work.size() && rows + rows_of(work[end]) <= max_rows_);
    push_group(work.subspan(begin, end - begin));
    begin = end;
  }
}

void StreamDecoder::push_group(std::span<DecodePush> group) {
  mel_segments_.clear();
  compute_mel(group, engine::MelPath::kHidden);
  compute_mel(group, engine::MelPath::kCodes);

  rows_.clear(model_.vocos.inputs());
  const float* mel = mel_.data();
  for (const StreamRows::Segment& segment : mel_segments_) {
    const std::size_t values = (segment.rows.rows + segment.provisional.rows) * rows_.width();
    std::copy_n(mel, values, rows_.append(segment));
    mel += values;
  }
  model_.vocos.forward(pool_, rows_, vocos_states_);
  inverse_stft_.to_time(pool_, rows_);

  const std::span<const StreamRows::Segment> segments = rows_.segments();
  pool_.run(segments.size(), [&](std::size_t i, std::uint32_t worker) { write_samples(segments[i], scratch_tails_[worker]); });
}

// Runs the group's streams of one path and appends their log-mel rows to mel_.
void StreamDecoder::compute_mel(std::span<DecodePush> group, engine::MelPath path) {
  const bool from_hidden = path == engine::MelPath::kHidden;
  // The two frames of a step lie one behind the other: the first half of a hidden state, or of the embedded codes, is the first.
  const std::size_t width = from_hidden ? model_.decoder.inputs() : model_.dvae->inputs(), step_width = kFramesPerStep * width;
  const MelNetwork* network = nullptr;
  rows_.clear(width);
  for (DecodePush& push : group) {
    Stream& stream = streams_[push.slot];
    if (stream.path != path) continue;
    assert(stream.open && push.steps <= max_steps_ && push.pcm.size() >= max_samples(push.steps));
    stream.push = &push;
    network = stream.network;
    float* to = rows_.append(begin_segment(push));
    if (from_hidden) {
      std::copy_n(push.hidden, push.steps * step_width, to);
    } else {
      for (std::size_t t = 0; t < push.steps; ++t) model_.dvae->quantizer().embed(push.codes[t], to + t * step_width);
    }
  }
  if (network == nullptr) return;
  network->forward(pool_, rows_, mel_states(path));
  float* to = mel_.data();
  for (const StreamRows::Segment& done : mel_segments_) to += (done.rows.rows + done.provisional.rows) * rows_.width();
  for (const StreamRows::Segment& segment : rows_.segments()) {
    for (const StreamRows::Run& run : {segment.rows, segment.provisional}) {
      to = std::copy_n(rows_.row(run.first), run.rows * rows_.width(), to);
    }
    mel_segments_.push_back(segment);
  }
}

// The new frames of a stream at the input of its mel network, and what is to be made before its time.
StreamRows::Segment StreamDecoder::begin_segment(const DecodePush& push) {
  Stream& stream = streams_[push.slot];
  StreamRows::Segment segment{.stream = push.slot, .rows = {.begin = stream.frames, .rows = kFramesPerStep * push.steps}, .last = push.last};
  stream.frames = segment.rows.end();
  stream.early = {0, 0};
  if (push.last || push.lookahead >= lookahead_steps()) return segment;

  const auto reach = static_cast<std::int64_t>(total_pad(stream.network->contexts()) + total_pad(model_.vocos.contexts()));
  const std::int64_t exact = stream.frames - reach - InverseStft::kLookaheadFrames;
  stream.early.begin = std::max(stream.blocks, exact);
  stream.early.end = std::min(stream.frames - 1, stream.frames - static_cast<std::int64_t>(kFramesPerStep * push.lookahead));
  if (stream.early.begin < stream.early.end) {
    segment.wanted_begin = stream.early.begin - InverseStft::kFramesBefore - reach;
    segment.wanted_end = stream.early.end + InverseStft::kLookaheadFrames + reach;
    segment.end = stream.frames;
  }
  return segment;
}

void StreamDecoder::write_samples(const StreamRows::Segment& segment, InverseStft::Tail& scratch) {
  Stream& stream = streams_[segment.stream];
  DecodePush& push = *stream.push;
  const StreamRows::Run &rows = segment.rows, &provisional = segment.provisional;
  // Blocks that went out early come up once more, exact by now, and are left out.
  push.samples =
      inverse_stft_.overlap_add(rows_.row(rows.first), rows.rows, segment.last, {.begin = stream.blocks}, stream.tail, push.pcm.data());
  if (provisional.rows > 0) {
    InverseStft::reset(scratch, provisional.begin);
    if (provisional.begin == rows.end()) std::copy(stream.tail.sums.begin(), stream.tail.sums.end(), scratch.sums.begin());
    push.samples += inverse_stft_.overlap_add(rows_.row(provisional.first), provisional.rows, provisional.end() == segment.end, stream.early,
                                              scratch, push.pcm.data() + push.samples);
  }
  stream.blocks += static_cast<std::int64_t>(push.samples / model_.vocos.hop());
  stream.open = !segment.last;
}

std::uint32_t StreamDecoder::lookahead_steps() const noexcept {
  return static_cast<std::uint32_t>((lookahead_frames(model_) + kFramesPerStep - 1) / kFramesPerStep);
}

std::uint32_t StreamDecoder::samples_per_step() const noexcept { return static_cast<std::uint32_t>(kFramesPerStep * model_.vocos.hop()); }

std::size_t StreamDecoder::max_samples(std::uint32_t steps) const noexcept {
  return std::size_t{steps + lookahead_steps()} * samples_per_step();
}

std::uint64_t StreamDecoder::multiply_adds() const noexcept { return rows_.multiply_adds(); }

}  // namespace tts::model
