#pragma once
// What the language model leaves for the sound networks: each slot's last steps, in a ring.

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tts::model {

struct StepRing {
  at::Tensor hidden;          // [(slots + 1) * capacity, hidden_size], float32; the last slot is nobody's
  at::Tensor codes;           // [(slots + 1) * capacity, codebooks], int64
  std::int64_t capacity = 0;  // steps of a slot

  std::int64_t row(std::int64_t slot, std::int64_t step) const { return slot * capacity + step % capacity; }
};

}  // namespace tts::model
