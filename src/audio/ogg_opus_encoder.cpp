// Opus in Ogg (RFC 7845).

#include <cassert>
#include <string_view>

#include <ogg/ogg.h>

#include "bytes.h"
#include "encoders.h"
#include "opus_packets.h"

namespace tts::audio {
namespace {

// One logical stream a file, so any serial number serves; a constant keeps equal requests equal byte for byte.
constexpr int kSerial = 0x54545301;
// The packets of the first half second get pages of their own, so that a player can start and a stream that has just begun does not
// stall for what waits in a page; then pages end with every fifth packet (100 ms).
constexpr std::uint64_t kPacketsPerPage = 5;
constexpr std::uint64_t kSinglePackets = 25;

// Owns libogg's state of one logical stream and appends its pages.
class OggPages {
 public:
  OggPages() { ok_ = ogg_stream_init(&stream_, kSerial) == 0; }
  ~OggPages() { ogg_stream_clear(&stream_); }
  OggPages(const OggPages&) = delete;
  OggPages& operator=(const OggPages&) = delete;

  bool ok() const noexcept { return ok_; }

  void put(std::span<const std::uint8_t> data, std::uint64_t granule, bool last) {
    ogg_packet packet{};
    packet.packet = const_cast<std::uint8_t*>(data.data());  // copied by libogg, not changed
    packet.bytes = static_cast<long>(data.size());
    packet.b_o_s = packets_ == 0;
    packet.e_o_s = last;
    packet.granulepos = static_cast<ogg_int64_t>(granule);
    packet.packetno = static_cast<ogg_int64_t>(packets_++);
    [[maybe_unused]] const int refused = ogg_stream_packetin(&stream_, &packet);
    assert(refused == 0);
  }

  void end_page(Bytes& out) {
    ogg_page page;
    while (ogg_stream_flush(&stream_, &page) != 0) {
      out.insert(out.end(), page.header, page.header + page.header_len);
      out.insert(out.end(), page.body, page.body + page.body_len);
    }
  }

 private:
  ogg_stream_state stream_{};
  std::uint64_t packets_ = 0;
  bool ok_ = false;
};

Bytes id_header(std::uint32_t pre_skip, std::uint32_t sample_rate) {
  Bytes header;
  put_text(header, "OpusHead");
  header.push_back(1);  // version
  header.push_back(1);  // channels
  put_u16(header, pre_skip);
  put_u32(header, sample_rate);
  put_u16(header, 0);   // gain
  header.push_back(0);  // mapping family: mono or stereo, no table
  return header;
}

Bytes comment_header() {
  Bytes header;
  const auto put_string = [&](std::string_view text) {
    put_u32(header, static_cast<std::uint32_t>(text.size()));
    put_text(header, text);
  };
  put_text(header, "OpusTags");
  put_string(opus_get_version_string());
  put_u32(header, 2);
  put_string(kEncoderTag);
  put_string(kSyntheticTag);
  return header;
}

class OggOpusEncoder final : public Encoder {
 public:
  OggOpusEncoder(std::uint32_t sample_rate, std::unique_ptr<OpusPackets> opus) : sample_rate_(sample_rate), opus_(std::move(opus)) {}

  bool ready() const noexcept { return pages_.ok(); }

  void start(Bytes& out) override {
    pages_.put(id_header(opus_->pre_skip(), sample_rate_), 0, false);
    pages_.end_page(out);
    pages_.put(comment_header(), 0, false);
    pages_.end_page(out);
  }

  void encode(std::span<const float> samples, Bytes& out) override {
    opus_->encode(samples, [&](std::span<const std::uint8_t> packet) {
      ++packets_;
      pages_.put(packet, packets_ * kOpusPacketGranules, false);
      if (packets_ <= kSinglePackets || packets_ % kPacketsPerPage == 0) end_page(out);
    });
  }

  std::uint64_t settle(Bytes& out) override {
    const std::uint64_t silence = opus_->settle([&](std::span<const std::uint8_t> packet) {
      ++packets_;
      pages_.put(packet, packets_ * kOpusPacketGranules, false);
    });
    end_page(out);
    return silence;
  }

  void set_bitrate(std::uint32_t bits_per_second) override { opus_->set_bitrate(bits_per_second); }

  void finish(Bytes& out) override {
    const std::uint64_t end = opus_->pre_skip() + opus_->granules_in();
    opus_->finish([&](std::span<const std::uint8_t> packet) {
      ++packets_;
      const std::uint64_t full = packets_ * kOpusPacketGranules;
      const bool last = full >= end;
      pages_.put(packet, last ? end : full, last);  // the smaller granule of the last page trims the padding
    });
    end_page(out);
  }

  std::uint64_t held() const noexcept override { return opus_->held(packets_out_); }

 private:
  void end_page(Bytes& out) {
    pages_.end_page(out);
    packets_out_ = packets_;
  }

  const std::uint32_t sample_rate_;
  std::unique_ptr<OpusPackets> opus_;
  OggPages pages_;
  std::uint64_t packets_ = 0;
  std::uint64_t packets_out_ = 0;  // of these, those whose page has ended
};

}  // namespace

std::unique_ptr<Encoder> make_ogg_opus_encoder(const OpusSettings& settings) {
  auto opus = OpusPackets::create(settings);
  if (!opus) return nullptr;
  auto encoder = std::make_unique<OggOpusEncoder>(settings.sample_rate, std::move(opus));
  return encoder->ready() ? std::move(encoder) : nullptr;
}

}  // namespace tts::audio
