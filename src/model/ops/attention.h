#pragma once
// Causal attention of one query over the cached keys and values of its slot, and the rotary position code.
//
// Cache of one head: keys in blocks of 16 positions, [position / 16][dim][16], so that 16 scores come out of plain multiply-adds;
// values as [position][dim]. `dim` is a multiple of 16. Bits depend on the query and its own positions only.

#include <cstddef>
#include <vector>

namespace tts::model::ops {

inline constexpr std::size_t kKeyBlock = 16;  // positions

constexpr std::size_t round_up_to_key_block(std::size_t positions) { return (positions + kKeyBlock - 1) / kKeyBlock * kKeyBlock; }

// cos and sin of position * theta^(-2j / dim) for j < dim / 2, in float32 as the reference computes them.
class RopeTable {
 public:
  RopeTable(std::size_t positions, std::size_t dim, double theta);

  // Rotates one head in place; half-split form: pairs are (x[j], x[j + dim / 2]).
  void rotate(std::size_t position, float* head) const;

 private:
  std::size_t half_;
  std::vector<float> cos_, sin_;  // [position][half]
};

// Writes one key vector to its place among the blocks.
void store_key(const float* key, std::size_t dim, std::size_t position, float* keys);

// out[dim] = sum_p softmax_p(scale * q . key_p) * value_p over p < positions (> 0).
// `scores` is scratch of round_up_to_key_block(positions) floats.
void attend(const float* q, const float* keys, const float* values, std::size_t positions, std::size_t dim, float scale, float* scores,
            float* out);

}  // namespace tts::model::ops
