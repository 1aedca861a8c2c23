#pragma once
// The request's hold on one submitted utterance: cancel and pause it, tell of its listener, from any thread, even before its id is
// known.

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

#include "tts/base/clock.h"
#include "tts/engine/utterance_engine.h"

namespace tts::synthesis {

enum class PauseReason : std::uint8_t {
  kSlowClient = 1,  // the stream log is over its high-water mark
  kAhead = 2,       // its turn has not come and enough of it is held
  kBacklog = 4,     // the workers are behind
};

// Thread-safe. The engine hears of a pause when the first reason appears and of its end when the last one goes. Nothing is sent for
// an utterance after its final call.
class UtteranceControl {
 public:
  // `max_backlog` = samples that may wait for a worker before the utterance pauses; `per_sample` = how long one is heard.
  UtteranceControl(engine::UtteranceEngine& engine, std::uint64_t max_backlog, std::chrono::duration<double> per_sample)
      : engine_(engine), max_backlog_(max_backlog), per_sample_(per_sample) {}

  void attach(engine::UtteranceId id);  // the submission succeeded; what was asked meanwhile is passed on
  // The final call came. `last_post` hands it over under the lock: once the receiver has called await_end(), the engine's thread has
  // left everything that belongs to the request.
  void end(const std::function<void()>& last_post);
  void await_end();
  void cancel();
  void pause(PauseReason reason);
  void resume(PauseReason reason);

  // When the listener has heard what the workers have handled; what waits for them is added here.
  void tell_runs_dry_at(TimePoint handled);

  void add_backlog(std::uint64_t samples);   // arrived from the engine
  void take_backlog(std::uint64_t samples);  // handled by a worker

 private:
  static constexpr engine::UtteranceId kEnded = ~engine::UtteranceId{0};

  bool reachable() const noexcept { return id_ != 0 && id_ != kEnded; }  // requires mutex_, as the next
  void change(std::uint8_t reasons);

  engine::UtteranceEngine& engine_;
  const std::uint64_t max_backlog_;
  const std::chrono::duration<double> per_sample_;
  std::mutex mutex_;  // held over calls to the engine, so that they arrive in the order they were made
  engine::UtteranceId id_ = 0;
  std::uint8_t reasons_ = 0;
  bool cancelled_ = false;
  std::uint64_t backlog_ = 0;
  TimePoint runs_dry_at_{};  // as last told; zero = not yet
};

}  // namespace tts::synthesis
