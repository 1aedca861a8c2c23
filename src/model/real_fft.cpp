#include "real_fft.h"

#include <stdexcept>
#include <string>

#include <pffft.h>

namespace tts::model {

// The library keeps the two real bins, the first and the last, in the place of the first complex one.

RealFft::RealFft(std::size_t size) : size_(size) {
  if (pffft_is_valid_size(static_cast<int>(size), PFFFT_REAL) != 0) setup_.reset(pffft_new_setup(static_cast<int>(size), PFFFT_REAL));
  if (setup_ == nullptr) throw std::runtime_error("there is no FFT of " + std::to_string(size) + " values");
}

void RealFft::Free::operator()(PFFFT_Setup* setup) const noexcept { pffft_destroy_setup(setup); }

void RealFft::forward(const float* time, float* spectrum, float* work) const noexcept {
  pffft_transform_ordered(setup_.get(), time, spectrum, work, PFFFT_FORWARD);
  spectrum[size_] = spectrum[1];
  spectrum[1] = spectrum[size_ + 1] = 0.0F;
}

void RealFft::inverse(float* spectrum, float* time, float* work) const noexcept {
  spectrum[1] = spectrum[size_];
  pffft_transform_ordered(setup_.get(), spectrum, time, work, PFFFT_BACKWARD);
}

}  // namespace tts::model
