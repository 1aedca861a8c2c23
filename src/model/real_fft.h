#pragma once
// FFT of real values, one size.

#include <cstddef>
#include <memory>

struct PFFFT_Setup;

namespace tts::model {

// Immutable, so threads may share it. Every array is aligned to 16 bytes. Spectra are size / 2 + 1 complex bins, real and imaginary parts
// in turn; the imaginary parts of the first and the last bin are zero.
class RealFft {
 public:
  explicit RealFft(std::size_t size);  // throws std::runtime_error when there is no transform of this size

  std::size_t size() const noexcept { return size_; }
  std::size_t bins() const noexcept { return size_ / 2 + 1; }

  // `work` is scratch memory of size() values.
  void forward(const float* time, float* spectrum, float* work) const noexcept;

  // Without the factor 1 / size. Overwrites the spectrum; the imaginary parts of its first and last bin are ignored.
  void inverse(float* spectrum, float* time, float* work) const noexcept;

 private:
  struct Free {
    void operator()(PFFFT_Setup* setup) const noexcept;
  };
  std::size_t size_;
  std::unique_ptr<PFFFT_Setup, Free> setup_;
};

}  // namespace tts::model
