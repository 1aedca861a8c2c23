#include "roof.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "ops/aligned_buffer.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "ops/tile_kernels_x86.h"
#endif

namespace tts::bench {
namespace {

constexpr std::size_t kPasses = 12;

// Seconds of the fastest of many rounds in which all threads run fn(thread) at once.
template <class Fn>
double best_round(std::uint32_t threads, std::size_t rounds, Fn&& fn) {
  double best = 1e9;
  auto begin = std::chrono::steady_clock::now();
  std::barrier start(threads, [&]() noexcept { begin = std::chrono::steady_clock::now(); });
  std::barrier end(
      threads, [&]() noexcept { best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()); });
  std::vector<std::jthread> helpers;
  const auto work = [&](std::uint32_t thread) {
    for (std::size_t round = 0; round < rounds; ++round) {
      start.arrive_and_wait();
      fn(thread);
      end.arrive_and_wait();
    }
  };
  for (std::uint32_t thread = 1; thread < threads; ++thread) helpers.emplace_back(work, thread);
  work(0);
  helpers.clear();
  return best;
}

#if defined(__x86_64__)
#define TTS_CLONES __attribute__((target_clones("avx512f", "avx2", "default"), noinline))
#else
#define TTS_CLONES __attribute__((noinline))
#endif

// All of `data`, in a loop that compilers turn into wide loads.
TTS_CLONES std::uint64_t read_all(const std::uint64_t* data, std::size_t words) {
  constexpr std::size_t kChains = 32;
  std::uint64_t sums[kChains] = {};
  for (std::size_t i = 0; i + kChains <= words; i += kChains) {
    for (std::size_t c = 0; c < kChains; ++c) sums[c] ^= data[i + c];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t s : sums) sum ^= s;
  return sum;
}

volatile std::uint64_t sink;

constexpr std::size_t kIterations = 1 << 16;
constexpr std::size_t kChains = 8;  // hide the latency of an instruction

template <class Fn>
double giga_operations(std::uint32_t threads, double operations_per_iteration, Fn&& fn) {
  const double seconds = best_round(threads, kPasses, [&](std::uint32_t) { fn(); });
  return 1e-9 * operations_per_iteration * kIterations * threads / seconds;
}

#if defined(__x86_64__)

#define TTS_TARGET(names) __attribute__((target(names), noinline))

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Four chains of sums, as the kernels have them.
template <bool kInt8>
TTS_TARGET("amx-tile,amx-int8,amx-bf16")
void amx_loop() {
  static const TileConfig config;
  _tile_loadconfig(&config);
  for (std::size_t i = 0; i < kIterations / 16; ++i) {
    if constexpr (kInt8) {
      _tile_dpbsud(0, 6, 4);
      _tile_dpbsud(1, 6, 5);
      _tile_dpbsud(2, 7, 4);
      _tile_dpbsud(3, 7, 5);
    } else {
      _tile_dpbf16ps(0, 6, 4);
      _tile_dpbf16ps(1, 6, 5);
      _tile_dpbf16ps(2, 7, 4);
      _tile_dpbf16ps(3, 7, 5);
    }
  }
  _tile_release();
}

// Keeps a vector in its register and the compiler from seeing through it.
#define TTS_KEEP(v) asm volatile("" : "+v"(v))

TTS_TARGET("avx512f,avx512vnni") void vnni512_loop() {
  __m512i sums[kChains] = {}, w = _mm512_set1_epi32(1);
  for (std::size_t i = 0; i < kIterations; ++i) {
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, w, w);
      TTS_KEEP(sum);
    }
  }
}

TTS_TARGET("avx2,avxvnni") void vnni256_loop() {
  __m256i sums[kChains] = {}, w = _mm256_set1_epi32(1);
  for (std::size_t i = 0; i < kIterations; ++i) {
    for (__m256i& sum : sums) {
      sum = _mm256_dpbusd_avx_epi32(sum, w, w);
      asm volatile("" : "+x"(sum));
    }
  }
}

