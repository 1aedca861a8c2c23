#pragma once
// The sizes work is padded to, so that a few recordings serve every amount of it.

#include <cstdint>
#include <span>
#include <vector>

namespace tts::model {

// Ascending and unique, of the preferred sizes those below `largest`, then `largest`; none preferred = powers of two from `smallest`.
std::vector<std::uint32_t> make_batch_sizes(std::span<const std::uint32_t> preferred, std::uint32_t smallest, std::uint32_t largest);

// The least of the ascending `sizes` that holds `count`, which is at most their last.
std::uint32_t batch_size_for(std::span<const std::uint32_t> sizes, std::uint32_t count);

}  // namespace tts::model
