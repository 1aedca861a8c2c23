#include "parking.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include <spdlog/spdlog.h>

namespace tts::scheduling {
namespace {

constexpr std::chrono::seconds kRetryAfter{1};

void warn_that_it_stays(const Row& row, std::string_view why) {
  const Utterance& utterance = *row.utterance;
  spdlog::warn("request {}: utterance {} is paused and keeps its slot: {}", utterance.request.request_id, utterance.id, why);
}

}  // namespace

Parking::Parking(engine::StepEngine& engine, const SchedulerOptions& options, observability::Metrics& metrics)
    : engine_(engine), metrics_(metrics), capacity_(std::size_t{options.max_parked_mb} << 20U) {}

// While two rows change places both are held for a moment.
bool Parking::fits(std::size_t bytes, std::size_t room_to_come) const noexcept {
  return bytes > 0 && held_ + bytes <= capacity_ + room_to_come;
}

std::uint32_t Parking::can_leave(std::span<const Row> rows, TimePoint when) const noexcept {
  std::uint32_t count = 0;
  std::size_t together = 0;
  for (const Row& row : rows) {
    if (!row.paused || row.may_leave_at > when) continue;
    const std::size_t bytes = engine_.parking_bytes(row.slot);
    if (bytes == 0 || !fits(together + bytes)) continue;
    together += bytes;
    ++count;
  }
  return count;
}

Row* Parking::first_to_leave(std::span<Row> rows, TimePoint now, std::size_t room_to_come) const noexcept {
  Row* first = nullptr;
  for (Row& row : rows) {
    if (!row.paused || row.may_leave_at > now || (first != nullptr && first->may_leave_at <= row.may_leave_at)) continue;
    if (fits(engine_.parking_bytes(row.slot), room_to_come)) first = &row;
  }
  return first;
}

bool Parking::park(Row& row, TimePoint now) {
  row.may_leave_at = now + kRetryAfter;  // should it stay
  if (!row.utterance->paused.load(std::memory_order_relaxed)) return false;
  try {
    if (rows_.size() == rows_.capacity()) rows_.reserve(2 * rows_.size() + 8);  // what has left its slot has a place here
    auto parked = engine_.park(row.slot);
    if (!parked.ok()) {
      warn_that_it_stays(row, parked.error().message);
      return false;
    }
    row.parked = std::move(parked).value();
  } catch (const std::exception& failure) {
    warn_that_it_stays(row, failure.what());
    return false;
  }
  held_ += row.parked->bytes();
  metrics_.utterance_parked(row.parked->bytes());
  rows_.push_back(std::move(row));
  return true;
}

std::uint32_t Parking::returning() const noexcept {
  return static_cast<std::uint32_t>(std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return !row.paused; }));
}

Row* Parking::first_to_return() noexcept {
  Row* first = nullptr;
  for (Row& row : rows_) {
    if (!row.paused && (first == nullptr || row.playback.runs_dry_at() < first->playback.runs_dry_at())) first = &row;
  }
  return first;
}

Status Parking::unpark(Row& row) {
  const std::size_t bytes = row.parked->bytes();
  try {
    const auto slot = engine_.unpark(row.parked);
    if (!slot.ok()) return slot.error();
    row.slot = *slot;
  } catch (const std::exception& failure) {
    const Utterance& utterance = *row.utterance;
    spdlog::error("request {}: the engine could not take utterance {} back: {}", utterance.request.request_id, utterance.id,
                  failure.what());
    return Error{ErrorCode::kEngineFailure, "the engine could not go on with this utterance after a pause", {}, {}};
  }
  held_ -= bytes;
  metrics_.utterance_unparked(bytes);
  return Ok{};
}

void Parking::give_up(Row& row) noexcept {
  held_ -= row.parked->bytes();
  metrics_.parked_utterance_ended(row.parked->bytes());
  row.parked.reset();
}

bool Parking::remove_gone() {
  return std::erase_if(rows_, [](const Row& row) { return row.parked == nullptr; }) > 0;
}

}  // namespace tts::scheduling
