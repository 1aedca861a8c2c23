#pragma once
// One utterance in a slot.

#include <cstdint>
#include <vector>

#include "tts/base/playback_clock.h"
#include "tts/engine/step_engine.h"

#include "urgency.h"
#include "utterance.h"

namespace tts::scheduling {

// Belongs to the engine's thread.
struct Row {
  UtterancePtr utterance;
  engine::SlotId slot;
  std::uint32_t steps = 0;    // generated
  std::uint64_t samples = 0;  // given to the sink
  std::uint32_t pieces = 0;   // calls in which they were
  engine::StopReason stop = engine::StopReason::kNone;  // kNone = generating
  bool flushed = false;
  bool gone = false;  // got its final call; removed at the end of the verb that set it
  std::vector<std::int32_t> text_tokens;

  std::uint64_t leads_since_step = 0;  // steps of the engine before this row had its listener's place, alone or before those that follow
  bool follows = false;              // an earlier utterance of its listener is in another slot
  PlaybackClock playback;            // of the listener, as far as this utterance knows
  bool early = false;                // the last piece had less than exact lookahead
  std::uint32_t sat_out = 0;         // steps in a row that it yielded or waited for its turn
  std::uint32_t turn_left = 0;       // steps of its turn still to come, where not all rows take part in each
  Urgency urgency = Urgency::kNow;   // at the start of the turn

  bool is_text() const noexcept { return utterance->request.prompt.stage == engine::Stage::kText; }
  double pace() const noexcept { return utterance->request.pace; }
  bool is_whole() const noexcept { return utterance->request.delivery == engine::Delivery::kWhole; }
  bool runnable() const noexcept {
    return !gone && !utterance->cancelled.load(std::memory_order_relaxed) && !utterance->paused.load(std::memory_order_relaxed);
  }
  bool complete() const noexcept { return stop != engine::StopReason::kNone && (flushed || is_text() || steps == 0); }
};

}  // namespace tts::scheduling
