#include "ops/attention.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/quantize.h"
#include "ops/simd_math-inl.h"

#ifndef TTS_MODEL_OPS_ATTENTION_ONCE
#define TTS_MODEL_OPS_ATTENTION_ONCE
namespace tts::model::ops {

inline constexpr std::size_t kKeyBlock = 16;  // positions
inline constexpr std::size_t kCacheLine = 64;
inline constexpr float kWeightRange = 32767.0F;  // softmax weights of the int8 format as 16-bit numbers

// Where things lie in a record.
struct KvRecord {
  std::size_t values, key_scales, value_scales, bytes;
};

constexpr KvRecord kv_record(KvFormat format, std::size_t dim) {
  const std::size_t element = format == KvFormat::kFloat32 ? 4 : format == KvFormat::kBfloat16 ? 2 : 1;
  const std::size_t half = kKvChunk * dim * element;
  const std::size_t scales = format == KvFormat::kInt8 ? kKvChunk * sizeof(std::uint16_t) : 0;
  return {.values = half, .key_scales = 2 * half, .value_scales = 2 * half + scales, .bytes = 2 * half + 2 * scales};
}

// The scale of one int8 row: what makes `highest` at most 127, rounded up to bfloat16. Zero for a row of zeros.
inline std::uint16_t int8_scale(float highest) {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(highest / 127.0F) + 0xFFFFU) >> 16);
}

}  // namespace tts::model::ops
#endif

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

constexpr std::size_t kBlockVectors = kKeyBlock / kLanes;
constexpr std::size_t kChunkBlocks = kKvChunk / kKeyBlock;

using Int32Tag = hn::RebindToSigned<FloatTag>;
using UInt32Tag = hn::RebindToUnsigned<FloatTag>;
struct FloatPair {
  FloatVec even, odd;
};

// kLanes neighbouring pairs of bfloat16.
HWY_INLINE FloatPair load_bfloat16_pairs(const std::byte* from) {
  const UInt32Tag u;
  const auto pairs = hn::Load(u, reinterpret_cast<const std::uint32_t*>(from));
  return {hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pairs)), hn::BitCast(FloatTag(), hn::And(pairs, hn::Set(u, 0xFFFF0000U)))};
}

// Neighbouring 16-bit numbers in pairs, kLanes of them; sums of their products are exact.
#if HWY_TARGET == HWY_SCALAR
struct Pairs {
  std::int32_t first, second;
};

HWY_INLINE Pairs broadcast_pair(const std::int16_t* pair) { return {pair[0], pair[1]}; }

HWY_INLINE Pairs load_int8_pairs(const std::byte* from) {
  const auto* const numbers = reinterpret_cast<const std::int8_t*>(from);
  return {numbers[0], numbers[1]};
}

class PairSum {
 public:
  HWY_INLINE void add(Pairs a, Pairs b) { sum_ += a.first * b.first + a.second * b.second; }
  HWY_INLINE FloatVec get() const { return hn::Set(FloatTag(), static_cast<float>(sum_)); }

 private:
  std::int32_t sum_ = 0;
};
#else
using Int16Tag = hn::Repartition<std::int16_t, FloatTag>;
using Pairs = hn::Vec<Int16Tag>;

HWY_INLINE Pairs broadcast_pair(const std::int16_t* pair) {
  std::int32_t bits;
  std::memcpy(&bits, pair, sizeof(bits));
  return hn::BitCast(Int16Tag(), hn::Set(Int32Tag(), bits));
}

HWY_INLINE Pairs load_int8_pairs(const std::byte* from) {
  const hn::Rebind<std::int8_t, Int16Tag> narrow;
  return hn::PromoteTo(Int16Tag(), hn::Load(narrow, reinterpret_cast<const std::int8_t*>(from)));
}

class PairSum {
 public:
  HWY_INLINE PairSum() : sum_(hn::Zero(Int32Tag())), rest_(hn::Zero(Int32Tag())) {}
  HWY_INLINE void add(Pairs a, Pairs b) { sum_ = hn::ReorderWidenMulAccumulate(Int32Tag(), a, b, sum_, rest_); }
  HWY_INLINE FloatVec get() const { return hn::ConvertTo(FloatTag(), hn::RearrangeToOddPlusEven(sum_, rest_)); }

 private:
  hn::Vec<Int32Tag> sum_, rest_;
};
#endif

