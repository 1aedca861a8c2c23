#include "ops/tile_kernels_simd.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/tile_kernels_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;
using IntVec = hn::Vec<IntTag>;

constexpr std::size_t kVectors = kPanel / kLanes;  // of one panel
constexpr std::size_t kGroupVectors = 2 * kVectors;
// Rows of one kernel: sums and inputs fill the register file (32 registers with AVX-512, else 16).
constexpr std::size_t kMaxRows = kLanes == 16 ? 6 : kLanes == 8 ? 2 : 1;

// Two inputs a line: bfloat16 in the low and in the high half of each 32 bits.
struct Bfloat16 {
  using Sum = FloatVec;
  struct Pair {
    FloatVec low, high;
  };
  using Input = Pair;
  static HWY_INLINE Sum zero() { return hn::Zero(FloatTag()); }
  static HWY_INLINE Pair input(IntVec pair) {
    return {hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pair)),
            hn::BitCast(FloatTag(), hn::And(pair, hn::Set(IntTag(), static_cast<std::int32_t>(0xFFFF0000U))))};
  }
  static HWY_INLINE Pair weight(IntVec pair) { return input(pair); }
  static HWY_INLINE Sum add(Sum sum, const Pair& w, const Pair& x) { return hn::MulAdd(w.high, x.high, hn::MulAdd(w.low, x.low, sum)); }
  static HWY_INLINE void store(Sum sum, std::uint32_t* to) {
    hn::StoreU(hn::BitCast(IntTag(), sum), IntTag(), reinterpret_cast<std::int32_t*>(to));
  }
};

// Four inputs a line: unsigned weights and signed activations in each 32 bits.
struct Int8 {
  using Sum = IntVec;
  static HWY_INLINE Sum zero() { return hn::Zero(IntTag()); }
  static HWY_INLINE void store(Sum sum, std::uint32_t* to) { hn::StoreU(sum, IntTag(), reinterpret_cast<std::int32_t*>(to)); }
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  // pmaddwd on bytes 0 and 2, then 1 and 3, as 16-bit values.
  using ShortTag = hn::Repartition<std::int16_t, IntTag>;
  using UshortTag = hn::RebindToUnsigned<ShortTag>;
  struct Input {
    hn::Vec<ShortTag> even, odd;
  };
  static HWY_INLINE Input input(IntVec quad) {
    const auto shorts = hn::BitCast(ShortTag(), quad);
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(shorts)), hn::ShiftRight<8>(shorts)};
  }
  static HWY_INLINE Input weight(IntVec quad) {
    return {hn::BitCast(ShortTag(), hn::And(quad, hn::Set(IntTag(), 0x00FF00FF))),
            hn::BitCast(ShortTag(), hn::ShiftRight<8>(hn::BitCast(UshortTag(), quad)))};
  }
  static HWY_INLINE Sum add(Sum sum, const Input& w, const Input& x) {
    IntVec unused = hn::Zero(IntTag());
    sum = hn::ReorderWidenMulAccumulate(IntTag(), w.even, x.even, sum, unused);
    return hn::ReorderWidenMulAccumulate(IntTag(), w.odd, x.odd, sum, unused);
  }
#else
  struct Input {
    IntVec bytes[4];
  };
  static HWY_INLINE Input input(IntVec quad) {
    return {{hn::ShiftRight<24>(hn::ShiftLeft<24>(quad)), hn::ShiftRight<24>(hn::ShiftLeft<16>(quad)),
             hn::ShiftRight<24>(hn::ShiftLeft<8>(quad)), hn::ShiftRight<24>(quad)}};
  }
  static HWY_INLINE Input weight(IntVec quad) {
    const IntVec byte = hn::Set(IntTag(), 0xFF);
    return {{hn::And(quad, byte), hn::And(hn::ShiftRight<8>(quad), byte), hn::And(hn::ShiftRight<16>(quad), byte),
             hn::And(hn::ShiftRight<24>(quad), byte)}};
  }
  static HWY_INLINE Sum add(Sum sum, const Input& w, const Input& x) {
    for (std::size_t i = 0; i < 4; ++i) sum = hn::Add(sum, hn::Mul(w.bytes[i], x.bytes[i]));
    return sum;
  }
#endif
};

// One row and more times one group. Every row is treated alike, whatever their number.
template <class Format, std::size_t kRows>
HWY_INLINE void multiply_group(const TileBlock& block, std::size_t group, std::size_t first_row) {
  const IntTag di;
  const std::byte* weight = block.weight + group * block.depth * 2 * kTileBytes;
  typename Format::Sum sum[kRows][kGroupVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kGroupVectors; ++v) sum[r][v] = Format::zero();
  }
  for (std::size_t k = 0; k < block.depth; ++k) {
    const bool last = k + 1 == block.depth;
    const std::size_t stride = last ? block.x_last_stride : block.x_stride;
    const std::byte* const x = (last ? block.x_last : block.x + k * kBlockBytes) + first_row * stride;
    if (first_row == 0 && block.fetch != nullptr) fetch_for(block, group * block.depth + k);
    for (std::size_t line = 0; line < kPanel; ++line) {
      const auto* const w = reinterpret_cast<const std::int32_t*>(weight + line * kBlockBytes);
      typename Format::Input input[kRows];
      for (std::size_t r = 0; r < kRows; ++r) {
        std::int32_t values;
        std::memcpy(&values, x + r * stride + line * sizeof(values), sizeof(values));
        input[r] = Format::input(hn::Set(di, values));
      }
      for (std::size_t v = 0; v < kGroupVectors; ++v) {
        const auto weights = Format::weight(hn::Load(di, w + v / kVectors * (kTileBytes / sizeof(*w)) + v % kVectors * kLanes));
        for (std::size_t r = 0; r < kRows; ++r) sum[r][v] = Format::add(sum[r][v], weights, input[r]);
      }
    }
    weight += 2 * kTileBytes;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kGroupVectors; ++v)
      Format::store(sum[r][v], block.sums + (group * kTileRows + first_row + r) * kGroup + v * kLanes);
  }
}

template <class Format, std::size_t kRows = kMaxRows>
HWY_INLINE void multiply_rows(std::size_t rows, const TileBlock& block, std::size_t group, std::size_t first_row) {
  if (rows == kRows) return multiply_group<Format, kRows>(block, group, first_row);
  if constexpr (kRows > 1) multiply_rows<Format, kRows - 1>(rows, block, group, first_row);
}

template <class Format>
HWY_INLINE void multiply(const TileBlock& block) {
  const std::size_t chunks = (block.rows + kMaxRows - 1) / kMaxRows;
  for (std::size_t group = 0; group < block.groups; ++group) {
    std::size_t row = 0;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t rows = block.rows / chunks + (chunk < block.rows % chunks ? 1 : 0);  // even, so that no chunk is thin
      multiply_rows<Format>(rows, block, group, row);
      row += rows;
    }
  }
}

void multiply_int8(const TileBlock& block) { multiply<Int8>(block); }
void multiply_bfloat16(const TileBlock& block) { multiply<Bfloat16>(block); }

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(multiply_int8);
HWY_EXPORT(multiply_bfloat16);

void multiply_int8_simd(const TileBlock& block) { HWY_DYNAMIC_DISPATCH(multiply_int8)(block); }
void multiply_bfloat16_simd(const TileBlock& block) { HWY_DYNAMIC_DISPATCH(multiply_bfloat16)(block); }

}  // namespace tts::model::ops
#endif  // HWY_ONCE
