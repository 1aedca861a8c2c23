#pragma once
// Rotary position code: every pair (x[j], x[j + dim / 2]) of a head turns by an angle that grows with the position.

#include <cstddef>
#include <vector>

namespace tts::model::ops {

// cos and sin of position * theta^(-2j / dim) for j < dim / 2, in float32 as the reference computes them. Immutable.
class RopeTable {
 public:
  RopeTable(std::size_t positions, std::size_t dim, double theta);

  void rotate(std::size_t position, float* head) const;  // in place

 private:
  std::size_t half_;
  std::vector<float> cos_, sin_;  // [position][half]
};

}  // namespace tts::model::ops
