#pragma once
// Test data: the same numbers for the same seed.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace tts::model::ops {

inline std::vector<float> random_floats(std::size_t n, std::uint32_t seed, float range = 1.0F) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(-range, range);
  std::vector<float> values(n);
  for (float& value : values) value = distribution(engine);
  return values;
}

}  // namespace tts::model::ops
