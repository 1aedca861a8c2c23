#include "tts/audio/format.h"

#include <algorithm>
#include <array>

namespace tts::audio {
namespace {

constexpr std::array<std::uint32_t, 5> kOpusRates = {8000, 12000, 16000, 24000, 48000};
constexpr std::array<std::uint32_t, 9> kMpegRates = {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000};
constexpr std::uint32_t kLowestRate = 8000;
constexpr std::uint32_t kHighestRate = 48000;

}  // namespace

std::optional<Container> parse_container(std::string_view name) noexcept {
  if (name == "wav") return Container::kWav;
  if (name == "pcm") return Container::kPcm;
  if (name == "mp3") return Container::kMp3;
  if (name == "flac") return Container::kFlac;
  if (name == "opus" || name == "ogg_opus") return Container::kOggOpus;
  return std::nullopt;
}

std::string_view to_string(Container container) noexcept {
  switch (container) {
    case Container::kWav: return "wav";
    case Container::kPcm: return "pcm";
    case Container::kMp3: return "mp3";
    case Container::kFlac: return "flac";
    case Container::kOggOpus: return "opus";
    case Container::kOpusPackets: return "opus_packets";
    case Container::kMulaw: return "mulaw";
    case Container::kAlaw: return "alaw";
  }
  return "";
}

std::string_view content_type(Container container) noexcept {
  switch (container) {
    case Container::kWav: return "audio/wav";
    case Container::kPcm: return "audio/pcm";
    case Container::kMp3: return "audio/mpeg";
    case Container::kFlac: return "audio/flac";
    case Container::kOggOpus: return "audio/ogg; codecs=opus";
    case Container::kOpusPackets: return "audio/opus";
    case Container::kMulaw: return "audio/PCMU";
    case Container::kAlaw: return "audio/PCMA";
  }
  return "";
}

bool sample_rate_supported(Container container, std::uint32_t sample_rate) noexcept {
  switch (container) {
    case Container::kMulaw:
    case Container::kAlaw: return sample_rate == 8000;
    case Container::kOpusPackets:
    case Container::kOggOpus: return std::ranges::find(kOpusRates, sample_rate) != kOpusRates.end();
    case Container::kMp3: return std::ranges::find(kMpegRates, sample_rate) != kMpegRates.end();
    case Container::kWav:
    case Container::kPcm:
    case Container::kFlac: return sample_rate >= kLowestRate && sample_rate <= kHighestRate;
  }
  return false;
}

}  // namespace tts::audio
