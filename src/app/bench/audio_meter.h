#pragma once
// Reads a stream of audio as it arrives, no deeper than timing needs: how many seconds came, and where the first sound is.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace tts::bench {

// The first sample beyond -40 dBFS is where speech becomes audible.
inline constexpr double kAudibleLevel = 0.01;

struct Metered {
  double seconds = 0;             // of audio that became playable with this piece
  std::optional<double> audible;  // where in that audio the stream's first audible sample is; absent = not here
};

// One stream. Throws std::runtime_error when the bytes are not what the format says.
class AudioMeter {
 public:
  virtual ~AudioMeter() = default;
  virtual Metered feed(std::span<const std::uint8_t> bytes) = 0;
};

// `format`: "pcm" (16 bit little endian, mono), "wav" (the same behind a header) or "opus" (in Ogg). `sample_rate` in Hz matters to pcm
// only. nullptr: a format that cannot be timed while it arrives.
std::unique_ptr<AudioMeter> make_audio_meter(std::string_view format, std::uint32_t sample_rate);

}  // namespace tts::bench
