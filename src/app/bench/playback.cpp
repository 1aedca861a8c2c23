#include "playback.h"

#include <algorithm>

namespace tts::bench {

double Playback::arrived(double at, double seconds) {
  if (started() && at > ends_at_) {
    ++underruns_;
    underrun_seconds_ += at - ends_at_;
  }
  const double heard = started() ? std::max(at, ends_at_) : at;
  ends_at_ = heard + seconds;
  received_ += seconds;
  return heard;
}

}  // namespace tts::bench
