#pragma once
// How many streams a server carries.

#include <cstddef>
#include <functional>

namespace tts::bench {

// The search stops when the answer is known to so many streams, or to this share of it, whichever is more.
inline constexpr double kCapacityResolution = 0.05;

// The largest number of streams from 1 to `most` that passes both tests; 0 = not even one. First doubles and halves with `quick`, then
// goes down from there until `thorough` agrees. Both are called with a number of streams and may be called again with the same.
std::size_t find_capacity(std::size_t most, const std::function<bool(std::size_t)>& quick,
                          const std::function<bool(std::size_t)>& thorough);

}  // namespace tts::bench
