#include "audio_meter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include <ogg/ogg.h>
#include <opus/opus.h>

namespace tts::bench {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::uint32_t little_endian(const std::uint8_t* bytes, int count) {
  std::uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

class PcmMeter final : public AudioMeter {
 public:
  explicit PcmMeter(std::uint32_t sample_rate) : rate_(sample_rate) {
    if (sample_rate == 0) throw std::runtime_error("the reply does not tell its sample rate");
  }

  Metered feed(Bytes bytes) override {
    std::uint64_t samples = 0;
    std::optional<std::uint64_t> loud;
    const auto take = [&](std::uint8_t low, std::uint8_t high) {
      const auto value = static_cast<std::int16_t>(low | high << 8);
      if (!heard_ && !loud && std::abs(int{value}) > kLoud) loud = samples;
      ++samples;
    };
    if (odd_ && !bytes.empty()) {
      take(*odd_, bytes.front());
      bytes = bytes.subspan(1);
      odd_.reset();
    }
    if (heard_ || loud) {  // only the count matters now
      samples += bytes.size() / 2;
    } else {
      for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) take(bytes[i], bytes[i + 1]);
    }
    if (bytes.size() % 2 != 0) odd_ = bytes.back();
    Metered metered{.seconds = static_cast<double>(samples) / rate_, .audible = {}};
    if (loud) {
      heard_ = true;
      metered.audible = static_cast<double>(*loud) / rate_;
    }
    return metered;
  }

 private:
  static constexpr int kLoud = static_cast<int>(kAudibleLevel * 32768);

  const double rate_;
  std::optional<std::uint8_t> odd_;  // first half of a sample that a piece cut in two
  bool heard_ = false;
};

class WavMeter final : public AudioMeter {
 public:
  Metered feed(Bytes bytes) override {
    if (pcm_) return pcm_->feed(bytes);
    header_.append(bytes.begin(), bytes.end());
    const auto data = find_data();
    if (data == 0) return {};
    pcm_.emplace(rate_);
    return pcm_->feed(Bytes(reinterpret_cast<const std::uint8_t*>(header_.data()), header_.size()).subspan(data));
  }

 private:
  static constexpr std::size_t kMostHeader = 4096;

  // Offset of the first sample; 0 = the header is not complete.
  std::size_t find_data() {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(header_.data());
    if (header_.size() >= 12 && (!header_.starts_with("RIFF") || header_.compare(8, 4, "WAVE") != 0))
      throw std::runtime_error("the reply is not WAV");
    for (std::size_t at = 12; at + 8 <= header_.size();) {
      if (header_.compare(at, 4, "data") == 0) return at + 8;
      if (header_.compare(at, 4, "fmt ") == 0 && at + 24 <= header_.size()) {
        const auto channels = little_endian(bytes + at + 10, 2), bits = little_endian(bytes + at + 22, 2);
        if (channels != 1 || bits != 16) throw std::runtime_error("the reply is not 16-bit mono WAV");
        rate_ = little_endian(bytes + at + 12, 4);
      }
      at += 8 + std::size_t{little_endian(bytes + at + 4, 4)};
    }
    if (header_.size() > kMostHeader) throw std::runtime_error("the reply's WAV header does not end");
    return 0;
  }

  std::string header_;
  std::uint32_t rate_ = 0;
  std::optional<PcmMeter> pcm_;
};

// A page can be played when it is complete, and tells by its granule how far it brings the listener. Packets are decoded only until the
// first sound: afterwards a stream costs next to nothing.
class OggOpusMeter final : public AudioMeter {
 public:
  OggOpusMeter() { ogg_sync_init(&sync_); }
  ~OggOpusMeter() override {
    if (has_stream_) ogg_stream_clear(&stream_);
    ogg_sync_clear(&sync_);
  }
  OggOpusMeter(const OggOpusMeter&) = delete;
  OggOpusMeter& operator=(const OggOpusMeter&) = delete;

  Metered feed(Bytes bytes) override {
    char* buffer = ogg_sync_buffer(&sync_, static_cast<long>(bytes.size()));
    if (buffer == nullptr) throw std::bad_alloc();
    std::memcpy(buffer, bytes.data(), bytes.size());
    ogg_sync_wrote(&sync_, static_cast<long>(bytes.size()));
    Metered metered;
    const double before = played();
    for (ogg_page page;;) {
      const int got = ogg_sync_pageout(&sync_, &page);
      if (got < 0) throw std::runtime_error("the reply is not Ogg");
      if (got == 0) break;
      take(page, before, metered);
    }
    metered.seconds = played() - before;
    return metered;
  }

 private:
  static constexpr double kRate = 48000;        // granules count at this rate, and so do we decode
  static constexpr int kMostFrames = 48 * 120;  // RFC 6716: a packet lasts at most 120 ms

  struct Delete {
    void operator()(OpusDecoder* decoder) const { opus_decoder_destroy(decoder); }
  };

  double played() const { return static_cast<double>(std::max<std::int64_t>(0, granule_ - pre_skip_)) / kRate; }

  void take(ogg_page& page, double before, Metered& metered) {
    if (!has_stream_) begin(page);
    if (decoder_) find_sound(page, before, metered);
    granule_ = std::max(granule_, std::int64_t{ogg_page_granulepos(&page)});  // 0 on the pages of the two headers
  }

  void begin(const ogg_page& page) {
    if (page.body_len < 19 || std::memcmp(page.body, "OpusHead", 8) != 0) throw std::runtime_error("the reply is not Opus");
    pre_skip_ = little_endian(page.body + 10, 2);
    int error = 0;
    decoder_.reset(opus_decoder_create(static_cast<opus_int32>(kRate), 1, &error));
    if (!decoder_ || ogg_stream_init(&stream_, ogg_page_serialno(&page)) != 0) throw std::bad_alloc();
    has_stream_ = true;
  }

  void find_sound(ogg_page& page, double before, Metered& metered) {
    ogg_stream_pagein(&stream_, &page);
    for (ogg_packet packet; ogg_stream_packetout(&stream_, &packet) == 1;) {
      if (packets_++ < 2) continue;  // OpusHead and OpusTags
      const int frames =
          opus_decode_float(decoder_.get(), packet.packet, static_cast<opus_int32>(packet.bytes), pcm_.data(), kMostFrames, 0);
      if (frames < 0) throw std::runtime_error(std::string("the reply's Opus cannot be decoded: ") + opus_strerror(frames));
      for (int i = 0; i < frames; ++i) {
        if (std::abs(pcm_[static_cast<std::size_t>(i)]) <= kAudibleLevel || decoded_ + i < pre_skip_) continue;
        metered.audible = static_cast<double>(decoded_ + i - pre_skip_) / kRate - before;
        decoder_.reset();
        return;
      }
      decoded_ += frames;
    }
  }

  ogg_sync_state sync_{};
  ogg_stream_state stream_{};
  bool has_stream_ = false;
  int packets_ = 0;
  std::int64_t pre_skip_ = 0;
  std::int64_t granule_ = 0;
  std::unique_ptr<OpusDecoder, Delete> decoder_;  // gone once the first sound has been met
  std::int64_t decoded_ = 0;
  std::array<float, kMostFrames> pcm_;
};

}  // namespace

std::unique_ptr<AudioMeter> make_audio_meter(std::string_view format, std::uint32_t sample_rate) {
  if (format == "pcm") return std::make_unique<PcmMeter>(sample_rate);
  if (format == "wav") return std::make_unique<WavMeter>();
  if (format == "opus") return std::make_unique<OggOpusMeter>();
  return nullptr;
}

}  // namespace tts::bench
