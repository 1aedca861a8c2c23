#include "ops/tile_kernels.h"

#include <atomic>
#include <cassert>
#include <vector>

#include "ops/tile_kernels_simd.h"
#if defined(__x86_64__)
#include "ops/tile_kernels_x86.h"
#endif

namespace tts::model::ops {
namespace {

struct Choice {
  std::vector<TileKernel> kernels;
  std::atomic<const TileKernel*> chosen{nullptr};

  explicit Choice(std::vector<TileKernel> available) : kernels(std::move(available)), chosen(kernels.data()) {}
};

std::vector<TileKernel> available(WeightFormat format) {
  const bool int8 = format == WeightFormat::kInt8;
  std::vector<TileKernel> kernels;
#if defined(__x86_64__)
  const bool amx = __builtin_cpu_supports("amx-tile") && (int8 ? __builtin_cpu_supports("amx-int8") : __builtin_cpu_supports("amx-bf16"));
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (amx && avx512 && request_amx()) kernels.push_back({"amx", int8 ? multiply_int8_amx : multiply_bfloat16_amx});
  if (int8) {
    if (avx512 && __builtin_cpu_supports("avx512vnni")) kernels.push_back({"avx512_vnni", multiply_int8_avx512_vnni});
    if (__builtin_cpu_supports("avxvnni")) kernels.push_back({"avx_vnni", multiply_int8_avx_vnni});
  } else {
    if (avx512 && __builtin_cpu_supports("avx512bf16")) kernels.push_back({"avx512_bf16", multiply_bfloat16_avx512_bf16});
  }
#endif
  kernels.push_back({"simd", int8 ? multiply_int8_simd : multiply_bfloat16_simd});
  return kernels;
}

Choice& choice(WeightFormat format) {
  static Choice bfloat16(available(WeightFormat::kBfloat16)), int8(available(WeightFormat::kInt8));
  assert(format != WeightFormat::kFloat32);
  return format == WeightFormat::kInt8 ? int8 : bfloat16;
}

}  // namespace

std::span<const TileKernel> tile_kernels(WeightFormat format) { return choice(format).kernels; }

const TileKernel& tile_kernel(WeightFormat format) noexcept { return *choice(format).chosen.load(std::memory_order_relaxed); }

void choose_tile_kernel(WeightFormat format, const TileKernel& kernel) { choice(format).chosen.store(&kernel); }

}  // namespace tts::model::ops
