#pragma once
// Where the sampler's randomness comes from: a pure function of (step, codebook, token), so that a row's draws never depend on
// what shares its batch, on threads or on the order of evaluation.

#include <cstdint>

namespace tts::model {

class NoiseSource {
 public:
  virtual ~NoiseSource() = default;
  // A draw from Exp(1), > 0. Independent for different arguments.
  virtual float exponential(std::uint32_t step, std::uint32_t codebook, std::uint32_t token) const noexcept = 0;
};

// Philox 4x32-10 (Salmon et al., SC11) keyed by the seed, one block a draw.
class SeededNoise final : public NoiseSource {
 public:
  explicit SeededNoise(std::uint64_t seed = 0) noexcept : seed_(seed) {}
  float exponential(std::uint32_t step, std::uint32_t codebook, std::uint32_t token) const noexcept override;

 private:
  std::uint64_t seed_;
};

}  // namespace tts::model
