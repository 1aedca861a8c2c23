#pragma once
// Faster or slower speech at the same pitch (PICOLA, by libsonic).

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tts/audio/packetizer.h"

struct sonicStreamStruct;

namespace tts::audio {

// Not thread-safe. Works at 16-bit resolution, as libsonic does. n samples become about n / speed: the error stays below one pitch
// period (15 ms) plus 0.5 %.
class TimeStretcher {
 public:
  // nullptr: libsonic refused (out of memory).
  static std::unique_ptr<TimeStretcher> create(std::uint32_t sample_rate, double speed);

  void push(std::span<const float> samples, std::vector<float>& out);
  void finish(std::vector<float>& out);

 private:
  struct Delete {
    void operator()(sonicStreamStruct* stream) const;
  };

  TimeStretcher(std::uint32_t sample_rate, sonicStreamStruct* stream);
  void write(std::span<const float> block);
  void read(std::vector<float>& out);

  Packetizer blocks_;  // libsonic sees equal blocks however the input is cut
  std::vector<std::int16_t> scratch_;
  std::unique_ptr<sonicStreamStruct, Delete> stream_;
};

}  // namespace tts::audio
