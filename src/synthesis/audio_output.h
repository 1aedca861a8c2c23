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
  bool adaptive_bitrate = false;
};

// Not thread-safe. `log` must outlive it; ending the log is its owner's business.
class AudioOutput {
 public:
  static Result<std::unique_ptr<AudioOutput>> make(const AudioOutputOptions& options, resume::StreamLog& log);

  // kTooLarge beyond max_seconds; kInternal when the encoder cannot be made. Nothing may follow an error.
  // Of the utterance whose turn it is, at the source rate. more_follows: a later push brings at least a cross-fade of it.
  Status push(std::span<const float> samples, bool more_follows = false);
  Status end_utterance();                       // the next push is faded into what came before
  Status finish();                              // everything held back, and the container's tail; marks that no packet took

  // The mark stands before the audio that the next packet brings.
  void mark(const resume::Mark& mark) { marks_.push_back(mark); }
  // At a pause, between utterances: everything held back, with as little silence as the encoder takes; what comes next is not faded in.
  // Then the marks `behind`, on a packet without bytes; their first_sample is filled in.
  Status settle(std::vector<resume::Mark> behind = {});
  bool settled() const noexcept { return settled_; }  // nothing is held back (except by encoders that cannot put it out)
  // Between utterances: of those that follow. A change puts everything out that is held back for a cross-fade.
  Status set_speed(double speed);
  void set_bitrate(std::uint32_t bits_per_second);  // Opus: from the next packet on

  std::uint64_t samples() const noexcept { return samples_; }  // at the output rate, so far
  std::uint64_t audible() const noexcept;  // of them, those that a player can hear from the packets so far
  bool begun() const noexcept { return begun_; }           // a packet with bytes has been appended
  bool log_is_full() const noexcept { return log_is_full_; }   // the last call's last packet reached the high-water mark

 private:
  AudioOutput(const AudioOutputOptions& options, std::unique_ptr<audio::PcmPipeline> pipeline, resume::StreamLog& log);

  void begin_call();
  Status accept();  // scratch_ to packets, or to whole_
  void encode_packet(std::span<const float> samples);
  void append();
  void append_marks();
  Status renew_pipeline(double speed);
  Status finish_whole();

  const AudioOutputOptions options_;
  const std::uint64_t max_samples_;
  std::unique_ptr<audio::PcmPipeline> pipeline_;
  double speed_;
  std::unique_ptr<audio::Encoder> encoder_;  // null while `whole` collects
  resume::StreamLog& log_;
  audio::Packetizer packetizer_;
  const bool as_made_;  // no packet waits to become full
  std::vector<float> scratch_;
  std::vector<float> whole_;
  audio::Bytes bytes_;  // encoded, not yet appended
  std::vector<resume::Mark> marks_;   // likewise
  std::uint32_t bitrate_ = 0;         // as last set; 0 = that of the format
  std::uint64_t samples_ = 0;
  std::uint64_t encoded_ = 0;         // samples given to the encoder
  std::uint64_t first_of_bytes_ = 0;  // position of the first sample that bytes_ let a player hear
  bool settled_ = true;
  bool begun_ = false;
  bool log_is_full_ = false;
};

}  // namespace tts::synthesis
