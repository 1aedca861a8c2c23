#pragma once
// One utterance that was let in: in a slot, or parked.

#include <cstdint>
#include <memory>
#include <vector>

#include "tts/base/playback_clock.h"
#include "tts/engine/step_engine.h"

#include "urgency.h"
#include "utterance.h"

namespace tts::scheduling {

// Belongs to the engine's thread.
struct Row {
  UtterancePtr utterance;
  std::uint64_t admission = 0;  // its number; rows in slots are kept in this order
  engine::SlotId slot;
  std::unique_ptr<engine::ParkedUtterance> parked;  // what its slot held; null = is in a slot
  std::uint32_t steps = 0;    // generated
  std::uint64_t samples = 0;  // given to the sink
  std::uint32_t pieces = 0;   // calls in which they were
  engine::StopReason stop = engine::StopReason::kNone;  // kNone = generating
  bool flushed = false;
  bool gone = false;  // got its final call; removed at the end of the verb that set it
  std::vector<std::int32_t> text_tokens;

  bool follows = false;         // an earlier utterance of its listener was let in and has not ended
  std::uint64_t steps_led = 0;  // of the engine, while it did not follow and was not paused
  bool paused = false;          // as last heard: takes no steps
  TimePoint may_leave_at{};     // while paused: from when on others may have its slot
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
