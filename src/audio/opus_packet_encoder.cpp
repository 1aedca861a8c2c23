// Bare Opus packets, each behind its length: what a message-based transport carries.

#include "bytes.h"
#include "encoders.h"
#include "opus_packets.h"

namespace tts::audio {
namespace {

class OpusPacketEncoder final : public Encoder {
  auto writer(Bytes& out) {
    return [this, &out](std::span<const std::uint8_t> packet) {
      ++packets_;
      put_u16(out, static_cast<std::uint32_t>(packet.size()));
      out.insert(out.end(), packet.begin(), packet.end());
    };
  }

 public:
  explicit OpusPacketEncoder(std::unique_ptr<OpusPackets> opus) : opus_(std::move(opus)) {}

  void start(Bytes&) override {}

  void encode(std::span<const float> samples, Bytes& out) override { opus_->encode(samples, writer(out)); }

  std::uint64_t settle(Bytes& out) override { return opus_->settle(writer(out)); }

  void set_bitrate(std::uint32_t bits_per_second) override { opus_->set_bitrate(bits_per_second); }

  void finish(Bytes& out) override {
    if (opus_->unsettled()) opus_->finish(writer(out));
  }

  std::uint64_t held() const noexcept override { return opus_->held(packets_); }
  std::uint32_t pre_skip() const noexcept override { return opus_->lookahead(); }

 private:
  std::unique_ptr<OpusPackets> opus_;
  std::uint64_t packets_ = 0;
};

}  // namespace

std::unique_ptr<Encoder> make_opus_packet_encoder(const OpusSettings& settings) {
  auto opus = OpusPackets::create(settings);
  if (!opus) return nullptr;
  return std::make_unique<OpusPacketEncoder>(std::move(opus));
}

}  // namespace tts::audio
