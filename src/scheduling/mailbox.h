#pragma once
// The way in: submissions, cancels, pauses and reports from any thread to the engine's thread, bounded by the number of waiting
// utterances and by the wait that a newcomer would have.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tts/base/clock.h"
#include "tts/base/result.h"
#include "tts/observability/metrics.h"

#include "utterance.h"
#include "wait_estimate.h"

namespace tts::scheduling {

// Thread-safe; the calls below "engine's thread" come from that thread only. No call but sleep_until() blocks.
class Mailbox {
 public:
  // max_wait: 0 = any.
  Mailbox(std::uint32_t max_queue, std::chrono::milliseconds max_wait, const Clock& clock, observability::Metrics& metrics);

  Result<engine::UtteranceId> post(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink);
  void cancel(engine::UtteranceId id) noexcept;
  void set_paused(engine::UtteranceId id, bool paused) noexcept;
  void set_runs_dry_at(engine::UtteranceId id, TimePoint when) noexcept;  // read at the next turn; wakes nobody
  void begin_stop(TimePoint cut_at);  // refuses new work from now on; an earlier cut_at replaces a later one

  std::uint32_t queued() const;
  Duration expected_wait() const;  // of a stream's first utterance posted now
  bool stopping() const noexcept { return cut_at() != TimePoint::max(); }

  // Engine's thread.
  TimePoint cut_at() const noexcept;               // when stop() stops waiting; max() = not stopping
  void take(std::vector<UtterancePtr>& arrivals);  // appends what was posted; they still count as queued
  void leave_queue(const Utterance& utterance);    // got a slot or its final call
  void forget(engine::UtteranceId id);             // before its final call: later cancels find nothing
  void set_outlook(const Outlook& outlook);
  void sleep_until(TimePoint wake_at);  // returns early when anything was posted, cancelled, paused or stopped

 private:
  std::optional<Error> refusal(const engine::UtteranceRequest& request) const;  // requires mutex_, as the next three
  Duration wait_of(engine::Delivery delivery) const;                            // of a newcomer
  std::uint32_t* count_of(const engine::UtteranceRequest& request) noexcept;    // null: its listener has been let in
  void wake();

  const std::uint32_t max_queue_;
  const std::chrono::milliseconds max_wait_;
  const Clock& clock_;
  observability::Metrics& metrics_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<UtterancePtr> arrivals_;  // guarded by mutex_, as the next six
  std::unordered_map<engine::UtteranceId, UtterancePtr> live_;
  std::uint32_t queued_ = 0;
  std::uint32_t newcomers_ = 0, files_ = 0;  // of those queued: first utterances of streams, and whole ones
  Outlook outlook_;
  engine::UtteranceId last_id_ = 0;
  std::atomic<bool> dirty_{false};  // set under mutex_; lets an idle take() skip the lock
  std::atomic<TimePoint::rep> cut_at_{TimePoint::max().time_since_epoch().count()};
};

}  // namespace tts::scheduling
