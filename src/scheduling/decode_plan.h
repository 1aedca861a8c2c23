#pragma once
// Whose steps go through the decoder and vocoder now.

#include <cstdint>
#include <span>
#include <vector>

namespace tts::scheduling {

struct DecodeRow {
  std::uint32_t pending = 0;
  std::uint32_t wanted = 0;  // steps the row's next decode should hold
  bool steady = false;       // past its ramp
  bool ended = false;        // no more steps will come: flush
  bool runnable = true;      // neither paused, cancelled nor already flushed
};

// Fills `chosen` with indices of rows, each to be decoded with all its pending steps. A row is due when it holds what it wants, is
// full, or has ended. Due rows never wait for others; rows past their ramp that hold at least half of what they want come along,
// because one pass over the weights serves all and streams then stay in step. Nobody due: nobody comes.
void plan_decode(std::span<const DecodeRow> rows, std::uint32_t max_pending, std::vector<std::uint32_t>& chosen);

}  // namespace tts::scheduling
