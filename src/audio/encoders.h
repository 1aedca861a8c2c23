#pragma once
// One factory per container; make_encoder has checked the options before it calls one of them. nullptr: the codec library refused.

#include <cstdint>
#include <memory>

#include "tts/audio/encoder.h"

namespace tts::audio {

// Comment that marks the audio as machine-made, in every container that has room for comments.
inline constexpr char kSyntheticTag[] = "SYNTHETIC=true";
inline constexpr char kEncoderTag[] = "ENCODER=chattts-server";

std::unique_ptr<Encoder> make_pcm_encoder();
std::unique_ptr<Encoder> make_wav_encoder(std::uint32_t sample_rate, std::uint64_t total_samples);
std::unique_ptr<Encoder> make_flac_encoder(std::uint32_t sample_rate, std::uint64_t total_samples);
std::unique_ptr<Encoder> make_mp3_encoder(std::uint32_t sample_rate, std::uint32_t bitrate, bool whole);
std::unique_ptr<Encoder> make_mulaw_encoder();
std::unique_ptr<Encoder> make_alaw_encoder();

struct OpusSettings {
  std::uint32_t sample_rate = 24000;
  std::uint32_t bitrate = 48000;
  std::uint32_t complexity = 5;
  bool adaptive_bitrate = false;
};
std::unique_ptr<Encoder> make_ogg_opus_encoder(const OpusSettings& settings);
std::unique_ptr<Encoder> make_opus_packet_encoder(const OpusSettings& settings);

}  // namespace tts::audio