TTS_TARGET("avx512f,avx512bf16") void bf16_512_loop() {
  __m512 sums[kChains] = {};
  const __m512bh w = reinterpret_cast<__m512bh>(_mm512_set1_epi32(1));
  for (std::size_t i = 0; i < kIterations; ++i) {
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, w, w);
      TTS_KEEP(sum);
    }
  }
}

TTS_TARGET("avx512f") void fma512_loop() {
  __m512 sums[kChains] = {}, w = _mm512_set1_ps(0.5F);
  for (std::size_t i = 0; i < kIterations; ++i) {
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(sum, w, w);
      TTS_KEEP(sum);
    }
  }
}

TTS_TARGET("avx2,fma") void fma256_loop() {
  __m256 sums[kChains] = {}, w = _mm256_set1_ps(0.5F);
  for (std::size_t i = 0; i < kIterations; ++i) {
    for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(sum, w, w);
      asm volatile("" : "+x"(sum));
    }
  }
}

#endif

}  // namespace

double read_bandwidth(std::uint32_t threads, std::size_t bytes) {
  model::ops::AlignedBuffer buffer(bytes / sizeof(float), model::ops::PageAdvice::kHuge);
  std::memset(buffer.data(), 1, buffer.size() * sizeof(float));
  const std::size_t words = bytes / sizeof(std::uint64_t) / threads;
  const auto* const data = reinterpret_cast<const std::uint64_t*>(buffer.data());
  // Sets that fit in a cache are read so often that the start of a round does not count.
  const std::size_t repeats = std::max<std::size_t>(1, (std::size_t{64} << 20) / bytes);
  const double seconds = best_round(threads, kPasses, [&](std::uint32_t thread) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < repeats; ++i) sum ^= read_all(data + thread * words, words);
    sink = sum;
  });
  return 1e-9 * static_cast<double>(words * sizeof(std::uint64_t) * threads * repeats) / seconds;
}

#if defined(__x86_64__)

PeakRate peak_float32(std::uint32_t threads) {
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512 FMA", giga_operations(threads, kChains * 16 * 2, fma512_loop)};
  if (__builtin_cpu_supports("fma")) return {"AVX2 FMA", giga_operations(threads, kChains * 8 * 2, fma256_loop)};
  return {"unknown", 0.0};
}

PeakRate peak_bfloat16(std::uint32_t threads) {
  constexpr double kTile = 16 * 16 * 32 * 2;
  if (__builtin_cpu_supports("amx-bf16") && model::ops::request_amx())
    return {"AMX TDPBF16PS", giga_operations(threads, kTile * 4 / 16, amx_loop<false>)};
  if (__builtin_cpu_supports("avx512bf16")) return {"AVX512_BF16", giga_operations(threads, kChains * 32 * 2, bf16_512_loop)};
  return peak_float32(threads);
}

PeakRate peak_int8(std::uint32_t threads) {
  constexpr double kTile = 16 * 16 * 64 * 2;
  if (__builtin_cpu_supports("amx-int8") && model::ops::request_amx())
    return {"AMX TDPBSUD", giga_operations(threads, kTile * 4 / 16, amx_loop<true>)};
  if (__builtin_cpu_supports("avx512vnni")) return {"AVX512_VNNI", giga_operations(threads, kChains * 64 * 2, vnni512_loop)};
  if (__builtin_cpu_supports("avxvnni")) return {"AVX_VNNI", giga_operations(threads, kChains * 32 * 2, vnni256_loop)};
  return peak_float32(threads);
}

#else

PeakRate peak_float32(std::uint32_t) { return {"unknown", 0.0}; }
PeakRate peak_bfloat16(std::uint32_t) { return {"unknown", 0.0}; }
PeakRate peak_int8(std::uint32_t) { return {"unknown", 0.0}; }

#endif

}  // namespace tts::bench
