#pragma once
// What the plans are told about a row: how badly its listener needs sound, and how much of it the next piece should hold.

#include <cstdint>

#include "tts/engine/step_engine.h"
#include "tts/scheduling/scheduler.h"

#include "chunk_ramp.h"
#include "cost_model.h"
#include "decode_plan.h"
#include "row.h"
#include "urgency.h"

namespace tts::scheduling {

// Not thread-safe. Allocates nothing after construction.
class Pacing {
 public:
  // `costs` is not owned and must outlive it.
  Pacing(const SchedulerOptions& options, const engine::EngineInfo& info, const CostModel& costs);

  // Everything below is about a turn in which `stepping` rows want to take part in a step, all at once or in turn, and `early` ones have given early sound and not yet
  // reached the exact lookahead.
  void begin_turn(std::uint32_t stepping, std::uint32_t early, TimePoint now) noexcept;

  Duration heard_in(std::uint64_t samples, double pace = 1) const noexcept;  // time in which so many are heard
  Urgency urgency(const Row& row, std::uint32_t prefill_left, TimePoint now) const noexcept;
  // What the listener will have left when the row's next sound could be there; and whether that is too little for company.
  bool is_thin(Duration spare) const noexcept { return spare < urgency_rules_.thin; }
  Duration spare(const Row& row, std::uint32_t prefill_left, TimePoint now) const noexcept;
  // What the listener still has to hear once all generated steps are out. Nobody listens to a whole row.
  Duration covered(const Row& row, TimePoint now) const noexcept;
  DecodeRow decode_row(const Row& row, std::uint32_t pending, TimePoint now) const noexcept;
  // least_spare: of all listeners who hear something.
  DecodeRules decode_rules(bool needed_now, bool anyone_listens, Duration least_spare, bool slots_wanted) const noexcept;

 private:
  enum class Mode : std::uint8_t { kAuto, kLow, kExact };

  Mode mode_of(const Row& row) const noexcept;
  std::uint32_t unheard(const Row& row) const noexcept;
  std::uint32_t chunk_of(const Row& row, bool low, Duration left) const noexcept;
  bool may_be_early(const Row& row, std::uint32_t unheard, TimePoint now) const noexcept;
  Duration next_sound(const Row& row, std::uint32_t prefill_left) const noexcept;
  std::uint32_t first_early_chunk(double pace) const noexcept;
  double made_per_heard() const noexcept;

  const CostModel& costs_;
  const UrgencyRules urgency_rules_;
  const ChunkRamp low_ramp_, exact_ramp_;
  const Mode default_mode_;
  const Duration exact_within_;
  const std::uint32_t sample_rate_, samples_per_step_, max_pending_;
  const std::uint32_t exact_lookahead_, low_lookahead_;
  const std::uint32_t chunk_steps_, prefill_chunk_;
  const Duration audio_per_step_;
  std::uint32_t early_rows_ = 0;
  Duration round_{0};
  double most_early_pace_ = 0;  // of the listeners to whose rows early sound may be given
};

}  // namespace tts::scheduling
