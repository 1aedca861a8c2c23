#pragma once

#include <cstddef>

namespace tts::model {

// out[2i], out[2i + 1] = min(exp(log_magnitude[i]), limit) * (cos phase[i], sin phase[i]). Vectorised for the machine it runs on;
// error a few units in the last place. Phases beyond +-39000 are clamped.
void polar_to_complex(const float* log_magnitude, const float* phase, std::size_t n, float limit, float* out);

}  // namespace tts::model
