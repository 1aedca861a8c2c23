#pragma once
// What this machine can do at most, measured in the same run as the figures that are compared with it.

#include <cstddef>
#include <cstdint>

namespace tts::bench {

// GB/s at which `threads` threads together read `bytes` bytes again and again, each its own part from end to end (the fastest pass of
// many). Sets beyond the caches give the memory's bandwidth, smaller ones that of the cache they fit in.
double read_bandwidth(std::uint32_t threads, std::size_t bytes);

// 1e9 operations a second (a multiply-add counts as two) of `threads` threads with the widest instruction that this processor has for the
// format, on registers: AMX tiles, AVX-512 or AVX-VNNI dot products, else fused multiply-adds.
struct PeakRate {
  const char* instruction;
  double giga_operations;
};
PeakRate peak_float32(std::uint32_t threads);
PeakRate peak_bfloat16(std::uint32_t threads);
PeakRate peak_int8(std::uint32_t threads);

}  // namespace tts::bench
