#pragma once
// Keys and values of every slot: one reservation made at start, whose pages the kernel provides when positions are first written.
// Freeing a slot costs nothing: the next owner overwrites from position 0, and attention never looks past its own positions.
//
// Memory runs [slot][position / kKvChunk][layer][head], so that a slot of few positions touches one stretch of memory.

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/aligned_buffer.h"
#include "ops/attention.h"

namespace tts::model {

struct KvCacheSizes {
  ops::KvFormat format = ops::KvFormat::kFloat32;
  std::size_t slots = 0, layers = 0, heads = 0, positions = 0, head_dim = 0;  // heads = key/value heads
};

class KvCache {
 public:
  // Throws std::bad_alloc when the reservation does not fit the address space.
  explicit KvCache(const KvCacheSizes& sizes);

  ops::KvFormat format() const noexcept { return sizes_.format; }
  std::size_t bytes() const noexcept { return arena_.size() * sizeof(float); }  // reserved, not touched
  std::size_t position_bytes() const noexcept;                                  // of one position of a slot

  void store(std::size_t slot, std::size_t layer, std::size_t head, std::size_t position, const float* key, const float* value) noexcept {
    ops::store_key_value(sizes_.format, key, value, sizes_.head_dim, position % ops::kKvChunk,
                         record(slot, position / ops::kKvChunk, layer, head));
  }

  void prefetch_store(std::size_t slot, std::size_t layer, std::size_t head, std::size_t position) noexcept {
    ops::prefetch_store(sizes_.format, sizes_.head_dim, position % ops::kKvChunk, record(slot, position / ops::kKvChunk, layer, head));
  }

  ops::KvHead head(std::size_t slot, std::size_t layer, std::size_t head) noexcept {
    return {.records = record(slot, 0, layer, head), .stride = chunk_bytes_, .next = nullptr};
  }

  // The first `positions` positions of a slot, every layer and head of them: copied out, and into any slot.
  std::size_t prefix_bytes(std::size_t positions) const noexcept;
  void save_prefix(std::size_t slot, std::size_t positions, std::span<std::byte> to) noexcept;
  void restore_prefix(std::size_t slot, std::size_t positions, std::span<const std::byte> from) noexcept;

 private:
  std::byte* record(std::size_t slot, std::size_t chunk, std::size_t layer, std::size_t head) noexcept {
    return reinterpret_cast<std::byte*>(arena_.data()) + (slot * chunks_ + chunk) * chunk_bytes_ +
           (layer * sizes_.heads + head) * record_bytes_;
  }
  template <class Fn>
  void for_each_piece(std::size_t slot, std::size_t positions, Fn&& fn) noexcept;

  KvCacheSizes sizes_;
  std::size_t chunks_, record_bytes_, chunk_bytes_;
  ops::AlignedBuffer arena_;
};

}  // namespace tts::model
