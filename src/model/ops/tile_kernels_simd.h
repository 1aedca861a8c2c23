#pragma once

#include "ops/tile_kernels.h"

namespace tts::model::ops {

void multiply_int8_simd(const TileBlock& block);
void multiply_bfloat16_simd(const TileBlock& block);

}  // namespace tts::model::ops
