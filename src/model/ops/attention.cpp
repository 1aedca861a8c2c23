#include "ops/attention.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tts::model::ops::HWY_NAMESPACE {

constexpr std::size_t kBlockVectors = kKeyBlock / kLanes;
constexpr std::size_t kWideVectors = kLanes == 16 ? 4 : 2;  // independent chains per loop: enough to hide the latency of a multiply-add

void rotate_kernel(const float* cosine, const float* sine, std::size_t half, float* head) {
  const FloatTag d;
  std::size_t j = 0;
  for (; j + kLanes <= half; j += kLanes) {
    const FloatVec c = hn::LoadU(d, cosine + j), s = hn::LoadU(d, sine + j), a = hn::LoadU(d, head + j), b = hn::LoadU(d, head + half + j);
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, head + j);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, head + half + j);
  }
  for (; j < half; ++j) {
    const float a = head[j], b = head[half + j];
    head[j] = a * cosine[j] - b * sine[j];
    head[half + j] = b * cosine[j] + a * sine[j];
  }
}

// Scores of kBlocks neighbouring key blocks, one chain over dim each.
template <std::size_t kBlocks>
HWY_INLINE void score_blocks(const float* HWY_RESTRICT q, const float* HWY_RESTRICT keys, std::size_t dim, float scale,
                             float* HWY_RESTRICT scores) {
  const FloatTag d;
  FloatVec sum[kBlocks * kBlockVectors];
  for (FloatVec& s : sum) s = hn::Zero(d);
  for (std::size_t i = 0; i < dim; ++i) {
    const FloatVec value = hn::Set(d, q[i]);
    for (std::size_t v = 0; v < kBlocks * kBlockVectors; ++v) {
      const float* key = keys + (v / kBlockVectors) * dim * kKeyBlock + i * kKeyBlock + (v % kBlockVectors) * kLanes;
      sum[v] = hn::MulAdd(value, hn::Load(d, key), sum[v]);
    }
  }
  const FloatVec factor = hn::Set(d, scale);
  for (std::size_t v = 0; v < kBlocks * kBlockVectors; ++v) hn::StoreU(hn::Mul(sum[v], factor), d, scores + v * kLanes);
}

// Weighted sum of kVectors vectors of every value row; even and odd positions in chains of their own.
template <std::size_t kVectors>
HWY_INLINE void sum_values(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values, std::size_t positions, std::size_t dim,
                           float factor, float* HWY_RESTRICT out) {
  const FloatTag d;
  FloatVec even[kVectors], odd[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) even[v] = odd[v] = hn::Zero(d);
  std::size_t p = 0;
  for (; p + 2 <= positions; p += 2) {
    const FloatVec w0 = hn::Set(d, weights[p]), w1 = hn::Set(d, weights[p + 1]);
    for (std::size_t v = 0; v < kVectors; ++v) {
      even[v] = hn::MulAdd(w0, hn::Load(d, values + p * dim + v * kLanes), even[v]);
      odd[v] = hn::MulAdd(w1, hn::Load(d, values + (p + 1) * dim + v * kLanes), odd[v]);
    }
  }
  if (p < positions) {
    const FloatVec w0 = hn::Set(d, weights[p]);
    for (std::size_t v = 0; v < kVectors; ++v) even[v] = hn::MulAdd(w0, hn::Load(d, values + p * dim + v * kLanes), even[v]);
  }
  for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(hn::Mul(hn::Add(even[v], odd[v]), hn::Set(d, factor)), d, out + v * kLanes);
}

void attend_kernel(const float* q, const float* keys, const float* values, std::size_t positions, std::size_t dim, float scale,
                   float* scores, float* out) {
  const FloatTag d;
  const std::size_t blocks = (positions + kKeyBlock - 1) / kKeyBlock;
  std::size_t block = 0;
  for (; block + kWideVectors <= blocks; block += kWideVectors) {
    score_blocks<kWideVectors>(q, keys + block * dim * kKeyBlock, dim, scale, scores + block * kKeyBlock);
  }
  for (; block < blocks; ++block) score_blocks<1>(q, keys + block * dim * kKeyBlock, dim, scale, scores + block * kKeyBlock);
  // Positions that are not there get weight exp(-huge) = 0 and take part in the same vector loops.
  const std::size_t padded = blocks * kKeyBlock;
  for (std::size_t p = positions; p < padded; ++p) scores[p] = -1e30F;

  FloatVec highest = hn::LoadU(d, scores);
  for (std::size_t p = kLanes; p < padded; p += kLanes) highest = hn::Max(highest, hn::LoadU(d, scores + p));
  highest = hn::MaxOfLanes(d, highest);
  FloatVec total = hn::Zero(d);
  for (std::size_t p = 0; p < padded; p += kLanes) {
    const FloatVec e = hn::Exp(d, hn::Sub(hn::LoadU(d, scores + p), highest));
    total = hn::Add(total, e);
    hn::StoreU(e, d, scores + p);
  }
  const float factor = 1.0F / hn::GetLane(hn::SumOfLanes(d, total));

  std::size_t c = 0;
  for (; c + 4 * kLanes <= dim; c += 4 * kLanes) sum_values<4>(scores, values + c, positions, dim, factor, out + c);
  for (; c < dim; c += kLanes) sum_values<1>(scores, values + c, positions, dim, factor, out + c);
}

}  // namespace tts::model::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tts::model::ops {

HWY_EXPORT(rotate_kernel);
HWY_EXPORT(attend_kernel);

RopeTable::RopeTable(std::size_t positions, std::size_t dim, double theta)
    : half_(dim / 2), cos_(positions * half_), sin_(positions * half_) {
  for (std::size_t j = 0; j < half_; ++j) {
    const auto frequency = static_cast<float>(1.0 / std::pow(theta, static_cast<double>(2 * j) / static_cast<double>(dim)));
    for (std::size_t position = 0; position < positions; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      cos_[position * half_ + j] = static_cast<float>(std::cos(static_cast<double>(angle)));
      sin_[position * half_ + j] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
}

void RopeTable::rotate(std::size_t position, float* head) const {
  HWY_DYNAMIC_DISPATCH(rotate_kernel)(cos_.data() + position * half_, sin_.data() + position * half_, half_, head);
}

void store_key(const float* key, std::size_t dim, std::size_t position, float* keys) {
  float* column = keys + position / kKeyBlock * dim * kKeyBlock + position % kKeyBlock;
  for (std::size_t i = 0; i < dim; ++i) column[i * kKeyBlock] = key[i];
}

void attend(const float* q, const float* keys, const float* values, std::size_t positions, std::size_t dim, float scale, float* scores,
            float* out) {
  HWY_DYNAMIC_DISPATCH(attend_kernel)(q, keys, values, positions, dim, scale, scores, out);
}

}  // namespace tts::model::ops
#endif  // HWY_ONCE
