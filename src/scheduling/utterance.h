#pragma once
// One accepted utterance from submission to its final call.

#include <atomic>
#include <memory>
#include <optional>

#include "tts/engine/utterance_engine.h"

namespace tts::scheduling {

// Its listener has heard nothing yet; whoever has goes on being served.
inline bool is_newcomer(const engine::UtteranceRequest& request) noexcept { return request.runs_dry_at == TimePoint{}; }

// The flags may be set from any thread; everything else belongs to the engine's thread once the mailbox handed it over.
struct Utterance {
  engine::UtteranceId id = 0;
  engine::UtteranceRequest request;
  std::shared_ptr<engine::UtteranceSink> sink;  // null after the final call
  TimePoint submitted_at{};
  std::atomic<bool> cancelled{false};
  std::atomic<bool> paused{false};

  bool is_newcomer() const noexcept { return scheduling::is_newcomer(request); }

  // When the listener runs dry, as its sender says. Any thread reports, the engine's thread takes each report once.
  void report(TimePoint runs_dry_at) noexcept { reported_.store(runs_dry_at.time_since_epoch().count(), std::memory_order_relaxed); }
  std::optional<TimePoint> take_report() noexcept {
    if (reported_.load(std::memory_order_relaxed) == 0) return std::nullopt;
    return TimePoint(Duration(reported_.exchange(0, std::memory_order_relaxed)));
  }

 private:
  std::atomic<TimePoint::rep> reported_{0};  // 0 = nothing new
};

using UtterancePtr = std::shared_ptr<Utterance>;

}  // namespace tts::scheduling
