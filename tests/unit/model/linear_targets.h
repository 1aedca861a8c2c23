#pragma once
// Runs a check with every kernel that this processor has for a format: each instruction set that Highway knows, and the matrix
// instructions beyond them.

#include <string>

#include "ops/tile_kernels.h"
#include "simd_targets.h"

namespace tts::model::ops {

inline constexpr WeightFormat kWeightFormats[] = {WeightFormat::kFloat32, WeightFormat::kBfloat16, WeightFormat::kInt8};

inline const char* name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kFloat32: return "float32";
    case WeightFormat::kBfloat16: return "bfloat16";
    case WeightFormat::kInt8: return "int8";
  }
  return "";
}

template <class Check>
void for_each_linear_target(WeightFormat format, Check&& check) {
  SCOPED_TRACE(name_of(format));
  if (format == WeightFormat::kFloat32) return for_each_simd_target(check);
  const auto kernels = tile_kernels(format);
  for (const TileKernel& kernel : kernels) {
    SCOPED_TRACE(kernel.name);
    choose_tile_kernel(format, kernel);
    if (&kernel == &kernels.back()) {
      for_each_simd_target(check);
    } else {
      check();
    }
  }
  choose_tile_kernel(format, kernels.front());
}

}  // namespace tts::model::ops
