#pragma once
// Float PCM to bytes of one container, incrementally.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tts/audio/format.h"
#include "tts/base/result.h"

namespace tts::audio {

using Bytes = std::vector<std::uint8_t>;

// One stream; not thread-safe, may move between threads. Calls append to `out` and never clear it.
// Order: start once, encode and the two below it any number of times, finish once.
class Encoder {
 public:
  virtual ~Encoder() = default;
  virtual void start(Bytes& out) = 0;                                     // headers
  virtual void encode(std::span<const float> samples, Bytes& out) = 0;    // mono at format.sample_rate; values beyond [-1, 1] clip
  // At a pause: puts out what was given so far, for which codecs of a stream add a little silence; returns its samples, which count as
  // given. The others do nothing: what they hold back comes with what follows.
  virtual std::uint64_t settle(Bytes&) { return 0; }
  virtual void set_bitrate(std::uint32_t /*bits_per_second*/) {}  // Opus: from the next packet on, forced into what Opus takes
  virtual void finish(Bytes& out) = 0;                                    // tail, padding, last page
  // Of the samples given, those that a player cannot hear from what was put out: a frame or a page waits to become full.
  virtual std::uint64_t held() const noexcept { return 0; }
  // Samples at the format's rate by which what a player decodes lags what was given, where the container does not say so itself: bare
  // Opus packets only. Known before start().
  virtual std::uint32_t pre_skip() const noexcept { return 0; }
};

struct EncoderOptions {
  AudioFormat format;
  // Total samples at format.sample_rate when known before the first byte (whole-file replies), so that WAV and FLAC headers carry
  // true sizes. 0 = streaming: sizes are written as unknown.
  std::uint64_t total_samples = 0;
  std::uint32_t opus_complexity = 5;  // 0..10: work spent on a given bit rate; below 5 without the pitch filter that voices need
  // The bitrate will be changed while it runs: Opus then uses its speech modes at every rate, because its application is fixed once it
  // has begun and the transform coder alone is no good at low rates.
  bool adaptive_bitrate = false;
};

// kInvalidArgument for a rate, bitrate or complexity the container does not take; kInternal when the codec library refuses.
Result<std::unique_ptr<Encoder>> make_encoder(const EncoderOptions& options);

}  // namespace tts::audio
