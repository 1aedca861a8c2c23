#include "support/allocation_counter.h"

#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t size) {
  tts::testing::allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (tts::testing::allocations_until_failure >= 0 && tts::testing::allocations_until_failure.fetch_sub(1) == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif
