#pragma once
// Float PCM to bare Opus packets of 20 ms (RFC 6716), for any framing.

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include <opus/opus.h>

#include "samples.h"

namespace tts::audio {

inline constexpr std::uint32_t kOpusClock = 48000;  // granules and pre-skip count at this rate, whatever the input's
inline constexpr std::uint32_t kOpusPacketsPerSecond = 50;
inline constexpr std::uint32_t kOpusPacketGranules = kOpusClock / kOpusPacketsPerSecond;

// Not thread-safe. Packets depend on the samples alone, not on how they are cut into calls.
class OpusPackets {
 public:
  // sample_rate: one that Opus takes; bitrate: 6000..510000 bit/s, constrained VBR; complexity: 0..10. nullptr: libopus refused.
  static std::unique_ptr<OpusPackets> create(std::uint32_t sample_rate, std::uint32_t bitrate, std::uint32_t complexity);

  // Samples at kOpusClock by which the decoded signal lags the input, to be skipped at the start.
  std::uint32_t pre_skip() const noexcept { return pre_skip_; }

  // Input so far, in samples at kOpusClock.
  std::uint64_t granules_in() const noexcept { return samples_in_ * (kOpusClock / sample_rate_); }

  // Calls sink(std::span<const std::uint8_t>) for each packet that is complete; the span lives only during the call.
  template <class Sink>
  void encode(std::span<const float> samples, Sink&& sink) {
    samples_in_ += samples.size();
    for (const float sample : samples) {
      frame_[filled_++] = clean(sample);
      if (filled_ == frame_size_) sink(encode_frame());
    }
  }

  // Pushes the encoder's lookahead out with silence: at least one packet comes, and all packets together decode to at least
  // pre_skip() + granules_in() samples.
  template <class Sink>
  void finish(Sink&& sink) {
    const std::uint64_t needed = granules_in() + pre_skip_;
    while (packets_ * kOpusPacketGranules < needed) {
      while (filled_ < frame_size_) frame_[filled_++] = 0.0F;
      sink(encode_frame());
    }
  }

 private:
  static constexpr std::size_t kMaxFrame = kOpusPacketGranules;
  static constexpr std::size_t kMaxPacketBytes = 1276;  // RFC 6716: one frame and its table of contents

  struct Delete {
    void operator()(OpusEncoder* encoder) const { opus_encoder_destroy(encoder); }
  };

  OpusPackets(std::uint32_t sample_rate, OpusEncoder* encoder, std::uint32_t pre_skip)
      : sample_rate_(sample_rate), frame_size_(sample_rate / kOpusPacketsPerSecond), pre_skip_(pre_skip), encoder_(encoder) {}

  std::span<const std::uint8_t> encode_frame();

  const std::uint32_t sample_rate_;
  const std::size_t frame_size_;
  const std::uint32_t pre_skip_;
  std::uint64_t samples_in_ = 0;
  std::uint64_t packets_ = 0;
  std::size_t filled_ = 0;
  std::array<float, kMaxFrame> frame_;
  std::array<std::uint8_t, kMaxPacketBytes> packet_;
  std::unique_ptr<OpusEncoder, Delete> encoder_;
};

}  // namespace tts::audio
