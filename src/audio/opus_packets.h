#pragma once
// Float PCM to bare Opus packets of 20 ms (RFC 6716), for any framing.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include <opus/opus.h>

#include "encoders.h"
#include "samples.h"

namespace tts::audio {

inline constexpr std::uint32_t kOpusClock = 48000;  // granules and pre-skip count at this rate, whatever the input's
inline constexpr std::uint32_t kOpusMinBitrate = 6000;
inline constexpr std::uint32_t kOpusMaxBitrate = 510000;
inline constexpr std::uint32_t kOpusPacketsPerSecond = 50;
inline constexpr std::uint32_t kOpusPacketGranules = kOpusClock / kOpusPacketsPerSecond;

// Not thread-safe. Packets depend on the samples alone, not on how they are cut into calls.
class OpusPackets {
 public:
  // sample_rate: one that Opus takes; bitrate: kOpusMinBitrate..kOpusMaxBitrate, constrained VBR; complexity: 0..10. nullptr: libopus
  // refused.
  static std::unique_ptr<OpusPackets> create(const OpusSettings& settings);

  void set_bitrate(std::uint32_t bits_per_second);  // from the next packet on; forced into the range

  // Samples at kOpusClock by which the decoded signal lags the input, to be skipped at the start.
  std::uint32_t pre_skip() const noexcept { return pre_skip_; }

  // The same at the input's rate.
  std::uint32_t lookahead() const noexcept { return pre_skip_ / (kOpusClock / sample_rate_); }

  // Of the input so far, the samples that a player cannot hear from the first `packets` packets.
  std::uint64_t held(std::uint64_t packets) const noexcept {
    const std::uint64_t decoded = packets * frame_size_;
    const std::uint64_t heard = decoded - std::min<std::uint64_t>(decoded, lookahead());
    return samples_in_ - std::min(samples_in_, heard);
  }

  // Input so far, in samples at kOpusClock.
  std::uint64_t granules_in() const noexcept { return samples_in_ * (kOpusClock / sample_rate_); }

  // Calls sink(std::span<const std::uint8_t>) for each packet that is complete; the span lives only during the call.
  template <class Sink>
  void encode(std::span<const float> samples, Sink&& sink) {
    samples_in_ += samples.size();
    if (!samples.empty()) sound_in_ = samples_in_;
    for (const float sample : samples) {
      frame_[filled_++] = clean(sample);
      if (filled_ == frame_size_) sink(encode_frame());
    }
  }

  // Whether a player lacks some of the input that came before the silence of the last settle().
  bool unsettled() const noexcept { return sound_in_ > 0 && packets_ * frame_size_ < sound_in_ + lookahead(); }

  // Pushes everything out with as much silence as that takes and returns its samples, which count as input. No packet when settled.
  template <class Sink>
  std::uint64_t settle(Sink&& sink) {
    std::uint64_t silence = 0;
    while (unsettled()) {
      silence += frame_size_ - filled_;
      complete_with_silence(sink);
    }
    samples_in_ += silence;
    return silence;
  }

  // Pushes the encoder's lookahead out with silence: at least one packet comes, and all packets together decode to at least
  // pre_skip() + granules_in() samples.
  template <class Sink>
  void finish(Sink&& sink) {
    const std::uint64_t needed = granules_in() + pre_skip_;
    while (packets_ * kOpusPacketGranules < needed) complete_with_silence(sink);
  }

 private:
  static constexpr std::size_t kMaxFrame = kOpusPacketGranules;
  static constexpr std::size_t kMaxPacketBytes = 1276;  // RFC 6716: one frame and its table of contents

  struct Delete {
    void operator()(OpusEncoder* encoder) const { opus_encoder_destroy(encoder); }
  };

  OpusPackets(std::uint32_t sample_rate, OpusEncoder* encoder, std::uint32_t pre_skip)
      : sample_rate_(sample_rate), frame_size_(sample_rate / kOpusPacketsPerSecond), pre_skip_(pre_skip), encoder_(encoder) {}

  template <class Sink>
  void complete_with_silence(Sink& sink) {
    while (filled_ < frame_size_) frame_[filled_++] = 0.0F;
    sink(encode_frame());
  }

  std::span<const std::uint8_t> encode_frame();

  const std::uint32_t sample_rate_;
  const std::size_t frame_size_;
  const std::uint32_t pre_skip_;
  std::uint64_t samples_in_ = 0;
  std::uint64_t sound_in_ = 0;  // of them, up to the last one that was no silence of settle()
  std::uint64_t packets_ = 0;
  std::size_t filled_ = 0;
  std::array<float, kMaxFrame> frame_;
  std::array<std::uint8_t, kMaxPacketBytes> packet_;
  std::unique_ptr<OpusEncoder, Delete> encoder_;
};

}  // namespace tts::audio
