#include "kv_cache.h"

#include <vector>

#include <gtest/gtest.h>

#include "simd_targets.h"

namespace tts::model {
namespace {

constexpr std::size_t kDim = 32, kLayers = 2, kHeads = 3;

KvCache make_cache(ops::KvFormat format, std::size_t positions = 200) {
  return KvCache({.format = format, .slots = 3, .layers = kLayers, .heads = kHeads, .positions = positions, .head_dim = kDim});
}

void fill(KvCache& cache, std::size_t slot, std::size_t first, std::size_t last, std::uint32_t seed) {
  for (std::size_t p = first; p < last; ++p) {
    for (std::size_t l = 0; l < kLayers; ++l) {
      for (std::size_t h = 0; h < kHeads; ++h) {
        const auto rows = ops::random_floats(2 * kDim, seed + static_cast<std::uint32_t>((p * kLayers + l) * kHeads + h));
        cache.store(slot, l, h, p, rows.data(), rows.data() + kDim);
      }
    }
  }
}

std::vector<float> attend_all(KvCache& cache, std::size_t slot, std::size_t positions) {
  const auto q = ops::random_floats(kDim, 99);
  std::vector<float> out(kLayers * kHeads * kDim);
  for (std::size_t l = 0; l < kLayers; ++l) {
    for (std::size_t h = 0; h < kHeads; ++h)
      ops::attend(cache.format(), q.data(), cache.head(slot, l, h), positions, kDim, 0.5F, out.data() + (l * kHeads + h) * kDim);
  }
  return out;
}

TEST(KvCache, SlotsLayersAndHeadsLieApart) {
  for (const auto format : {ops::KvFormat::kFloat32, ops::KvFormat::kBfloat16, ops::KvFormat::kInt8}) {
    KvCache cache = make_cache(format), single = make_cache(format);
    fill(cache, 1, 0, 150, 1);
    const auto before = attend_all(cache, 1, 150);
    fill(cache, 0, 0, 200, 5000);
    fill(cache, 2, 0, 200, 9000);
    fill(cache, 1, 150, 200, 7000);
    EXPECT_EQ(attend_all(cache, 1, 150), before);
    fill(single, 0, 0, 150, 1);
    EXPECT_EQ(attend_all(single, 0, 150), before) << "the slot's number does not matter";
  }
}

TEST(KvCache, APrefixMovesToAnotherSlot) {
  for (const auto format : {ops::KvFormat::kFloat32, ops::KvFormat::kBfloat16, ops::KvFormat::kInt8}) {
    for (const std::size_t prefix : {1, 2, 16, 17, 63, 64, 65, 130}) {
      KvCache cache = make_cache(format);
      fill(cache, 0, 0, 180, 1);
      const auto expected = attend_all(cache, 0, 180);
      std::vector<std::byte> saved(cache.prefix_bytes(prefix));
      cache.save_prefix(0, prefix, saved);
      fill(cache, 0, 0, 180, 3000);
      fill(cache, 2, 0, 200, 4000);  // what the next slot's former owner left
      cache.restore_prefix(2, prefix, saved);
      fill(cache, 2, prefix, 180, 1);
      EXPECT_EQ(attend_all(cache, 2, 180), expected) << prefix << " positions";
    }
  }
}

TEST(KvCache, SmallerFormatsTakeLessMemory) {
  const std::size_t wide = make_cache(ops::KvFormat::kFloat32).position_bytes();
  EXPECT_EQ(wide, kLayers * kHeads * 2 * kDim * sizeof(float));
  EXPECT_EQ(make_cache(ops::KvFormat::kBfloat16).position_bytes(), wide / 2);
  EXPECT_EQ(make_cache(ops::KvFormat::kInt8).position_bytes(), wide / 4 + kLayers * kHeads * 2 * 2) << "a scale for each row";
}

TEST(KvCache, AnImpossibleReservationIsRefused) {
  EXPECT_THROW(KvCache({.slots = std::size_t{1} << 40, .layers = 20, .heads = 12, .positions = 4096, .head_dim = 64}), std::bad_alloc);
}

}  // namespace
}  // namespace tts::model
