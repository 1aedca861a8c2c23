#pragma once
// Kernels that need more than Highway offers. Call them only where the processor has what their names say.

#include "ops/tile_kernels.h"

namespace tts::model::ops {

void multiply_int8_amx(const TileBlock& block);
void multiply_bfloat16_amx(const TileBlock& block);
void multiply_int8_avx512_vnni(const TileBlock& block);
void multiply_bfloat16_avx512_bf16(const TileBlock& block);
void multiply_int8_avx_vnni(const TileBlock& block);

// Asks the kernel for the right to use AMX tiles, once for the process.
bool request_amx() noexcept;

}  // namespace tts::model::ops
