// RIFF/WAVE and bare 16-bit little-endian PCM.

#include <cassert>
#include <limits>

#include "bytes.h"
#include "encoders.h"
#include "samples.h"

namespace tts::audio {
namespace {

constexpr std::uint32_t kUnknownSize = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kFormatPcm = 1;
constexpr std::uint32_t kChannels = 1;
constexpr std::uint32_t kBytesPerSample = 2;

void put_samples(std::span<const float> samples, Bytes& out) {
  const std::size_t begin = out.size();
  out.resize(begin + samples.size() * kBytesPerSample);
  std::uint8_t* at = out.data() + begin;
  for (const float sample : samples) {
    const auto value = static_cast<std::uint16_t>(to_s16(sample));
    *at++ = static_cast<std::uint8_t>(value);
    *at++ = static_cast<std::uint8_t>(value >> 8);
  }
}

class PcmEncoder final : public Encoder {
 public:
  void start(Bytes&) override {}
  void encode(std::span<const float> samples, Bytes& out) override { put_samples(samples, out); }
  void finish(Bytes&) override {}
};

class WavEncoder final : public Encoder {
 public:
  WavEncoder(std::uint32_t sample_rate, std::uint64_t total_samples) : sample_rate_(sample_rate), total_samples_(total_samples) {}

  void start(Bytes& out) override {
    const bool known = total_samples_ != 0;
    const auto data_bytes = static_cast<std::uint32_t>(total_samples_ * kBytesPerSample);
    put_text(out, "RIFF");
    put_u32(out, known ? 36 + data_bytes : kUnknownSize);
    put_text(out, "WAVEfmt ");
    put_u32(out, 16);
    put_u16(out, kFormatPcm);
    put_u16(out, kChannels);
    put_u32(out, sample_rate_);
    put_u32(out, sample_rate_ * kBytesPerSample);
    put_u16(out, kChannels * kBytesPerSample);
    put_u16(out, kBytesPerSample * 8);
    put_text(out, "data");
    put_u32(out, known ? data_bytes : kUnknownSize);
  }

  void encode(std::span<const float> samples, Bytes& out) override {
    written_ += samples.size();
    put_samples(samples, out);
  }

  void finish(Bytes&) override { assert(total_samples_ == 0 || written_ == total_samples_); }

 private:
  std::uint32_t sample_rate_;
  std::uint64_t total_samples_;
  std::uint64_t written_ = 0;
};

}  // namespace

std::unique_ptr<Encoder> make_pcm_encoder() { return std::make_unique<PcmEncoder>(); }

std::unique_ptr<Encoder> make_wav_encoder(std::uint32_t sample_rate, std::uint64_t total_samples) {
  return std::make_unique<WavEncoder>(sample_rate, total_samples);
}

}  // namespace tts::audio
