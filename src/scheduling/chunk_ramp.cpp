#include "chunk_ramp.h"

#include <algorithm>
#include <cassert>

namespace tts::scheduling {

ChunkRamp::ChunkRamp(std::span<const std::uint32_t> ramp, std::uint32_t chunk_steps, std::uint32_t lookahead_steps,
                     std::uint32_t max_pending)
    : chunk_steps_(std::min(chunk_steps, max_pending)) {
  assert(chunk_steps > 0 && max_pending > 0);
  std::vector<std::uint32_t> wanted(ramp.begin(), ramp.end());
  if (wanted.empty()) {
    wanted = {lookahead_steps + 8};
    for (const std::uint32_t steps : {8U, 12U, 16U}) wanted.push_back(std::min(steps, chunk_steps));
  }
  for (std::uint32_t steps : wanted) {
    for (; steps > max_pending; steps -= max_pending) ramp_.push_back(max_pending);
    ramp_.push_back(steps);
  }
}

}  // namespace tts::scheduling
