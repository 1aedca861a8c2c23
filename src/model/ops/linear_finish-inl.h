// What happens to finished sums on their way out, compiled once per instruction set (Highway's include idiom).

#if defined(TTS_MODEL_OPS_LINEAR_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TTS_MODEL_OPS_LINEAR_FINISH_INL_H_
#undef TTS_MODEL_OPS_LINEAR_FINISH_INL_H_
#else
#define TTS_MODEL_OPS_LINEAR_FINISH_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "ops/linear_finish.h"
#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

// A row of float32 results; vectors of `count` < kLanes columns at its end.
struct FloatRow {
  static HWY_INLINE FloatVec gelu(FloatVec v) { return gelu_vector(v); }
  static HWY_INLINE FloatVec silu(FloatVec v) { return silu_vector(v); }

  float* y;

  FloatVec load(std::size_t column, std::size_t count) const {
    return count >= kLanes ? hn::LoadU(FloatTag(), y + column) : load_first(y + column, count);
  }
  void store(FloatVec value, std::size_t column, std::size_t count) const {
    if (count >= kLanes) {
      hn::StoreU(value, FloatTag(), y + column);
    } else {
      store_first(value, y + column, count);
    }
  }
};

// Results of formats that round the next product's input to fewer bits.
struct CoarseFloatRow : FloatRow {
  static HWY_INLINE FloatVec gelu(FloatVec v) { return coarse_gelu_vector(v); }
  static HWY_INLINE FloatVec silu(FloatVec v) { return coarse_silu_vector(v); }
};

// The same, rounded here, to bfloat16.
struct BfloatRow {
  static HWY_INLINE FloatVec gelu(FloatVec v) { return coarse_gelu_vector(v); }
  static HWY_INLINE FloatVec silu(FloatVec v) { return coarse_silu_vector(v); }

  std::uint16_t* y;

  void store(FloatVec value, std::size_t column, std::size_t count) const { store_as_bfloat16(value, y + column, count); }
};

// Finishes `columns` columns of one row. value(c) gives the vector of sums, bias included, that begins at internal column c: output
// columns, or with kSwiGlu panels of gates and of ups in turn.
template <Finish kFinish, class Value, class Row>
HWY_INLINE void finish_row(std::size_t columns, Value&& value, const Row& row) {
  for (std::size_t c = 0; c < columns; c += kLanes) {
    const std::size_t count = columns - c;
    if constexpr (kFinish == Finish::kSwiGlu) {
      const std::size_t gate = c / kPanel * 2 * kPanel + c % kPanel;
      row.store(hn::Mul(Row::silu(value(gate)), value(gate + kPanel)), c, count);
    } else if constexpr (kFinish == Finish::kGelu) {
      row.store(Row::gelu(value(c)), c, count);
    } else if constexpr (kFinish == Finish::kAdd) {
      row.store(hn::Add(value(c), row.load(c, count)), c, count);
    } else {
      row.store(value(c), c, count);
    }
  }
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
