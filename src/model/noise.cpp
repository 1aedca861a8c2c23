#include "noise.h"

#include <array>
#include <cmath>

namespace tts::model {
namespace {

using Block = std::array<std::uint32_t, 4>;

Block philox(Block counter, std::uint64_t seed) noexcept {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53U, kMultiplier1 = 0xCD9E8D57U, kWeyl0 = 0x9E3779B9U, kWeyl1 = 0xBB67AE85U;
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0], product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

}  // namespace

float SeededNoise::exponential(std::uint32_t step, std::uint32_t codebook, std::uint32_t token) const noexcept {
  const Block bits = philox({step, codebook, token, 0}, seed_);
  const std::uint64_t wide = (std::uint64_t{bits[0]} << 32) | bits[1];
  const double uniform = (static_cast<double>(wide >> 11) + 0.5) * 0x1p-53;  // strictly inside (0, 1)
  return static_cast<float>(-std::log(uniform));
}

}  // namespace tts::model
