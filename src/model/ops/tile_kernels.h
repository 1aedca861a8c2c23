#pragma once
// Products of bfloat16 and int8 rows with weights in tiles, one kernel for each kind of matrix instruction; chosen at run time.
//
// Weights lie in groups of 32 columns, each [block of 64 bytes of a row][panel of 16 columns][16][16][4 bytes]: an AMX tile is one panel of
// one block, a 64-byte line holds, for 16 columns, the weights of two neighbouring bfloat16 inputs or four int8 inputs. One pass over the
// weights is one forward sweep of memory for every kernel and every number of rows.
//
// int8 weights are stored as unsigned bytes with kWeightOffset added, so that both vpdpbusd and TDPBSUD take them against signed
// activations: the sums are kWeightOffset * (sum of the row's codes) too large. Bytes that pad a block are 0 there, so what they meet does
// not matter.

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/linear_finish.h"
#include "ops/weight_format.h"

namespace tts::model::ops {

inline constexpr std::size_t kTileBytes = 1024;    // 16 lines of 64 bytes
inline constexpr std::size_t kBlockBytes = 64;     // of an input row, that one tile multiplies
inline constexpr std::size_t kGroup = 2 * kPanel;  // columns
inline constexpr std::size_t kTileRows = 32;       // rows of one call at most
inline constexpr int kWeightOffset = 128;

// Some rows times some neighbouring groups.
struct TileBlock {
  const std::byte* weight;    // of the first group
  std::size_t groups, depth;  // depth: blocks of a row, the last one included
  const std::byte* x;         // rows, x_stride bytes apart; all blocks but the last are read here
  std::size_t x_stride;
  const std::byte* x_last;  // the last block of each row, x_last_stride bytes apart; bfloat16: finite where the row has ended
  std::size_t x_last_stride;
  std::size_t rows;        // 1 .. kTileRows
  std::uint32_t* sums;     // out: [group][kTileRows][kGroup] float (bfloat16) or int32; 64-byte aligned
  const std::byte* fetch;  // weights that are soon read, to be brought near: as many bytes as these groups have; or null
};

// The part of `fetch` for one block of a row, the `step`-th of all groups'.
inline void fetch_for(const TileBlock& block, std::size_t step) {
  const std::byte* const from = block.fetch + step * 2 * kTileBytes;
#pragma GCC unroll 32
  for (std::size_t line = 0; line < 2 * kTileBytes / kBlockBytes; ++line) __builtin_prefetch(from + line * kBlockBytes);
}

// Both formats: the bits of a row's sums depend on that row only. int8: exact. bfloat16: the order of additions is the kernel's own.
struct TileKernel {
  const char* name;
  void (*multiply)(const TileBlock& block);
};

// Those that this processor can run for the format (bfloat16 or int8), the fastest first. The last, "simd", runs everywhere (and follows
// Highway's own choice of an instruction set).
std::span<const TileKernel> tile_kernels(WeightFormat format);

// The one in use: the first, unless a test or a benchmark chose another, which it must not do while a product runs.
const TileKernel& tile_kernel(WeightFormat format) noexcept;
void choose_tile_kernel(WeightFormat format, const TileKernel& kernel);

}  // namespace tts::model::ops
