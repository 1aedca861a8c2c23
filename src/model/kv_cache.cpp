#include "kv_cache.h"

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
    : layers_(sizes.layers),
      heads_(sizes.heads),
      positions_(ops::round_up_to_key_block(sizes.positions)),
      head_dim_(sizes.head_dim),
      head_size_(product({positions_, head_dim_})),
      arena_(product({sizes.slots, layers_, heads_, 2, head_size_})) {}

}  // namespace tts::model
