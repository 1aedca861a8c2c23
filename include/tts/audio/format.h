#pragma once
// What a client can ask for, as plain data.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tts::audio {

enum class Container : std::uint8_t { kWav, kPcm, kMp3, kFlac, kOggOpus, kOpusPackets, kMulaw, kAlaw };

struct AudioFormat {
  Container container = Container::kWav;
  std::uint32_t sample_rate = 24000;  // Hz; see sample_rate_supported
  std::uint32_t bitrate = 0;          // bit/s, lossy containers only; 0 = the container's default
};

// "wav", "pcm", "mp3", "flac", "opus" (alias "ogg_opus").
std::optional<Container> parse_container(std::string_view name) noexcept;
std::string_view to_string(Container container) noexcept;
std::string_view content_type(Container container) noexcept;

// Ogg Opus: 8000, 12000, 16000, 24000, 48000. mp3: the MPEG rates 8000..48000. Others: 8000..48000.
bool sample_rate_supported(Container container, std::uint32_t sample_rate) noexcept;

}  // namespace tts::audio
