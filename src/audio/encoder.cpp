#include "tts/audio/encoder.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "encoders.h"
#include "opus_packets.h"

namespace tts::audio {
namespace {

constexpr std::uint64_t kWavHeaderBytes = 44;
constexpr std::uint64_t kMaxWavSamples = (std::numeric_limits<std::uint32_t>::max() - kWavHeaderBytes) / sizeof(std::int16_t);

constexpr std::uint32_t kOpusDefaultBitrate = 48000;
constexpr std::uint32_t kOpusMaxComplexity = 10;

// Layer III bit rates in kbit/s (ISO 11172-3, 13818-3); MPEG-2.5 as LAME offers it.
constexpr std::uint32_t kMpeg1Bitrates[] = {32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320};
constexpr std::uint32_t kMpeg2Bitrates[] = {8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160};
constexpr std::uint32_t kMpeg25Bitrates[] = {8, 16, 24, 32, 40, 48, 56, 64};
constexpr std::uint32_t kMp3DefaultBitrate = 128000;

std::span<const std::uint32_t> mp3_bitrates(std::uint32_t sample_rate) {
  if (sample_rate >= 32000) return kMpeg1Bitrates;
  if (sample_rate >= 16000) return kMpeg2Bitrates;
  return kMpeg25Bitrates;
}

Error wrong(std::string param, std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message), std::move(param)}; }

Result<std::uint32_t> opus_bitrate(std::uint32_t asked) {
  if (asked == 0) return kOpusDefaultBitrate;
  if (asked >= kOpusMinBitrate && asked <= kOpusMaxBitrate) return asked;
  return wrong("bitrate", "Opus takes " + std::to_string(kOpusMinBitrate) + " to " + std::to_string(kOpusMaxBitrate) + " bit/s, not " +
                              std::to_string(asked));
}

Result<std::uint32_t> mp3_bitrate(std::uint32_t sample_rate, std::uint32_t asked) {
  const auto offered = mp3_bitrates(sample_rate);
  if (asked == 0) return std::min(kMp3DefaultBitrate, offered.back() * 1000);
  if (std::ranges::any_of(offered, [&](std::uint32_t kbit) { return kbit * 1000 == asked; })) return asked;
  std::string list;
  for (const std::uint32_t kbit : offered) list += (list.empty() ? "" : ", ") + std::to_string(kbit * 1000);
  return wrong("bitrate", "mp3 at " + std::to_string(sample_rate) + " Hz takes one of " + list + " bit/s, not " + std::to_string(asked));
}

Result<std::unique_ptr<Encoder>> made(std::unique_ptr<Encoder> encoder) {
  if (!encoder) return Error{ErrorCode::kInternal, "the codec library refused to start", ""};
  return encoder;
}

}  // namespace

Result<std::unique_ptr<Encoder>> make_encoder(const EncoderOptions& options) {
  const auto& [container, sample_rate, bitrate] = options.format;
  if (!sample_rate_supported(container, sample_rate)) {
    return wrong("sample_rate",
                 std::string(to_string(container)) + " does not take a sample rate of " + std::to_string(sample_rate) + " Hz");
  }
  if (bitrate != 0 && !has_bitrate(container)) return wrong("bitrate", std::string(to_string(container)) + " has no bitrate; leave it out");

  switch (container) {
    case Container::kPcm: return made(make_pcm_encoder());
    case Container::kWav:
      if (options.total_samples > kMaxWavSamples) return Error{ErrorCode::kTooLarge, "a WAV file holds at most 4 GiB", "response_format"};
      return made(make_wav_encoder(sample_rate, options.total_samples));
    case Container::kFlac: return made(make_flac_encoder(sample_rate, options.total_samples));
    case Container::kMp3: {
      auto chosen = mp3_bitrate(sample_rate, bitrate);
      if (!chosen) return std::move(chosen).error();
      return made(make_mp3_encoder(sample_rate, *chosen, options.total_samples != 0));
    }
    case Container::kMulaw: return made(make_mulaw_encoder());
    case Container::kAlaw: return made(make_alaw_encoder());
    case Container::kOggOpus:
    case Container::kOpusPackets: {
      auto chosen = opus_bitrate(bitrate);
      if (!chosen) return std::move(chosen).error();
      if (options.opus_complexity > kOpusMaxComplexity) return wrong("opus_complexity", "Opus takes a complexity of 0 to 10");
      const OpusSettings settings{sample_rate, *chosen, options.opus_complexity, options.adaptive_bitrate};
      return made(container == Container::kOggOpus ? make_ogg_opus_encoder(settings) : make_opus_packet_encoder(settings));
    }
    default: break;
  }
  return Error{ErrorCode::kInternal, "unknown container", "format"};
}

}  // namespace tts::audio
