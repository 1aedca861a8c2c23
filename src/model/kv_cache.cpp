#include "kv_cache.h"

#include <cassert>
#include <cstring>
#include <initializer_list>
#include <new>

namespace tts::model {
namespace {

std::size_t product(std::initializer_list<std::size_t> factors) {
  std::size_t result = 1;
  for (const std::size_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) throw std::bad_alloc();
  }
  return result;
}

}  // namespace

KvCache::KvCache(const KvCacheSizes& sizes)
    : sizes_(sizes),
      chunks_((sizes.positions + ops::kKvChunk - 1) / ops::kKvChunk),
      record_bytes_(ops::kv_record_bytes(sizes.format, sizes.head_dim)),
      chunk_bytes_(product({sizes.layers, sizes.heads, record_bytes_})),
      arena_(product({sizes.slots, chunks_, chunk_bytes_}) / sizeof(float), ops::PageAdvice::kHuge) {}

std::size_t KvCache::position_bytes() const noexcept { return chunk_bytes_ / ops::kKvChunk; }

std::size_t KvCache::prefix_bytes(std::size_t positions) const noexcept {
  std::size_t bytes = 0;
  for (std::size_t first = 0; first < positions; first += ops::kKvChunk) {
    for (const ops::KvPiece& piece : ops::kv_pieces(sizes_.format, sizes_.head_dim, positions - first)) bytes += piece.bytes;
  }
  return bytes * sizes_.layers * sizes_.heads;
}

template <class Fn>
void KvCache::for_each_piece(std::size_t slot, std::size_t positions, Fn&& fn) noexcept {
  for (std::size_t first = 0; first < positions; first += ops::kKvChunk) {
    const ops::KvPieces pieces = ops::kv_pieces(sizes_.format, sizes_.head_dim, positions - first);
    std::byte* place = record(slot, first / ops::kKvChunk, 0, 0);
    for (std::size_t i = 0; i < sizes_.layers * sizes_.heads; ++i, place += record_bytes_) {
      for (const ops::KvPiece& piece : pieces) fn(place + piece.offset, piece.bytes);
    }
  }
}

void KvCache::save_prefix(std::size_t slot, std::size_t positions, std::span<std::byte> to) noexcept {
  assert(to.size() == prefix_bytes(positions));
  std::byte* next = to.data();
  for_each_piece(slot, positions, [&](const std::byte* piece, std::size_t bytes) {
    std::memcpy(next, piece, bytes);
    next += bytes;
  });
}

void KvCache::restore_prefix(std::size_t slot, std::size_t positions, std::span<const std::byte> from) noexcept {
  assert(from.size() == prefix_bytes(positions));
  const std::byte* next = from.data();
  for_each_piece(slot, positions, [&](std::byte* piece, std::size_t bytes) {
    std::memcpy(piece, next, bytes);
    next += bytes;
  });
}

}  // namespace tts::model
