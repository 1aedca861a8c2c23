#pragma once
// Requests that come independently of each other and of how fast they are answered.

#include <cstdint>
#include <random>

namespace tts::bench {

class PoissonArrivals {
 public:
  // `rate` > 0: arrivals a second on average. Same seed, same arrivals on every machine.
  PoissonArrivals(double rate, std::uint64_t seed) : rate_(rate), random_(seed) {}

  // Seconds since the beginning; grows from call to call.
  double next();

 private:
  const double rate_;
  std::mt19937_64 random_;
  double now_ = 0;
};

}  // namespace tts::bench
