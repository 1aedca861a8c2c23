#pragma once
// SeededNoise on tensors: the same Philox 4x32-10 numbers, so that both engines draw the same tokens.

#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace tts::model {

inline constexpr std::size_t kPhiloxRounds = 10;
inline constexpr std::size_t kPhiloxKeys = 2 * kPhiloxRounds;  // of one seed

// The keys of all rounds of a seed, [round][2].
void write_philox_keys(std::uint64_t seed, std::span<std::int64_t, kPhiloxKeys> out);

// Exp(1) draws [rows, codebooks, vocabulary] in float64, each rounded to float32 as SeededNoise's are. `keys` [rows, kPhiloxKeys] and
// `steps` [rows] are int64. Only elementwise operators on fixed shapes.
at::Tensor exponential_noise(const at::Tensor& keys, const at::Tensor& steps, std::int64_t codebooks, std::int64_t vocabulary);

}  // namespace tts::model
