#include "opus_packets.h"

#include <algorithm>
#include <cassert>

namespace tts::audio {
namespace {

// From here on the transform coder alone sounds as good as the speech and hybrid modes do on two thirds of the rate, for a quarter of their
// time (src/docs/decisions/audio.md).
constexpr std::uint32_t kTransformBitrate = 48000;

}  // namespace

std::unique_ptr<OpusPackets> OpusPackets::create(const OpusSettings& settings) {
  const std::uint32_t sample_rate = settings.sample_rate;
  const bool transform_only = settings.bitrate >= kTransformBitrate && !settings.adaptive_bitrate;
  int error = OPUS_OK;
  std::unique_ptr<OpusEncoder, Delete> encoder(
      opus_encoder_create(static_cast<opus_int32>(sample_rate), 1,
                          transform_only ? OPUS_APPLICATION_RESTRICTED_LOWDELAY : OPUS_APPLICATION_AUDIO, &error));
  if (!encoder || error != OPUS_OK) return nullptr;
  opus_int32 lookahead = 0;
  const bool ok = opus_encoder_ctl(encoder.get(), OPUS_SET_BITRATE(static_cast<opus_int32>(settings.bitrate))) == OPUS_OK &&
                  opus_encoder_ctl(encoder.get(), OPUS_SET_COMPLEXITY(static_cast<opus_int32>(settings.complexity))) == OPUS_OK &&
                  opus_encoder_ctl(encoder.get(), OPUS_SET_VBR(1)) == OPUS_OK &&
                  opus_encoder_ctl(encoder.get(), OPUS_SET_VBR_CONSTRAINT(1)) == OPUS_OK &&
                  opus_encoder_ctl(encoder.get(), OPUS_SET_SIGNAL(OPUS_SIGNAL_VOICE)) == OPUS_OK &&
                  opus_encoder_ctl(encoder.get(), OPUS_GET_LOOKAHEAD(&lookahead)) == OPUS_OK;
  if (!ok || lookahead < 0) return nullptr;
  const std::uint32_t pre_skip = static_cast<std::uint32_t>(lookahead) * (kOpusClock / sample_rate);
  return std::unique_ptr<OpusPackets>(new OpusPackets(sample_rate, encoder.release(), pre_skip));
}

void OpusPackets::set_bitrate(std::uint32_t bits_per_second) {
  const auto wanted = static_cast<opus_int32>(std::clamp(bits_per_second, kOpusMinBitrate, kOpusMaxBitrate));
  [[maybe_unused]] const int error = opus_encoder_ctl(encoder_.get(), OPUS_SET_BITRATE(wanted));
  assert(error == OPUS_OK);
}

std::span<const std::uint8_t> OpusPackets::encode_frame() {
  const opus_int32 bytes = opus_encode_float(encoder_.get(), frame_.data(), static_cast<int>(frame_size_), packet_.data(), kMaxPacketBytes);
  assert(bytes > 0);
  filled_ = 0;
  ++packets_;
  return std::span<const std::uint8_t>(packet_).first(static_cast<std::size_t>(bytes > 0 ? bytes : 0));
}

}  // namespace tts::audio