HWY_INLINE FloatVec load_scales(const std::byte* scales, std::size_t first) {
  const hn::Rebind<std::uint16_t, FloatTag> narrow;
  const auto bits = hn::PromoteTo(UInt32Tag(), hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(scales) + first));
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(bits));
}

HWY_INLINE float highest_magnitude(const float* x, std::size_t n) {  // n: a multiple of 16
  const FloatTag d;
  FloatVec highest = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += kLanes) highest = hn::Max(highest, hn::Abs(hn::LoadU(d, x + i)));
  return hn::GetLane(hn::MaxOfLanes(d, highest));
}

// to[i] = x[i] * factor, rounded to nearest even.
template <class T>
HWY_INLINE void quantise(const float* x, float factor, std::size_t n, T* to) {
  const FloatTag d;
  const hn::Rebind<T, FloatTag> narrow;
  for (std::size_t i = 0; i < n; i += kLanes) {
    hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)))), narrow, to + i);
  }
}

// Into the second-level cache: the first has too few places for what is on its way from memory to keep a core at full bandwidth.
HWY_INLINE void fetch(const std::byte* line) { __builtin_prefetch(line, 0, 2); }

// What to fetch while the keys, and the values, of a record are read: the line at the same offset from here.
struct Ahead {
  const std::byte *keys, *values;
};

// A format tells how scores come from keys and how weights gather values. Each score, and each sum over values, is made in one fixed
// order. About 8 KiB is fetched ahead (dim 64), which measured best: half a record of the wide formats, a whole one of int8.

class Float32Format {
 public:
  static constexpr KvFormat kFormat = KvFormat::kFloat32;
  static Ahead ahead_of(const KvRecord& layout, const std::byte* record, const std::byte* next) { return {record + layout.values, next}; }
  Float32Format(const float* q, std::size_t dim, float scale) : q_(q), dim_(dim), scale_(scale) {}

  template <std::size_t kBlocks>
  HWY_INLINE void scores(const std::byte* record, const KvRecord&, std::size_t block, const std::byte* ahead,
                         float* HWY_RESTRICT out) const {
    const FloatTag d;
    const std::byte* keys = record + block * dim_ * kRow;
    FloatVec sum[kBlocks * kBlockVectors];
    for (FloatVec& s : sum) s = hn::Zero(d);
    for (std::size_t i = 0; i < dim_; ++i, keys += kRow) {
      const FloatVec value = hn::Set(d, q_[i]);
      for (std::size_t b = 0; b < kBlocks; ++b) {
        const std::byte* row = keys + b * dim_ * kRow;
        fetch(ahead + (row - record));
        for (std::size_t v = 0; v < kBlockVectors; ++v) {
          FloatVec& s = sum[b * kBlockVectors + v];
          s = hn::MulAdd(value, hn::Load(d, reinterpret_cast<const float*>(row) + v * kLanes), s);
        }
      }
    }
    for (std::size_t v = 0; v < kBlocks * kBlockVectors; ++v) hn::Store(hn::Mul(sum[v], hn::Set(d, scale_)), d, out + v * kLanes);
  }

  template <std::size_t kVectors>
  HWY_INLINE void gather(const std::byte* record, const KvRecord& layout, const float* HWY_RESTRICT weights, std::size_t positions,
                         std::size_t c, float keep, const std::byte* ahead, float* HWY_RESTRICT out) const {
    const FloatTag d;
    const float* values = reinterpret_cast<const float*>(record + layout.values) + c;
    FloatVec even[kVectors], odd[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) even[v] = odd[v] = hn::Zero(d);
    const auto add = [&](std::size_t p, FloatVec* sum) {
      const FloatVec weight = hn::Set(d, weights[p]);
      for (std::size_t v = 0; v < kVectors; ++v) {
        const std::size_t at = p * dim_ + v * kLanes;
        if (v * kLanes % kKeyBlock == 0) fetch(ahead + (c + at) * sizeof(float));
        sum[v] = hn::MulAdd(weight, hn::Load(d, values + at), sum[v]);
      }
    };
    std::size_t p = 0;
    for (; p + 2 <= positions; p += 2) {
      add(p, even);
      add(p + 1, odd);
    }
    if (p < positions) add(p, even);
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const to = out + c + v * kLanes;
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to), hn::Set(d, keep), hn::Add(even[v], odd[v])), d, to);
    }
  }

  HWY_INLINE void prepare(const std::byte*, const KvRecord&, float*, std::size_t) {}

 private:
  static constexpr std::size_t kRow = kKeyBlock * sizeof(float);  // bytes of one dimension of a block of keys
  const float* q_;
  std::size_t dim_;
  float scale_;
};

