#pragma once
// An orthogonal turn of a row, up to a factor, that spreads single large values over many: what a row that is rounded to int8 with one
// scale needs, because its largest value sets the scale. Weights turned alike give the same products.

#include <cstddef>

namespace tts::model::ops {

// x becomes, block by block, the Walsh-Hadamard transform of its blocks of the largest power of two that divides n. Applied twice it gives
// x times that block size. Every instruction set gives the same bits.
void hadamard(float* x, std::size_t n) noexcept;

// The size of those blocks: the factor.
constexpr std::size_t hadamard_block(std::size_t n) { return n & (~n + 1); }

}  // namespace tts::model::ops
