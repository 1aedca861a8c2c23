#pragma once
// Which rows take part in the next step, and with how much.

#include <cstdint>
#include <span>
#include <vector>

#include "tts/engine/step_engine.h"

#include "cost_model.h"
#include "urgency.h"

namespace tts::scheduling {

struct StepRow {
  engine::SlotId slot;
  std::uint32_t prefill_left = 0;
  std::uint32_t pending = 0;  // generated steps not yet decoded
  bool runnable = true;       // neither paused, cancelled nor ended
  Urgency urgency = Urgency::kNow;
  std::uint32_t sat_out = 0;  // steps in a row that it yielded or waited for its turn
  Duration covered{0};        // what its listener still has to hear, generated steps included
  bool in_turn = false;       // was chosen and has steps of its turn left
  bool whole = false;         // has a right to a share however urgent others are
};

struct StepLimits {
  std::uint32_t max_rows = 0;  // decode rows + prefill positions of one step
  std::uint32_t max_pending = 0;
  std::uint32_t prefill_chunk = 0;    // positions of one joining utterance while others generate
  std::uint32_t prefill_budget = ~std::uint32_t{0};  // positions of all joining utterances while others generate
};

// Reused from turn to turn, so that planning does not allocate.
struct StepPlan {
  std::vector<engine::StepWork> work;
  std::vector<std::uint32_t> rows;      // row of each work item, as an index into the planner's input
  std::vector<std::uint32_t> yielding;  // rows that could run and sit this step out
  std::vector<std::uint32_t> waiting;   // rows whose turn it is not
  std::vector<std::uint32_t> order;     // scratch: generating rows that want to take part
  std::uint32_t decode_rows = 0;
  std::uint32_t prefill_tokens = 0;

  void clear() noexcept;
  void reserve(std::size_t count);
};

inline constexpr std::uint32_t kWholeShare = 8;  // a whole row takes part in at least one of so many of its chances
inline constexpr std::uint32_t kTurnSteps = 12;  // that a row takes part in, once it was chosen from more than a step should serve

// Every generating row decodes one step; what is left of max_rows goes to prompts, oldest first, so that a join never takes a step
// away from a running stream. With no stream running a prompt takes all there is. Rows are given in order of admission.
//
// While some row is needed now, rows with plenty sit out; rows far ahead sit out while any other can run. But only where that makes
// the step noticeably shorter: on an engine whose step costs the same for any batch, yielding would help nobody.
//
// And where a step of so many rows takes longer than several of fewer do (their keys and values outgrow the caches), only so many take
// part: those needed now, then those whose turn lasts, then those whose listeners run dry first. A turn lasts for several steps, or what
// one step brought into the caches would be gone by the row's next.
void plan_step(std::span<const StepRow> rows, const StepLimits& limits, const CostModel& costs, StepPlan& plan);

// Prompt positions that may ride on one step of `rows` when the listener who is closest to running dry can spare that much.
std::uint32_t prefill_budget(Duration spare, std::uint32_t rows, const CostModel& costs) noexcept;

}  // namespace tts::scheduling
