#pragma once
// Counts the allocations of a test program, to prove that a hot path makes none, and lets one fail, to see what is left behind. A program
// that uses it compiles allocation_counter.cpp of its folder in; under a sanitizer, which brings its own allocator, nothing is counted.

#include <atomic>
#include <cstdint>

namespace tts::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCountsAllocations = false;
#else
inline constexpr bool kCountsAllocations = true;
#endif

inline std::atomic<std::uint64_t> allocation_count{0};

// So many more succeed, and the one after them fails; after that none does. -1 = none fails.
inline std::atomic<std::int64_t> allocations_until_failure{-1};

}  // namespace tts::testing