class Bfloat16Format {
 public:
  static constexpr KvFormat kFormat = KvFormat::kBfloat16;
  static Ahead ahead_of(const KvRecord& layout, const std::byte* record, const std::byte* next) { return {record + layout.values, next}; }
  Bfloat16Format(const float* q, std::size_t dim, float scale) : q_(q), dim_(dim), scale_(scale) {}

  template <std::size_t kBlocks>
  HWY_INLINE void scores(const std::byte* record, const KvRecord&, std::size_t block, const std::byte* ahead,
                         float* HWY_RESTRICT out) const {
    const FloatTag d;
    const std::byte* keys = record + block * (dim_ / 2) * kRow;
    FloatVec even[kBlocks * kBlockVectors], odd[kBlocks * kBlockVectors];
    for (std::size_t v = 0; v < kBlocks * kBlockVectors; ++v) even[v] = odd[v] = hn::Zero(d);
    for (std::size_t i = 0; i < dim_; i += 2, keys += kRow) {
      const FloatVec first = hn::Set(d, q_[i]), second = hn::Set(d, q_[i + 1]);
      for (std::size_t b = 0; b < kBlocks; ++b) {
        const std::byte* row = keys + b * (dim_ / 2) * kRow;
        fetch(ahead + (row - record));
        for (std::size_t v = 0; v < kBlockVectors; ++v) {
          const FloatPair pair = load_bfloat16_pairs(row + v * kLanes * 4);
          const std::size_t s = b * kBlockVectors + v;
          even[s] = hn::MulAdd(first, pair.even, even[s]);
          odd[s] = hn::MulAdd(second, pair.odd, odd[s]);
        }
      }
    }
    for (std::size_t v = 0; v < kBlocks * kBlockVectors; ++v) {
      hn::Store(hn::Mul(hn::Add(even[v], odd[v]), hn::Set(d, scale_)), d, out + v * kLanes);
    }
  }

  template <std::size_t kVectors>
  HWY_INLINE void gather(const std::byte* record, const KvRecord& layout, const float* HWY_RESTRICT weights, std::size_t positions,
                         std::size_t c, float keep, const std::byte* ahead, float* HWY_RESTRICT out) const {
    const FloatTag d;
    const std::byte* values = record + layout.values;
    FloatVec even[kVectors], odd[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) even[v] = odd[v] = hn::Zero(d);
    std::size_t p = 0;
    for (; p + 2 <= positions; p += 2) {
      const FloatVec first = hn::Set(d, weights[p]), second = hn::Set(d, weights[p + 1]);
      for (std::size_t v = 0; v < kVectors; ++v) {
        const std::size_t at = (p / 2 * dim_ + c + v * kLanes) * 4;
        if (v * kLanes % kKeyBlock == 0) fetch(ahead + at);
        const FloatPair pair = load_bfloat16_pairs(values + at);
        even[v] = hn::MulAdd(first, pair.even, even[v]);
        odd[v] = hn::MulAdd(second, pair.odd, odd[v]);
      }
    }
    if (p < positions) {  // what lies in the odd half is not this slot's
      const FloatVec first = hn::Set(d, weights[p]);
      for (std::size_t v = 0; v < kVectors; ++v) {
        even[v] = hn::MulAdd(first, load_bfloat16_pairs(values + (p / 2 * dim_ + c + v * kLanes) * 4).even, even[v]);
      }
    }
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const to = out + c + v * kLanes;
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to), hn::Set(d, keep), hn::Add(even[v], odd[v])), d, to);
    }
  }

  HWY_INLINE void prepare(const std::byte*, const KvRecord&, float*, std::size_t) {}

 private:
  static constexpr std::size_t kRow = kKeyBlock * 2 * sizeof(std::uint16_t);  // bytes of two dimensions of a block of keys
  const float* q_;
  std::size_t dim_;
  float scale_;
};

class Int8Format {
 public:
  static constexpr KvFormat kFormat = KvFormat::kInt8;
  static Ahead ahead_of(const KvRecord& layout, const std::byte*, const std::byte* next) { return {next, next + layout.values}; }
  Int8Format(const float* q, std::size_t dim, float scale) : dim_(dim) {
    const float highest = highest_magnitude(q, dim);
    quantise(q, highest > 0.0F ? kWeightRange / highest : 0.0F, dim, q_);
    scale_ = scale * (highest / kWeightRange);
  }

  template <std::size_t kBlocks>
  HWY_INLINE void scores(const std::byte* record, const KvRecord& layout, std::size_t block, const std::byte* ahead,
                         float* HWY_RESTRICT out) const {
    const FloatTag d;
    const std::byte* keys = record + block * (dim_ / 2) * kRow;
    PairSum sum[kBlocks * kBlockVectors];
    for (std::size_t i = 0; i < dim_; i += 4) {  // two rows share a cache line
      for (std::size_t b = 0; b < kBlocks; ++b) fetch(ahead + (keys - record) + b * (dim_ / 2) * kRow);
      for (std::size_t half = 0; half < 4; half += 2, keys += kRow) {
        const auto pair = broadcast_pair(q_ + i + half);
        for (std::size_t v = 0; v < kBlocks * kBlockVectors; ++v) {
          sum[v].add(load_int8_pairs(keys + (v / kBlockVectors) * (dim_ / 2) * kRow + (v % kBlockVectors) * kLanes * 2), pair);
        }
      }
    }
    for (std::size_t v = 0; v < kBlocks * kBlockVectors; ++v) {
      const FloatVec scale = hn::Mul(load_scales(record + layout.key_scales, block * kKeyBlock + v * kLanes), hn::Set(d, scale_));
      hn::Store(hn::Mul(sum[v].get(), scale), d, out + v * kLanes);
    }
  }

  // Weights times the values' scales, as 16-bit numbers relative to the largest of the chunk. `padded` is a multiple of kKeyBlock.
  HWY_INLINE void prepare(const std::byte* record, const KvRecord& layout, float* HWY_RESTRICT weights, std::size_t padded) {
    const FloatTag d;
    // A weight of zero stands for a position that is not there, whose scale may be anything.
    for (std::size_t p = 0; p < padded; p += kLanes) {
      const FloatVec weight = hn::Load(d, weights + p);
      const FloatVec folded = hn::Mul(weight, load_scales(record + layout.value_scales, p));
      hn::Store(hn::IfThenElseZero(hn::Gt(weight, hn::Zero(d)), folded), d, weights + p);
    }
    const float highest = highest_magnitude(weights, padded);
    quantise(weights, highest > 0.0F ? kWeightRange / highest : 0.0F, padded, weights_);
    weight_scale_ = highest / kWeightRange;
  }

  template <std::size_t kVectors>
  HWY_INLINE void gather(const std::byte* record, const KvRecord& layout, const float*, std::size_t positions, std::size_t c, float keep,
                         const std::byte* ahead, float* HWY_RESTRICT out) const {
    const FloatTag d;
    const std::byte* values = record + layout.values;
    PairSum sum[kVectors];
    for (std::size_t p = 0; p < positions; p += 2) {  // past an odd end the weight is zero
      const auto pair = broadcast_pair(weights_ + p);
      for (std::size_t v = 0; v < kVectors; ++v) {
        const std::size_t at = (p / 2 * dim_ + c + v * kLanes) * 2;
        if (v * kLanes % (2 * kKeyBlock) == 0) fetch(ahead + at);
        sum[v].add(load_int8_pairs(values + at), pair);
      }
    }
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const to = out + c + v * kLanes;
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to), hn::Set(d, keep), hn::Mul(sum[v].get(), hn::Set(d, weight_scale_))), d, to);
    }
  }

 private:
  static constexpr std::size_t kRow = kKeyBlock * 2;  // bytes of two dimensions of a block of keys
  std::size_t dim_;
  float scale_, weight_scale_ = 0.0F;
  HWY_ALIGN std::int16_t q_[kMaxHeadDim];
  HWY_ALIGN std::int16_t weights_[kKvChunk];
};

