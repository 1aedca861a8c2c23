#pragma once
// Running totals of a load, for the screen and for the verdict. All listeners of a load share one; used on the load's thread only.

#include <cstddef>

namespace tts::bench {

struct Tally {
  std::size_t asked = 0, done = 0, refused = 0, failed = 0;
  std::size_t underruns = 0;    // silences in the middle of a speech
  std::size_t dry = 0;          // requests with at least one
  double underrun_seconds = 0;  // all of them together
  double audio = 0;             // seconds that arrived

  std::size_t open() const noexcept { return asked - done - refused - failed; }
};

}  // namespace tts::bench
