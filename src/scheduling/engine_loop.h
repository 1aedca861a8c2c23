#pragma once
// The recipe of one turn: take new work, drop what is cancelled or late, admit, step, decode, deliver, free.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tts/base/clock.h"
#include "tts/engine/step_engine.h"
#include "tts/observability/metrics.h"
#include "tts/scheduling/scheduler.h"

#include "chunk_ramp.h"
#include "decode_plan.h"
#include "mailbox.h"
#include "progress.h"
#include "retry_advice.h"
#include "step_plan.h"
#include "utterance.h"

namespace tts::scheduling {

// Has no thread of its own: the scheduler's thread, or a test, calls turn() again and again. Options must have been validated.
// In a turn without arrivals or endings nothing is allocated.
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
  std::uint32_t active() const noexcept { return active_.load(std::memory_order_relaxed); }  // any thread

 private:
  struct Row {
    UtterancePtr utterance;
    engine::SlotId slot;
    std::uint32_t steps = 0;
    std::uint32_t deliveries = 0;
    std::uint64_t samples = 0;
    engine::StopReason stop = engine::StopReason::kNone;  // kNone = generating
    bool flushed = false;
    bool gone = false;  // got its final call; removed at the end of the verb that set it
    std::vector<std::int32_t> text_tokens;

    bool is_text() const noexcept { return utterance->request.prompt.stage == engine::Stage::kText; }
    bool runnable() const noexcept;
    bool complete() const noexcept;
  };

  void take_new_work();
  void drop_cancelled_and_expired();
  void admit();
  void plan();
  void step();
  void decode();
  void deliver();
  void free_finished();

  void admit_one(UtterancePtr utterance);
  void record(Row& row, const engine::StepOutcome& outcome);
  void fail_rows(std::span<const std::uint32_t> rows, std::string_view what);
  void end(Row& row, engine::StopReason stop, Error error);
  void remove_gone();
  void rows_changed();
  TimePoint next_wake() const;

  engine::StepEngine& engine_;
  const SchedulerOptions options_;
  const Clock& clock_;
  observability::Metrics& metrics_;
  Mailbox& mailbox_;
  Progress& progress_;
  const ChunkRamp ramp_;
  const StepLimits step_limits_;
  const std::uint64_t error_ids_;  // random; keeps error ids of two runs apart
  std::uint64_t errors_ = 0;

  std::vector<UtterancePtr> arrivals_;
  std::deque<UtterancePtr> queue_;  // first come, first served
  std::vector<Row> rows_;           // in order of admission
  RetryAdvice retry_advice_;
  std::atomic<std::uint32_t> active_{0};

  // Of one turn.
  bool worked_ = false;
  TimePoint now_{};
  TimePoint admission_at_ = TimePoint::max();
  std::vector<StepRow> step_rows_;
  StepPlan step_plan_;
  std::vector<engine::StepOutcome> outcomes_;
  std::vector<DecodeRow> decode_rows_;
  std::vector<std::uint32_t> decoding_;  // rows of decode_work_
  std::vector<engine::DecodeWork> decode_work_;
  std::size_t pcm_stride_;
  std::unique_ptr<float[]> pcm_;  // max_batch pieces of pcm_stride_
};

}  // namespace tts::scheduling
