#pragma once
// An orthogonal turn of a row, up to a factor, that spreads single large values over many: what a row that is rounded to int8 with one
// scale needs, because its largest value sets the scale. Weights turned alike give the same products.

#include <algorithm>
#include <cstddef>

namespace tts::model::ops {

// Larger blocks spread a value further, but no longer lie in registers; what is gained beyond is small (src/docs/decisions/precision.md).
inline constexpr std::size_t kMaxHadamardBlock = 64;

// The largest power of two that divides n, at most kMaxHadamardBlock.
constexpr std::size_t hadamard_block(std::size_t n) { return std::min(n & (~n + 1), kMaxHadamardBlock); }

// x becomes, block by block of hadamard_block(n) values, the Walsh-Hadamard transform of its blocks. Applied twice it gives x times the
// block size. Every instruction set gives the same bits.
void hadamard(float* x, std::size_t n) noexcept;

}  // namespace tts::model::ops
