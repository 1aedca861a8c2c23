#include "mailbox.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tts::scheduling {

namespace {

std::string in_words(Duration wait) {
  const auto tenths = std::chrono::ceil<std::chrono::milliseconds>(wait).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

Mailbox::Mailbox(std::uint32_t max_queue, std::chrono::milliseconds max_wait, const Clock& clock, observability::Metrics& metrics)
    : max_queue_(max_queue), max_wait_(max_wait), clock_(clock), metrics_(metrics) {}

Result<engine::UtteranceId> Mailbox::post(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink) {
  if (!sink) return Error{ErrorCode::kInvalidArgument, "an utterance needs a sink", "sink", {}};
  if (!(request.pace > 0)) return Error{ErrorCode::kInvalidArgument, "the pace must be above 0", "pace", {}};
  auto utterance = std::make_shared<Utterance>();
  utterance->request = std::move(request);
  utterance->sink = std::move(sink);
  utterance->submitted_at = clock_.now();

  const std::lock_guard lock(mutex_);
  if (auto refused = refusal(utterance->request)) return *std::move(refused);
  utterance->id = ++last_id_;
  arrivals_.push_back(utterance);
  live_.emplace(utterance->id, utterance);
  ++queued_;
  if (auto* const count = count_of(utterance->request)) ++*count;
  metrics_.add_queue_length(1);
  wake();
  return utterance->id;
}

// Whoever has been let in is not sent away for a long wait: only for a full queue, and then to try again.
std::optional<Error> Mailbox::refusal(const engine::UtteranceRequest& request) const {
  if (stopping()) return Error{ErrorCode::kUnavailable, "this engine is stopping; try another replica", {}, {}};
  const auto busy = [&](std::chrono::milliseconds advice, const std::string& why) {
    return Error{ErrorCode::kQueueFull, "the server is busy: " + why + "; try again in " + in_words(advice), {}, advice};
  };
  if (queued_ >= max_queue_) {
    return busy(advice_when_full(outlook_, newcomers_ + files_), std::to_string(queued_) + " utterances are waiting");
  }
  const Duration wait = wait_of(request.delivery);
  if (is_newcomer(request) && max_wait_.count() > 0 && wait > max_wait_) {
    return busy(advice_when_long(wait, max_wait_), "the wait would be about " + in_words(wait));
  }
  return std::nullopt;
}

// Streams do not wait for files, or hardly: see decide_admission.
Duration Mailbox::wait_of(engine::Delivery delivery) const {
  return tts::scheduling::expected_wait(outlook_, delivery == engine::Delivery::kWhole ? newcomers_ + files_ : newcomers_);
}

std::uint32_t* Mailbox::count_of(const engine::UtteranceRequest& request) noexcept {
  if (request.delivery == engine::Delivery::kWhole) return &files_;
  return is_newcomer(request) ? &newcomers_ : nullptr;
}

void Mailbox::cancel(engine::UtteranceId id) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  found->second->cancelled.store(true, std::memory_order_relaxed);
  wake();
}

void Mailbox::set_paused(engine::UtteranceId id, bool paused) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  found->second->paused.store(paused, std::memory_order_relaxed);
  wake();
}

void Mailbox::set_runs_dry_at(engine::UtteranceId id, TimePoint when) noexcept {
  const std::lock_guard lock(mutex_);
  if (const auto found = live_.find(id); found != live_.end()) found->second->report(when);
}

void Mailbox::begin_stop(TimePoint cut_at) {
  const std::lock_guard lock(mutex_);
  cut_at_.store(std::min(cut_at, this->cut_at()).time_since_epoch().count(), std::memory_order_release);
  wake();
}

std::uint32_t Mailbox::queued() const {
  const std::lock_guard lock(mutex_);
  return queued_;
}

Duration Mailbox::expected_wait() const {
  const std::lock_guard lock(mutex_);
  return wait_of(engine::Delivery::kStreamed);
}

void Mailbox::set_outlook(const Outlook& outlook) {
  const std::lock_guard lock(mutex_);
  outlook_ = outlook;
}

TimePoint Mailbox::cut_at() const noexcept { return TimePoint(Duration(cut_at_.load(std::memory_order_acquire))); }

void Mailbox::take(std::vector<UtterancePtr>& arrivals) {
  if (!dirty_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  dirty_.store(false, std::memory_order_relaxed);
  std::move(arrivals_.begin(), arrivals_.end(), std::back_inserter(arrivals));
  arrivals_.clear();
}

void Mailbox::leave_queue(const Utterance& utterance) {
  const std::lock_guard lock(mutex_);
  --queued_;
  if (auto* const count = count_of(utterance.request)) --*count;
  metrics_.add_queue_length(-1);
}

void Mailbox::forget(engine::UtteranceId id) {
  const std::lock_guard lock(mutex_);
  live_.erase(id);
}

void Mailbox::sleep_until(TimePoint wake_at) {
  // Waits are cut so that a far deadline cannot overflow the system call's time; the loop simply comes round again.
  constexpr Duration kLongest = std::chrono::hours(1);
  std::unique_lock lock(mutex_);
  const auto woken = [&] { return dirty_.load(std::memory_order_relaxed); };
  if (wake_at == TimePoint::max()) {
    changed_.wait(lock, woken);
  } else if (const TimePoint now = clock_.now(); wake_at > now) {
    changed_.wait_for(lock, std::min<Duration>(wake_at - now, kLongest), woken);
  }
}

void Mailbox::wake() {
  dirty_.store(true, std::memory_order_release);
  changed_.notify_one();
}

}  // namespace tts::scheduling
