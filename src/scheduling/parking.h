#pragma once
// Rows whose listeners paused for so long that others got their slots. What the slots held waits in host memory, up to a cap.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tts/base/clock.h"
#include "tts/base/result.h"
#include "tts/engine/step_engine.h"
#include "tts/observability/metrics.h"
#include "tts/scheduling/scheduler.h"

#include "row.h"

namespace tts::scheduling {

// Belongs to the engine's thread.
class Parking {
 public:
  // `engine` and `metrics` are not owned and must outlive it.
  Parking(engine::StepEngine& engine, const SchedulerOptions& options, observability::Metrics& metrics);

  bool empty() const noexcept { return rows_.empty(); }
  std::size_t size() const noexcept { return rows_.size(); }
  std::span<Row> rows() noexcept { return rows_; }  // in no promised order
  std::span<const Row> rows() const noexcept { return rows_; }

  // Of `rows`, which have slots: how many may leave theirs at `when`, with room here for all of them together; and the one that leaves
  // first, null = none. What the engine cannot park never leaves. room_to_come: bytes that the slot is emptied for.
  std::uint32_t can_leave(std::span<const Row> rows, TimePoint when) const noexcept;
  Row* first_to_leave(std::span<Row> rows, TimePoint now, std::size_t room_to_come = 0) const noexcept;

  // Moves the row in here and frees its slot. False: it keeps it for now, because its pause has just ended or the copy failed.
  bool park(Row& row, TimePoint now);

  // Rows whose pause has ended, and the one of them whose listener runs dry first; null = none.
  std::uint32_t returning() const noexcept;
  Row* first_to_return() noexcept;

  // Of rows(). unpark(): has a slot again and is to be moved out; on error it stays (kQueueFull) or must be given up. give_up(): what it
  // held is gone. remove_gone() takes away both kinds; false = there were none.
  Status unpark(Row& row);
  void give_up(Row& row) noexcept;
  bool remove_gone();

 private:
  bool fits(std::size_t bytes, std::size_t room_to_come = 0) const noexcept;

  engine::StepEngine& engine_;
  observability::Metrics& metrics_;
  const std::size_t capacity_;
  std::size_t held_ = 0;
  std::vector<Row> rows_;
};

}  // namespace tts::scheduling
