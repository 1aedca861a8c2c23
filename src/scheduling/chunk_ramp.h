#pragma once
// How many steps each decode of an utterance should hold: little at first so that sound starts early, more later because fewer,
// larger passes cost less.

#include <cstdint>
#include <span>
#include <vector>

namespace tts::scheduling {

class ChunkRamp {
 public:
  // `ramp` empty = the default: the lookahead and 8 steps (170 ms, enough for a 100 ms packet and the join held back behind it), then
  // 8, 12, 16. No chunk exceeds max_pending: a larger one is cut into parts, so that the next audio still comes at the same step.
  ChunkRamp(std::span<const std::uint32_t> ramp, std::uint32_t chunk_steps, std::uint32_t lookahead_steps, std::uint32_t max_pending);

  std::uint32_t steps(std::uint32_t delivery) const noexcept { return steady(delivery) ? chunk_steps_ : ramp_[delivery]; }
  bool steady(std::uint32_t delivery) const noexcept { return delivery >= ramp_.size(); }  // past the ramp

 private:
  std::vector<std::uint32_t> ramp_;
  std::uint32_t chunk_steps_;
};

}  // namespace tts::scheduling
