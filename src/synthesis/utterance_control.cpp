#include "utterance_control.h"

#include <cassert>

namespace tts::synthesis {
namespace {

std::uint8_t bit(PauseReason reason) noexcept { return static_cast<std::uint8_t>(reason); }

}  // namespace

void UtteranceControl::attach(engine::UtteranceId id) {
  const std::lock_guard lock(mutex_);
  if (id_ == kEnded) return;  // over before submit() returned
  id_ = id;
  if (runs_dry_at_ != TimePoint{}) engine_.set_runs_dry_at(id_, runs_dry_at_);
  if (reasons_ != 0) engine_.set_paused(id_, true);
  if (cancelled_) engine_.cancel(id_);
}

void UtteranceControl::end(const std::function<void()>& last_post) {
  const std::lock_guard lock(mutex_);
  id_ = kEnded;
  last_post();
}

void UtteranceControl::await_end() { const std::lock_guard lock(mutex_); }

void UtteranceControl::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (reachable()) engine_.cancel(id_);
}

void UtteranceControl::pause(PauseReason reason) {
  const std::lock_guard lock(mutex_);
  change(static_cast<std::uint8_t>(reasons_ | bit(reason)));
}

void UtteranceControl::resume(PauseReason reason) {
  const std::lock_guard lock(mutex_);
  change(static_cast<std::uint8_t>(reasons_ & ~bit(reason)));
}

void UtteranceControl::tell_runs_dry_at(TimePoint handled) {
  const std::lock_guard lock(mutex_);
  runs_dry_at_ = handled + std::chrono::duration_cast<Duration>(static_cast<double>(backlog_) * per_sample_);
  if (reachable()) engine_.set_runs_dry_at(id_, runs_dry_at_);
}

void UtteranceControl::add_backlog(std::uint64_t samples) {
  const std::lock_guard lock(mutex_);
  backlog_ += samples;
  if (backlog_ > max_backlog_) change(static_cast<std::uint8_t>(reasons_ | bit(PauseReason::kBacklog)));
}

void UtteranceControl::take_backlog(std::uint64_t samples) {
  const std::lock_guard lock(mutex_);
  assert(samples <= backlog_);
  backlog_ -= samples;
  if (backlog_ <= max_backlog_ / 2) change(static_cast<std::uint8_t>(reasons_ & ~bit(PauseReason::kBacklog)));
}

void UtteranceControl::change(std::uint8_t reasons) {
  const bool was_paused = reasons_ != 0;
  reasons_ = reasons;
  const bool paused = reasons_ != 0;
  if (paused != was_paused && reachable()) engine_.set_paused(id_, paused);
}

}  // namespace tts::synthesis