// Softmax over chunks: sums so far are scaled down whenever a chunk holds a higher score.
template <class Format>
HWY_INLINE void attend_chunks(const float* q, const KvHead& head, std::size_t positions, std::size_t dim, float scale,
                              float* HWY_RESTRICT out) {
  const FloatTag d;
  const KvRecord layout = kv_record(Format::kFormat, dim);
  Format format(q, dim, scale);
  HWY_ALIGN float weights[kKvChunk];
  for (std::size_t c = 0; c < dim; c += kLanes) hn::StoreU(hn::Zero(d), d, out + c);
  float highest = -1e30F;  // below any score; exp of the distance to it is 0
  FloatVec total = hn::Zero(d);
  const std::byte* record = head.records;
  for (std::size_t first = 0; first < positions; first += kKvChunk, record += head.stride) {
    const std::size_t count = HWY_MIN(kKvChunk, positions - first), blocks = (count + kKeyBlock - 1) / kKeyBlock;
    const bool last = first + kKvChunk >= positions;
    const std::byte* const next = !last ? record + head.stride : head.next != nullptr ? head.next : record;
    const Ahead ahead = Format::ahead_of(layout, record, next);
    if (blocks == kChunkBlocks) {
      format.template scores<kChunkBlocks>(record, layout, 0, ahead.keys, weights);
    } else {
      for (std::size_t b = 0; b < blocks; ++b) format.template scores<1>(record, layout, b, ahead.keys, weights + b * kKeyBlock);
    }
    // Positions that are not there get weight 0 and take part in the same vector loops.
    const std::size_t padded = blocks * kKeyBlock;
    for (std::size_t p = count; p < padded; ++p) weights[p] = -1e30F;

    FloatVec top = hn::Load(d, weights);
    for (std::size_t p = kLanes; p < padded; p += kLanes) top = hn::Max(top, hn::Load(d, weights + p));
    const float higher = HWY_MAX(highest, hn::GetLane(hn::MaxOfLanes(d, top)));
    const FloatVec keep = hn::Exp(d, hn::Set(d, highest - higher)), offset = hn::Set(d, higher);
    highest = higher;
    total = hn::Mul(total, keep);
    for (std::size_t p = 0; p < padded; p += kLanes) {
      const FloatVec e = hn::Exp(d, hn::Sub(hn::Load(d, weights + p), offset));
      total = hn::Add(total, e);
      hn::Store(e, d, weights + p);
    }
    format.prepare(record, layout, weights, padded);
    const float factor = hn::GetLane(keep);
    std::size_t c = 0;
    for (; c + 4 * kLanes <= dim; c += 4 * kLanes) format.template gather<4>(record, layout, weights, count, c, factor, ahead.values, out);
    for (; c < dim; c += kLanes) format.template gather<1>(record, layout, weights, count, c, factor, ahead.values, out);
    for (std::size_t at = layout.key_scales; at < layout.bytes; at += kCacheLine) fetch(next + at);
    if (last && head.next != nullptr) {  // a short chunk fetched little ahead
      for (std::size_t at = count * (layout.values / kKvChunk); at < layout.values; at += kCacheLine) fetch(next + at);
    }
  }
  const FloatVec factor = hn::Set(d, 1.0F / hn::GetLane(hn::SumOfLanes(d, total)));
  for (std::size_t c = 0; c < dim; c += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, out + c), factor), d, out + c);
}

void attend_float32(const float* q, const KvHead& head, std::size_t positions, std::size_t dim, float scale, float* out) {
  attend_chunks<Float32Format>(q, head, positions, dim, scale, out);
}

void attend_bfloat16(const float* q, const KvHead& head, std::size_t positions, std::size_t dim, float scale, float* out) {
  attend_chunks<Bfloat16Format>(q, head, positions, dim, scale, out);
}

void attend_int8(const float* q, const KvHead& head, std::size_t positions, std::size_t dim, float scale, float* out) {
  attend_chunks<Int8Format>(q, head, positions, dim, scale, out);
}

// The elements of one position, `unit` neighbours of a key together.
template <class T, std::size_t kUnit>
HWY_INLINE void scatter(const T* key, const T* value, std::size_t dim, std::size_t position, const KvRecord& layout, std::byte* record) {
  T* const keys = reinterpret_cast<T*>(record) + position / kKeyBlock * kKeyBlock * dim + position % kKeyBlock * kUnit;
  for (std::size_t i = 0; i < dim; i += kUnit) std::memcpy(keys + i * kKeyBlock, key + i, kUnit * sizeof(T));
  T* const values = reinterpret_cast<T*>(record + layout.values) + position / kUnit * kUnit * dim + position % kUnit;
  for (std::size_t i = 0; i < dim; ++i) values[i * kUnit] = value[i];
}

void store_float32(const float* key, const float* value, std::size_t dim, std::size_t position, std::byte* record) {
  scatter<float, 1>(key, value, dim, position, kv_record(KvFormat::kFloat32, dim), record);
}

