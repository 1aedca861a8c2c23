#include "chunk_ramp.h"

#include <algorithm>
#include <cassert>

namespace tts::scheduling {

ChunkRamp::ChunkRamp(std::span<const std::uint32_t> configured, std::uint32_t chunk_steps, bool low_latency)
    : ramp_(configured.begin(), configured.end()), chunk_steps_(chunk_steps) {
  assert(chunk_steps > 0);
  if (!ramp_.empty()) return;
  for (const std::uint32_t steps : {low_latency ? 4U : 8U, 8U, 12U, 16U}) ramp_.push_back(std::min(steps, chunk_steps));
}

}  // namespace tts::scheduling
