#pragma once
// Which rows take part in the next step, and with how much.

#include <cstdint>
#include <span>
#include <vector>

#include "tts/engine/step_engine.h"

namespace tts::scheduling {

struct StepRow {
  engine::SlotId slot;
  std::uint32_t prefill_left = 0;
  std::uint32_t pending = 0;  // generated steps not yet decoded
  bool runnable = true;       // neither paused, cancelled nor ended
};

struct StepLimits {
  std::uint32_t max_rows = 0;  // decode rows + prefill positions of one step
  std::uint32_t max_pending = 0;
  std::uint32_t prefill_chunk = 0;  // positions of one joining utterance while others generate
};

// Reused from turn to turn, so that planning does not allocate.
struct StepPlan {
  std::vector<engine::StepWork> work;
  std::vector<std::uint32_t> rows;  // row of each work item, as an index into the planner's input
  std::uint32_t decode_rows = 0;
  std::uint32_t prefill_tokens = 0;

  void clear() noexcept;
  void reserve(std::size_t count);
};

// Every generating row decodes one step; what is left of max_rows goes to prompts, oldest first, so that a join never takes a
// step away from a running stream. With no stream running a prompt takes all there is. Rows are given in order of admission.
void plan_step(std::span<const StepRow> rows, const StepLimits& limits, StepPlan& plan);

}  // namespace tts::scheduling
