#if defined(__x86_64__)

#include "ops/tile_kernels_x86.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TTS_AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))
#define TTS_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16")))
#define TTS_AVX_VNNI __attribute__((target("avx2,avxvnni")))
#define TTS_ALWAYS_INLINE inline __attribute__((always_inline))

namespace tts::model::ops {
namespace {

constexpr std::size_t kGroupBytes = 2 * kTileBytes;  // of one block: both panels

constexpr int kAmxRows = 16;  // of one tile

// ---- AMX ----

// Tiles 0, 1: sums of the first 16 rows for both panels; 2, 3: of the others. 4, 5: weights. 6, 7: rows.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

TTS_AMX void configure_tiles(std::size_t rows) {
  TileConfig config;
  const auto first = static_cast<std::uint8_t>(std::min<std::size_t>(rows, kAmxRows));
  const auto second = static_cast<std::uint8_t>(rows > kAmxRows ? rows - kAmxRows : 1);
  for (int tile = 0; tile < 8; ++tile) config.bytes_per_row[tile] = kBlockBytes;
  for (const int tile : {0, 1, 6}) config.rows[tile] = first;
  for (const int tile : {2, 3, 7}) config.rows[tile] = second;
  for (const int tile : {4, 5}) config.rows[tile] = kTileBytes / kBlockBytes;
  asm volatile("" : : "r"(&config) : "memory");  // GCC's intrinsic reads the structure without saying so
  _tile_loadconfig(&config);
}

template <bool kInt8, bool kTall>
TTS_AMX TTS_ALWAYS_INLINE void add_block(const std::byte* weight, const std::byte* x, std::size_t x_stride) {
  _tile_loadd(6, x, x_stride);
  if constexpr (kTall) _tile_loadd(7, x + kAmxRows * x_stride, x_stride);
  _tile_loadd(4, weight, kBlockBytes);
  _tile_loadd(5, weight + kTileBytes, kBlockBytes);
  if constexpr (kInt8) {
    _tile_dpbsud(0, 6, 4);
    _tile_dpbsud(1, 6, 5);
    if constexpr (kTall) {
      _tile_dpbsud(2, 7, 4);
      _tile_dpbsud(3, 7, 5);
    }
  } else {
    _tile_dpbf16ps(0, 6, 4);
    _tile_dpbf16ps(1, 6, 5);
    if constexpr (kTall) {
      _tile_dpbf16ps(2, 7, 4);
      _tile_dpbf16ps(3, 7, 5);
    }
  }
}

template <bool kInt8, bool kTall, bool kFetch>
TTS_AMX void multiply_amx(const TileBlock& block) {
  const std::byte* weight = block.weight;
  const std::size_t body = block.depth - 1;
  const std::byte* const x = block.x;
  const std::size_t x_stride = block.x_stride;
  for (std::size_t group = 0; group < block.groups; ++group) {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kTall) {
      _tile_zero(2);
      _tile_zero(3);
    }
    for (std::size_t k = 0; k < body; ++k) {
      if constexpr (kFetch) fetch_for(block, group * block.depth + k);
      add_block<kInt8, kTall>(weight, x + k * kBlockBytes, x_stride);
      weight += kGroupBytes;
    }
    if constexpr (kFetch) fetch_for(block, group * block.depth + body);
    add_block<kInt8, kTall>(weight, block.x_last, block.x_last_stride);
    weight += kGroupBytes;
    std::uint32_t* const sums = block.sums + group * kTileRows * kGroup;
    constexpr std::size_t kStride = kGroup * sizeof(*sums);
    _tile_stored(0, sums, kStride);
    _tile_stored(1, sums + kPanel, kStride);
    if constexpr (kTall) {
      _tile_stored(2, sums + kAmxRows * kGroup, kStride);
      _tile_stored(3, sums + kAmxRows * kGroup + kPanel, kStride);
    }
  }
}

template <bool kInt8, bool kTall>
TTS_AMX void multiply_amx(const TileBlock& block) {
  if (block.fetch == nullptr) {
    multiply_amx<kInt8, kTall, false>(block);
  } else {
    multiply_amx<kInt8, kTall, true>(block);
  }
}

template <bool kInt8>
TTS_AMX void run_amx(const TileBlock& block) {
  configure_tiles(block.rows);
  if (block.rows > kAmxRows) {
    multiply_amx<kInt8, true>(block);
  } else {
    multiply_amx<kInt8, false>(block);
  }
  _tile_release();  // tiles in use would make every context switch dearer
}

// ---- AVX-512 ----

TTS_AVX512 TTS_ALWAYS_INLINE __m512i broadcast_line(const std::byte* x) {
  std::int32_t values;
  std::memcpy(&values, x, sizeof(values));
  return _mm512_set1_epi32(values);
}

struct Int8Avx512 {
  using Sum = __m512i;
  TTS_AVX512 static TTS_ALWAYS_INLINE Sum zero() { return _mm512_setzero_si512(); }
  TTS_AVX512 static TTS_ALWAYS_INLINE Sum add(Sum sum, __m512i weight, __m512i x) { return _mm512_dpbusd_epi32(sum, weight, x); }
  TTS_AVX512 static TTS_ALWAYS_INLINE void store(Sum sum, std::uint32_t* to) { _mm512_store_si512(to, sum); }
};

struct Bfloat16Avx512 {
  using Sum = __m512;
  TTS_AVX512 static TTS_ALWAYS_INLINE Sum zero() { return _mm512_setzero_ps(); }
  TTS_AVX512 static TTS_ALWAYS_INLINE Sum add(Sum sum, __m512i weight, __m512i x) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(weight), reinterpret_cast<__m512bh>(x));
  }
  TTS_AVX512 static TTS_ALWAYS_INLINE void store(Sum sum, std::uint32_t* to) { _mm512_store_ps(to, sum); }
};

