#pragma once
// The recipe of one turn: take new work, drop what is cancelled or late, hear how the listeners are, bring back who was parked, weigh who
// is in need, admit, step, decode, deliver, free.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tts/base/clock.h"
#include "tts/engine/step_engine.h"
#include "tts/observability/metrics.h"
#include "tts/scheduling/scheduler.h"

#include "cost_model.h"
#include "decode_plan.h"
#include "mailbox.h"
#include "pacing.h"
#include "parking.h"
#include "progress.h"
#include "row.h"
#include "step_plan.h"
#include "wait_estimate.h"
#include "waiting_room.h"

namespace tts::scheduling {

// Has no thread of its own: the scheduler's thread, or a test, calls turn() again and again. Options must have been validated.
// In a turn without arrivals, endings or parking nothing is allocated.
class EngineLoop {
 public:
  struct Turn {
    bool worked = false;    // false: call again only at wake_at or when the mailbox wakes
    bool finished = false;  // stopping, and every utterance got its final call
    TimePoint wake_at = TimePoint::max();
  };

  EngineLoop(engine::StepEngine& engine, const SchedulerOptions& options, const Clock& clock, observability::Metrics& metrics,
             Mailbox& mailbox, Progress& progress);

  Turn turn();

  // Any thread.
  std::uint32_t active() const noexcept { return active_.load(std::memory_order_relaxed); }
  std::uint32_t parked() const noexcept { return parked_.load(std::memory_order_relaxed); }
  std::uint32_t realtime_streams() const noexcept { return realtime_streams_.load(std::memory_order_relaxed); }  // 0 = not known yet

 private:
  void take_new_work();
  void drop_cancelled_and_expired();
  void hear_listeners();
  void bring_back();
  void weigh_needs();
  void admit();
  void plan();
  void step();
  void decode();
  void deliver();
  void free_finished();

  double max_load() const noexcept { return options_.max_load_percent / 100.0; }
  LetIn let_in() const noexcept { return {.in_slots = rows_, .parked = parking_.rows()}; }
  template <class Visit>
  void for_each_let_in(Visit visit) {
    for (Row& row : rows_) visit(row);
    for (Row& row : parking_.rows()) visit(row);
  }
  template <class Visit>
  void for_each_let_in(Visit visit) const {
    for (const Row& row : rows_) visit(row);
    for (const Row& row : parking_.rows()) visit(row);
  }
  bool is_first_of_listener(const Row& row) const;
  bool free_a_slot(const Row* for_whom = nullptr);
  bool has_time_to_copy();
  AdmissionState admission_state(TimePoint slots_wanted_at) const;
  bool keeps_up_with(double newcomer);
  void admit_one(UtterancePtr utterance);
  Result<engine::SlotId> acquire_slot(const Utterance& utterance);
  void note_prefixes();
  void note_who_takes_part();
  void lengthen_followers(const Row& leader, TimePoint now, Duration audio);
  void record(Row& row, const engine::StepOutcome& outcome);
  void fail_rows(std::span<const std::uint32_t> rows, std::string_view what);
  void end(Row& row, engine::StopReason stop, Error error);
  void give_up_slot(Row& row);
  void remove_gone();
  void rows_changed();
  void publish_outlook();
  TimePoint next_wake() const;

  engine::StepEngine& engine_;
  const SchedulerOptions options_;
  const Clock& clock_;
  observability::Metrics& metrics_;
  Mailbox& mailbox_;
  Progress& progress_;
  CostModel costs_;
  Pacing pacing_;
  StepLimits step_limits_;
  const std::uint64_t error_ids_;  // random; keeps error ids of two runs apart
  std::uint64_t errors_ = 0;

  std::vector<UtterancePtr> arrivals_;
  WaitingRoom waiting_;
  std::uint32_t whole_passed_over_ = 0;
  std::vector<Row> rows_;  // in slots, in order of admission
  Parking parking_;
  std::uint64_t admissions_ = 0;
  Residence residence_;
  std::uint64_t engine_steps_ = 0;
  engine::EngineStats engine_stats_;  // as last told to the metrics
  std::atomic<std::uint32_t> active_{0}, parked_{0};
  std::atomic<std::uint32_t> realtime_streams_{0};

  // Of one turn.
  bool worked_ = false;
  TimePoint now_{};
  TimePoint work_began_{};
  TimePoint admission_at_ = TimePoint::max();
  bool needed_now_ = false;      // some row is
  bool anyone_listens_ = false;
  Duration least_spare_ = Duration::max();  // of the listeners whose rows generate and who hear something
  std::vector<StepRow> step_rows_;
  StepPlan step_plan_;
  std::vector<engine::StepOutcome> outcomes_;
  std::vector<DecodeRow> decode_rows_;
  DecodePlan decode_plan_;  // what decode_work_ holds, in its order
  std::vector<double> paces_;
  std::vector<std::uint32_t> failed_;
  std::uint32_t decoded_steps_ = 0, decoder_work_ = 0, early_work_ = 0;
  std::vector<engine::DecodeWork> decode_work_;
  std::size_t pcm_stride_;
  std::unique_ptr<float[]> pcm_;  // max_batch pieces of pcm_stride_
};

}  // namespace tts::scheduling
