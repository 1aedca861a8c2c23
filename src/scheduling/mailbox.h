#pragma once
// The way in: submissions, cancels and pauses from any thread to the engine's thread, bounded by the number of waiting utterances.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tts/base/clock.h"
#include "tts/base/result.h"
#include "tts/observability/metrics.h"

#include "utterance.h"

namespace tts::scheduling {

// Thread-safe; the calls below "engine's thread" come from that thread only. No call but sleep_until() blocks.
class Mailbox {
 public:
  Mailbox(std::uint32_t max_queue, const Clock& clock, observability::Metrics& metrics);

  Result<engine::UtteranceId> post(engine::UtteranceRequest request, std::shared_ptr<engine::UtteranceSink> sink);
  void cancel(engine::UtteranceId id) noexcept;
  void set_paused(engine::UtteranceId id, bool paused) noexcept;
  void set_runs_dry_at(engine::UtteranceId id, TimePoint when) noexcept;  // read at the next turn; wakes nobody
  void begin_stop(TimePoint cut_at);  // refuses new work from now on; an earlier cut_at replaces a later one

  std::uint32_t queued() const;
  bool stopping() const noexcept { return cut_at() != TimePoint::max(); }

  // Engine's thread.
  TimePoint cut_at() const noexcept;               // when stop() stops waiting; max() = not stopping
  void take(std::vector<UtterancePtr>& arrivals);  // appends what was posted; they still count as queued
  void leave_queue(std::uint32_t count);           // that many got a slot or their final call
  void forget(engine::UtteranceId id);             // before its final call: later cancels find nothing
  void advise_retry_after(std::chrono::milliseconds wait) noexcept;
  void sleep_until(TimePoint wake_at);  // returns early when anything was posted, cancelled, paused or stopped

 private:
  void wake();  // requires mutex_

  const std::uint32_t max_queue_;
  const Clock& clock_;
  observability::Metrics& metrics_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<UtterancePtr> arrivals_;  // guarded by mutex_, as the next three
  std::unordered_map<engine::UtteranceId, UtterancePtr> live_;
  std::uint32_t queued_ = 0;
  engine::UtteranceId last_id_ = 0;
  std::atomic<bool> dirty_{false};  // set under mutex_; lets an idle take() skip the lock
  std::atomic<TimePoint::rep> cut_at_{TimePoint::max().time_since_epoch().count()};
  std::atomic<std::int64_t> retry_after_ms_{1000};
};

}  // namespace tts::scheduling
