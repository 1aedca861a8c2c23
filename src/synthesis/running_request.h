#pragma once
// What a request's two ends share: the consumer's handle and the job that makes its audio. Either may go first.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tts/base/result.h"
#include "tts/observability/metrics.h"
#include "tts/resume/stream_log.h"
#include "tts/synthesis/synthesis.h"

#include "utterance_control.h"

namespace tts::synthesis {

// Thread-safe.
class RunningRequest {
 public:
  RunningRequest(std::uint64_t seed, const resume::StreamLogOptions& log, observability::Metrics& metrics)
      : seed_(seed), metrics_(metrics), log_(log) {}

  resume::StreamLog& log() noexcept { return log_; }
  std::uint64_t seed() const noexcept { return seed_; }
  SynthesisReport report() const;

  // Stops the work: running utterances are cancelled at once, from this thread; the job then ends with `reason`. The first reason
  // stays. Without effect once the job has ended.
  void cut(Error reason);
  void discard();  // the consumer has gone: cut, and nothing is held any longer

  // The job's end. `wake` owns the job; it is called under a lock, so it may only post, and never again after detach().
  void attach(std::function<void()> wake);
  void detach();
  void wake();  // the job should look at cut_reason() and at the log
  std::optional<Error> cut_reason() const;
  bool add(std::shared_ptr<UtteranceControl> control);  // before its submission; false = cut already, do not submit
  void remove(const std::shared_ptr<UtteranceControl>& control);
  void cancel_all();
  void pause_all(PauseReason reason);
  void resume_all(PauseReason reason);
  void update(const std::function<void(SynthesisReport&)>& change);
  void account_log();  // brings the gauge of buffered bytes up to date

 private:
  const std::uint64_t seed_;
  observability::Metrics& metrics_;
  resume::StreamLog log_;
  mutable std::mutex mutex_;
  std::function<void()> wake_;                               // guarded by mutex_, as all below; empty = no job
  std::vector<std::shared_ptr<UtteranceControl>> controls_;  // utterances submitted and not ended
  std::optional<Error> cut_reason_;
  SynthesisReport report_;
  std::size_t accounted_bytes_ = 0;
};

}  // namespace tts::synthesis
