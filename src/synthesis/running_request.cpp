#include "running_request.h"

#include <utility>

#include "tts/base/utf8.h"

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

Status RunningRequest::append_text(std::string_view text) {
  const auto refused = [](ErrorCode code, std::string message) { return Error{code, std::move(message), "text", {}}; };
  const std::lock_guard lock(mutex_);
  if (!wake_ || cut_reason_ || log_.ended()) return Ok{};
  if (text_ended_) return refused(ErrorCode::kInvalidArgument, "the text has ended");
  if (find_invalid_utf8(text)) return refused(ErrorCode::kInvalidArgument, "the text is not valid UTF-8");
  if (text.find('\0') != std::string_view::npos) return refused(ErrorCode::kInvalidArgument, "the text contains a NUL character");
  const std::uint64_t added = count_code_points(text);
  const std::uint64_t waiting = characters_ - submitted_;
  if (waiting + added > max_waiting_chars_) {
    return refused(ErrorCode::kTooLarge, std::to_string(waiting) + " characters wait to be spoken; with these " + std::to_string(added) +
                                             " it would be more than the limit of " + std::to_string(max_waiting_chars_));
  }
  characters_ += added;
  if (added > 0) put(input::Text{std::string(text)});
  return Ok{};
}

void RunningRequest::end_text() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(text_ended_, true)) return;
  put(input::End{});
}

void RunningRequest::tell(Input input) {
  const std::lock_guard lock(mutex_);
  put(std::move(input));
}

void RunningRequest::put(Input input) {
  if (!wake_ || cut_reason_) return;
  input_.push_back(std::move(input));
  if (input_.size() == 1) wake_();
}

std::uint64_t RunningRequest::characters() const {
  const std::lock_guard lock(mutex_);
  return characters_;
}

void RunningRequest::attach(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void RunningRequest::detach() {
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
  input_ = {};
}

void RunningRequest::drained() {
  const std::lock_guard lock(mutex_);
  drained_ = true;
  if (wake_) wake_();
}

bool RunningRequest::take_drained() {
  const std::lock_guard lock(mutex_);
  return std::exchange(drained_, false);
}

std::vector<Input> RunningRequest::take_input() {
  const std::lock_guard lock(mutex_);
  return std::exchange(input_, {});
}

void RunningRequest::text_submitted(std::uint64_t characters) {
  const std::lock_guard lock(mutex_);
  submitted_ = characters;
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
