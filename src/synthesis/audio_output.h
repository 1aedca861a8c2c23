#pragma once
// One request's way from model PCM to encoded packets in its stream log.

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tts/audio/encoder.h"
#include "tts/audio/format.h"
#include "tts/audio/packetizer.h"
#include "tts/audio/pcm_pipeline.h"
#include "tts/base/result.h"
#include "tts/resume/stream_log.h"

namespace tts::synthesis {

struct AudioOutputOptions {
  audio::AudioFormat format;
  std::uint32_t source_rate = 24000;
  double speed = 1.0;
  std::uint32_t crossfade_ms = 50;
  std::chrono::milliseconds packet{0};  // 0 = what one push gave, at most a second
  bool whole = false;                // one packet at the end, with true sizes in its headers
  std::uint32_t max_seconds = 1800;  // of audio at the output rate
  std::uint32_t opus_complexity = 5;
};

// Not thread-safe. `log` must outlive it; ending the log is its owner's business.
class AudioOutput {
 public:
  static Result<std::unique_ptr<AudioOutput>> make(const AudioOutputOptions& options, resume::StreamLog& log);

  // kTooLarge beyond max_seconds; kInternal when the encoder cannot be made. Nothing may follow an error.
  // Of the utterance whose turn it is, at the source rate. more_follows: a later push brings at least a cross-fade of it.
  Status push(std::span<const float> samples, bool more_follows = false);
  Status end_utterance();                       // the next push is faded into what came before
  Status finish();                              // everything held back, and the container's tail

  std::uint64_t samples() const noexcept { return samples_; }  // at the output rate, so far
  std::uint64_t audible() const noexcept;  // of them, those that a player can hear from the packets so far
  bool log_is_full() const noexcept { return log_is_full_; }   // the last call's last packet reached the high-water mark

 private:
  AudioOutput(const AudioOutputOptions& options, std::unique_ptr<audio::PcmPipeline> pipeline, resume::StreamLog& log);

  void begin_call();
  Status accept();  // scratch_ to packets, or to whole_
  void encode_packet(std::span<const float> samples);
  void append();
  Status finish_whole();

  const AudioOutputOptions options_;
  const std::uint64_t max_samples_;
  const std::unique_ptr<audio::PcmPipeline> pipeline_;
  std::unique_ptr<audio::Encoder> encoder_;  // null while `whole` collects
  resume::StreamLog& log_;
  audio::Packetizer packetizer_;
  const bool as_made_;  // no packet waits to become full
  std::vector<float> scratch_;
  std::vector<float> whole_;
  audio::Bytes bytes_;  // encoded, not yet appended
  std::uint64_t samples_ = 0;
  std::uint64_t encoded_ = 0;         // samples given to the encoder
  std::uint64_t first_of_bytes_ = 0;  // position of the first sample that bytes_ let a player hear
  bool log_is_full_ = false;
};

}  // namespace tts::synthesis
