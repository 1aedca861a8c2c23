#pragma once
// Causal attention of one query over the cached keys and values of its slot.
//
// The cache of one head is a chain of records, each kKvChunk positions long: first the keys, then the values, then (int8) their scales.
// A pass reads every record once, from front to back, so that the keys of a record are used while its values are fetched.
//
//  keys    [position / 16][dim / 2][16][2]; float32 [position / 16][dim][16]: 16 scores come out of plain multiply-adds
//  values  [position / 2][dim][2];          float32 [position][dim]
//  scales  bfloat16, keys [kKvChunk], then values [kKvChunk]
//
// float32 stores what it is given, bfloat16 rounds to nearest even. int8 is symmetric with one scale for each position of a head;
// products with it are exact integer sums over the query, or the softmax weights of a chunk, as 16-bit numbers.
//
// `dim` is a multiple of 16, at most kMaxHeadDim. Bits depend on the query and its own positions only.

#include <array>
#include <cstddef>
#include <cstdint>

namespace tts::model::ops {

enum class KvFormat : std::uint8_t { kFloat32, kBfloat16, kInt8 };

inline constexpr std::size_t kKvChunk = 64;      // positions of a record
inline constexpr std::size_t kMaxHeadDim = 512;  // the widest whose integer sums, 32767 * 127 each term, fit 32 bits

std::size_t kv_record_bytes(KvFormat format, std::size_t dim);  // a multiple of 64

// The parts of a record that hold its first `positions` positions, with some neighbours' among them.
struct KvPiece {
  std::size_t offset = 0, bytes = 0;
};
using KvPieces = std::array<KvPiece, 4>;
KvPieces kv_pieces(KvFormat format, std::size_t dim, std::size_t positions);

// Writes the key and the value of one position (inside the record, < kKvChunk). Different positions may be written by different workers.
void store_key_value(KvFormat format, const float* key, const float* value, std::size_t dim, std::size_t position, std::byte* record);

// Begins to fetch the lines that storing that position will touch, so that a store some microseconds later does not wait for memory.
void prefetch_store(KvFormat format, std::size_t dim, std::size_t position, const std::byte* record);

// The records of one head, `stride` bytes apart, each aligned to 64 bytes.
struct KvHead {
  const std::byte* records = nullptr;
  std::size_t stride = 0;
  const std::byte* next = nullptr;  // what the worker will read after this head, for prefetching; null = unknown
};

// out[dim] = sum_p softmax_p(scale * q . key_p) * value_p over p < positions (> 0). `out` must not overlap q.
void attend(KvFormat format, const float* q, const KvHead& head, std::size_t positions, std::size_t dim, float scale, float* out);

}  // namespace tts::model::ops