void store_bfloat16(const float* key, const float* value, std::size_t dim, std::size_t position, std::byte* record) {
  HWY_ALIGN std::uint16_t narrow[2 * kMaxHeadDim];
  to_bfloat16(key, dim, narrow);
  to_bfloat16(value, dim, narrow + dim);
  scatter<std::uint16_t, 2>(narrow, narrow + dim, dim, position, kv_record(KvFormat::kBfloat16, dim), record);
}

void store_int8(const float* key, const float* value, std::size_t dim, std::size_t position, std::byte* record) {
  const KvRecord layout = kv_record(KvFormat::kInt8, dim);
  HWY_ALIGN std::int8_t narrow[2 * kMaxHeadDim];
  const auto convert = [&](const float* x, std::int8_t* to, std::byte* scales) {
    const std::uint16_t bits = int8_scale(highest_magnitude(x, dim));
    reinterpret_cast<std::uint16_t*>(scales)[position] = bits;
    const float scale = from_bfloat16(bits);
    quantise(x, scale > 0.0F ? 1.0F / scale : 0.0F, dim, to);
  };
  convert(key, narrow, record + layout.key_scales);
  convert(value, narrow + dim, record + layout.value_scales);
  scatter<std::int8_t, 2>(narrow, narrow + dim, dim, position, layout, record);
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(attend_float32);
HWY_EXPORT(attend_bfloat16);
HWY_EXPORT(attend_int8);
HWY_EXPORT(store_float32);
HWY_EXPORT(store_bfloat16);
HWY_EXPORT(store_int8);

std::size_t kv_record_bytes(KvFormat format, std::size_t dim) { return kv_record(format, dim).bytes; }

KvPieces kv_pieces(KvFormat format, std::size_t dim, std::size_t positions) {
  const KvRecord layout = kv_record(format, dim);
  const std::size_t rows = std::min(kKvChunk, (positions + kKeyBlock - 1) / kKeyBlock * kKeyBlock);
  const std::size_t elements = layout.values / kKvChunk * rows, scales = (layout.bytes - layout.value_scales) / kKvChunk * rows;
  return {{{0, elements}, {layout.values, elements}, {layout.key_scales, scales}, {layout.value_scales, scales}}};
}

void store_key_value(KvFormat format, const float* key, const float* value, std::size_t dim, std::size_t position, std::byte* record) {
  assert(dim % kKeyBlock == 0 && dim <= kMaxHeadDim && position < kKvChunk);
  switch (format) {
    case KvFormat::kFloat32: return HWY_DYNAMIC_DISPATCH(store_float32)(key, value, dim, position, record);
    case KvFormat::kBfloat16: return HWY_DYNAMIC_DISPATCH(store_bfloat16)(key, value, dim, position, record);
    case KvFormat::kInt8: return HWY_DYNAMIC_DISPATCH(store_int8)(key, value, dim, position, record);
  }
}

void prefetch_store(KvFormat format, std::size_t dim, std::size_t position, const std::byte* record) {
  const KvRecord layout = kv_record(format, dim);
  const auto fetch_lines = [&](std::size_t first, std::size_t bytes) {
    for (std::size_t at = first / kCacheLine * kCacheLine; at < first + bytes; at += kCacheLine) __builtin_prefetch(record + at, 1, 2);
  };
  const std::size_t row = layout.values / kKvChunk;  // bytes of one position's keys, and of its values
  fetch_lines(position / kKeyBlock * kKeyBlock * row, kKeyBlock * row);
  fetch_lines(layout.values + position / 2 * 2 * row, 2 * row);
  if (layout.key_scales == layout.value_scales) return;
  fetch_lines(layout.key_scales + position * sizeof(std::uint16_t), sizeof(std::uint16_t));
  fetch_lines(layout.value_scales + position * sizeof(std::uint16_t), sizeof(std::uint16_t));
}

void attend(KvFormat format, const float* q, const KvHead& head, std::size_t positions, std::size_t dim, float scale, float* out) {
  assert(dim % kKeyBlock == 0 && dim <= kMaxHeadDim && positions > 0);
  switch (format) {
    case KvFormat::kFloat32: return HWY_DYNAMIC_DISPATCH(attend_float32)(q, head, positions, dim, scale, out);
    case KvFormat::kBfloat16: return HWY_DYNAMIC_DISPATCH(attend_bfloat16)(q, head, positions, dim, scale, out);
    case KvFormat::kInt8: return HWY_DYNAMIC_DISPATCH(attend_int8)(q, head, positions, dim, scale, out);
  }
}

}  // namespace tts::model::ops
#endif  // HWY_ONCE
