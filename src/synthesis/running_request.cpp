#include "running_request.h"

#include <utility>

namespace tts::synthesis {

SynthesisReport RunningRequest::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

void RunningRequest::cut(Error reason) {
  const std::lock_guard lock(mutex_);
  if (!wake_ || cut_reason_) return;
  cut_reason_ = std::move(reason);
  for (const auto& control : controls_) control->cancel();
  wake_();
}

void RunningRequest::discard() {
  cut({ErrorCode::kCancelled, "the client has gone", {}, {}});
  log_.close();
  account_log();
}

void RunningRequest::attach(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void RunningRequest::detach() {
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
}

void RunningRequest::wake() {
  const std::lock_guard lock(mutex_);
  if (wake_) wake_();
}

std::optional<Error> RunningRequest::cut_reason() const {
  const std::lock_guard lock(mutex_);
  return cut_reason_;
}

bool RunningRequest::add(std::shared_ptr<UtteranceControl> control) {
  const std::lock_guard lock(mutex_);
  if (cut_reason_) return false;
  controls_.push_back(std::move(control));
  return true;
}

void RunningRequest::remove(const std::shared_ptr<UtteranceControl>& control) {
  const std::lock_guard lock(mutex_);
  std::erase(controls_, control);
}

void RunningRequest::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& control : controls_) control->cancel();
}

void RunningRequest::pause_all(PauseReason reason) {
  const std::lock_guard lock(mutex_);
  for (const auto& control : controls_) control->pause(reason);
}

void RunningRequest::resume_all(PauseReason reason) {
  const std::lock_guard lock(mutex_);
  for (const auto& control : controls_) control->resume(reason);
}

void RunningRequest::update(const std::function<void(SynthesisReport&)>& change) {
  const std::lock_guard lock(mutex_);
  change(report_);
}

void RunningRequest::account_log() {
  const std::lock_guard lock(mutex_);
  const std::size_t held = log_.held_bytes();
  metrics_.add_stream_bytes(static_cast<std::int64_t>(held) - static_cast<std::int64_t>(accounted_bytes_));
  accounted_bytes_ = held;
}

}  // namespace tts::synthesis
