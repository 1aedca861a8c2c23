#pragma once
// Keys and values of every slot: one reservation made at start, whose pages the kernel provides when positions are first written.
// Freeing a slot costs nothing: the next owner overwrites from position 0, and attention never looks past its own positions.

#include <cstddef>

#include "ops/aligned_buffer.h"
#include "ops/attention.h"

namespace tts::model {

struct KvCacheSizes {
  std::size_t slots = 0, layers = 0, heads = 0, positions = 0, head_dim = 0;  // heads = key/value heads
};

class KvCache {
 public:
  // Throws std::bad_alloc when the reservation does not fit the address space.
  explicit KvCache(const KvCacheSizes& sizes);

  std::size_t positions() const noexcept { return positions_; }
  std::size_t head_dim() const noexcept { return head_dim_; }
  std::size_t bytes() const noexcept { return arena_.size() * sizeof(float); }  // reserved, not touched

  // Of one head; the layouts are those of ops/attention.h.
  float* keys(std::size_t slot, std::size_t layer, std::size_t head) noexcept {
    return arena_.data() + ((slot * layers_ + layer) * heads_ + head) * 2 * head_size_;
  }
  float* values(std::size_t slot, std::size_t layer, std::size_t head) noexcept { return keys(slot, layer, head) + head_size_; }

 private:
  std::size_t layers_, heads_, positions_, head_dim_;
  std::size_t head_size_;  // floats of the keys (or values) of one head
  ops::AlignedBuffer arena_;
};

}  // namespace tts::model