constexpr std::size_t kAvx512Rows = 12;  // 24 sums, and the weights of both panels

template <class Format, std::size_t kRows>
TTS_AVX512 void multiply_group_avx512(const TileBlock& block, std::size_t group, std::size_t first_row) {
  const std::byte* weight = block.weight + group * block.depth * kGroupBytes;
  typename Format::Sum low[kRows], high[kRows];
  for (std::size_t r = 0; r < kRows; ++r) low[r] = high[r] = Format::zero();
  for (std::size_t k = 0; k < block.depth; ++k) {
    const bool last = k + 1 == block.depth;
    const std::size_t stride = last ? block.x_last_stride : block.x_stride;
    const std::byte* x = (last ? block.x_last : block.x + k * kBlockBytes) + first_row * stride;
    if (first_row == 0 && block.fetch != nullptr) fetch_for(block, group * block.depth + k);
    for (std::size_t line = 0; line < kPanel; ++line) {
      const __m512i w0 = _mm512_load_si512(weight), w1 = _mm512_load_si512(weight + kTileBytes);
      for (std::size_t r = 0; r < kRows; ++r) {
        const __m512i value = broadcast_line(x + r * stride);
        low[r] = Format::add(low[r], w0, value);
        high[r] = Format::add(high[r], w1, value);
      }
      weight += kBlockBytes;
      x += sizeof(std::int32_t);
    }
    weight += kTileBytes;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    std::uint32_t* const sums = block.sums + (group * kTileRows + first_row + r) * kGroup;
    Format::store(low[r], sums);
    Format::store(high[r], sums + kPanel);
  }
}

// ---- AVX-VNNI: 256 bits ----

constexpr std::size_t kAvxVnniRows = 3;  // 12 sums of 8 columns

template <std::size_t kRows>
TTS_AVX_VNNI void multiply_group_avx_vnni(const TileBlock& block, std::size_t group, std::size_t first_row) {
  constexpr std::size_t kVectors = kGroup / 8;
  const std::byte* weight = block.weight + group * block.depth * kGroupBytes;
  __m256i sum[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = _mm256_setzero_si256();
  }
  for (std::size_t k = 0; k < block.depth; ++k) {
    const bool last = k + 1 == block.depth;
    const std::size_t stride = last ? block.x_last_stride : block.x_stride;
    const std::byte* x = (last ? block.x_last : block.x + k * kBlockBytes) + first_row * stride;
    if (first_row == 0 && block.fetch != nullptr) fetch_for(block, group * block.depth + k);
    for (std::size_t line = 0; line < kPanel; ++line) {
      __m256i value[kRows];
      for (std::size_t r = 0; r < kRows; ++r) {
        std::int32_t values;
        std::memcpy(&values, x + r * stride, sizeof(values));
        value[r] = _mm256_set1_epi32(values);
      }
      for (std::size_t v = 0; v < kVectors; ++v) {
        const __m256i w = _mm256_load_si256(reinterpret_cast<const __m256i*>(weight + v / 2 * kTileBytes + v % 2 * 32));
        for (std::size_t r = 0; r < kRows; ++r) sum[r][v] = _mm256_dpbusd_avx_epi32(sum[r][v], w, value[r]);
      }
      weight += kBlockBytes;
      x += sizeof(std::int32_t);
    }
    weight += kTileBytes;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    std::uint32_t* const sums = block.sums + (group * kTileRows + first_row + r) * kGroup;
    for (std::size_t v = 0; v < kVectors; ++v) _mm256_store_si256(reinterpret_cast<__m256i*>(sums + v * 8), sum[r][v]);
  }
}

// ---- Rows in chunks that a kernel's registers hold ----

using GroupKernel = void (*)(const TileBlock& block, std::size_t group, std::size_t first_row);

template <std::size_t kMaxRows>
void multiply_in_chunks(const TileBlock& block, const GroupKernel (&kernels)[kMaxRows]) {
  const std::size_t chunks = (block.rows + kMaxRows - 1) / kMaxRows;
  for (std::size_t group = 0; group < block.groups; ++group) {
    std::size_t row = 0;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t rows = block.rows / chunks + (chunk < block.rows % chunks ? 1 : 0);  // even, so that no chunk is thin
      kernels[rows - 1](block, group, row);
      row += rows;
    }
  }
}

template <class Format, std::size_t... kIndex>
void run_avx512(const TileBlock& block, std::index_sequence<kIndex...>) {
  static constexpr GroupKernel kKernels[] = {&multiply_group_avx512<Format, kIndex + 1>...};
  multiply_in_chunks(block, kKernels);
}

}  // namespace

bool request_amx() noexcept {
  constexpr int kArchReqXcompPerm = 0x1023, kXfeatureTileData = 18;
  return ::syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0;
}

void multiply_int8_amx(const TileBlock& block) { run_amx<true>(block); }
void multiply_bfloat16_amx(const TileBlock& block) { run_amx<false>(block); }
void multiply_int8_avx512_vnni(const TileBlock& block) { run_avx512<Int8Avx512>(block, std::make_index_sequence<kAvx512Rows>()); }
void multiply_bfloat16_avx512_bf16(const TileBlock& block) { run_avx512<Bfloat16Avx512>(block, std::make_index_sequence<kAvx512Rows>()); }

void multiply_int8_avx_vnni(const TileBlock& block) {
  static constexpr GroupKernel kKernels[kAvxVnniRows] = {&multiply_group_avx_vnni<1>, &multiply_group_avx_vnni<2>,
                                                         &multiply_group_avx_vnni<3>};
  multiply_in_chunks(block, kKernels);
}

}  // namespace tts::model::ops

#endif  // __x86_64__
