#include "poisson.h"

#include <cmath>

namespace tts::bench {

double PoissonArrivals::next() {
  const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;  // [0, 1); std::exponential_distribution differs by library
  now_ += -std::log1p(-uniform) / rate_;
  return now_;
}

}  // namespace tts::bench
