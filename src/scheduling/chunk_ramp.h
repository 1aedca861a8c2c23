#pragma once
// How many steps of sound the first pieces of an utterance should hold: little at first so that it starts early, more later because
// fewer, larger decodes cost less.

#include <cstdint>
#include <span>
#include <vector>

namespace tts::scheduling {

class ChunkRamp {
 public:
  // No entry exceeds chunk_steps, which every later piece holds, unless it was configured.
  // `configured` empty = the default of the mode: 4, 8, 12, 16 in low latency; 8, 8, 12, 16 in exact mode, where the wait for the
  // lookahead makes a smaller start pointless.
  ChunkRamp(std::span<const std::uint32_t> configured, std::uint32_t chunk_steps, bool low_latency);

  std::uint32_t steps(std::uint32_t piece) const noexcept { return steady(piece) ? chunk_steps_ : ramp_[piece]; }
  bool steady(std::uint32_t piece) const noexcept { return piece >= ramp_.size(); }  // past the ramp

 private:
  std::vector<std::uint32_t> ramp_;
  std::uint32_t chunk_steps_;
};

}  // namespace tts::scheduling
