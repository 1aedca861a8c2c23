#pragma once
// What became of one request, as its listener saw it. Seconds throughout.

#include <cstdint>
#include <string>
#include <vector>

namespace tts::bench {

enum class Fate : std::uint8_t {
  kDone,
  kRefused,  // 429 or 503: come again
  kFailed,   // another status, a broken stream, no answer
};

struct Outcome {
  Fate fate = Fate::kFailed;
  std::string error;       // why it is not kDone
  double retry_after = 0;  // the server's advice; 0 = none
  double asked = 0;        // since the load began
  double first_byte = 0;   // since asked, connecting included: to the first byte of the body
  double first_audio =
      0;             // since asked, to the first sample above -40 dBFS at its place on the listener's clock; the end when all is quiet
  double total = 0;  // since asked, to the last byte
  double audio = 0;  // how much was spoken
  double played_until = 0;   // since the load began: when the listener has heard it all
  std::vector<double> gaps;  // between two arrivals of audio

  double rtf() const noexcept { return total / audio; }
};

}  // namespace tts::bench
