#pragma once
// What a listener would have heard: plays from the first audio on, and stops whenever nothing is left to play.

#include <cstddef>

namespace tts::bench {

// Times are seconds on any one clock; no call goes back in time.
class Playback {
 public:
  // Audio of `seconds` > 0 came at `at`. Returns when its first sample is heard.
  double arrived(double at, double seconds);

  bool started() const noexcept { return received_ > 0; }
  double received() const noexcept { return received_; }  // seconds of audio
  double ends_at() const noexcept { return ends_at_; }    // when what has come will have been heard

  // Silences in the middle of the speech: how often and for how long the listener had nothing to play.
  std::size_t underruns() const noexcept { return underruns_; }
  double underrun_seconds() const noexcept { return underrun_seconds_; }

 private:
  double received_ = 0;
  double ends_at_ = 0;
  std::size_t underruns_ = 0;
  double underrun_seconds_ = 0;
};

}  // namespace tts::bench
