#pragma once
// What a request's two ends share: the consumer's handle and the job that makes its audio. Either may go first.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tts/base/clock.h"
#include "tts/base/result.h"
#include "tts/engine/voice.h"
#include "tts/observability/metrics.h"
#include "tts/resume/stream_log.h"
#include "tts/synthesis/synthesis.h"

#include "utterance_control.h"

namespace tts::synthesis {

// What the consumer tells the job, in the order it was said.
namespace input {
struct Text {
  std::string text;
};
struct Flush {};
struct End {};
struct Change {
  SpeechChange change;
  const engine::Voice* voice = nullptr;  // of change.voice
};
struct RunsDryAt {
  TimePoint when;
};
struct Bitrate {
  std::uint32_t bits_per_second = 0;
};
}  // namespace input
using Input = std::variant<input::Text, input::Flush, input::End, input::Change, input::RunsDryAt, input::Bitrate>;

// Thread-safe.
class RunningRequest {
 public:
  // max_waiting_chars: code points of text that may wait to be spoken.
  RunningRequest(std::uint64_t seed, std::uint32_t max_waiting_chars, const resume::StreamLogOptions& log, observability::Metrics& metrics)
      : seed_(seed), max_waiting_chars_(max_waiting_chars), metrics_(metrics), log_(log) {}

  resume::StreamLog& log() noexcept { return log_; }
  std::uint64_t seed() const noexcept { return seed_; }
  SynthesisReport report() const;

  // Stops the work: running utterances are cancelled at once, from this thread; the job then ends with `reason`. The first reason
  // stays. Without effect once the job has ended.
  void cut(Error reason);
  void discard();  // the consumer has gone: cut, and nothing is held any longer

  // The consumer's input; ignored once the log has ended.
  Status append_text(std::string_view text);
  void end_text();
  void tell(Input input);
  std::uint64_t characters() const;  // of all text appended

  // The job's end. `wake` owns the job; it is called under a lock, so it may only post, and never again after detach().
  void attach(std::function<void()> wake);
  void detach();
  void drained();       // the log went below its low-water mark: wakes the job
  bool take_drained();  // whether it has since the last call
  std::vector<Input> take_input();  // what came since the last call; the job is woken when some comes
  void text_submitted(std::uint64_t characters);  // so much of all the text waits no longer
  std::optional<Error> cut_reason() const;
  bool add(std::shared_ptr<UtteranceControl> control);  // before its submission; false = cut already, do not submit
  void remove(const std::shared_ptr<UtteranceControl>& control);
  void cancel_all();
  void pause_all(PauseReason reason);
  void resume_all(PauseReason reason);
  void update(const std::function<void(SynthesisReport&)>& change);
  void account_log();  // brings the gauge of buffered bytes up to date

 private:
  void put(Input input);  // requires mutex_

  const std::uint64_t seed_;
  const std::uint32_t max_waiting_chars_;
  observability::Metrics& metrics_;
  resume::StreamLog log_;
  mutable std::mutex mutex_;
  std::function<void()> wake_;                               // guarded by mutex_, as all below; empty = no job
  std::vector<std::shared_ptr<UtteranceControl>> controls_;  // utterances submitted and not ended
  std::optional<Error> cut_reason_;
  SynthesisReport report_;
  std::size_t accounted_bytes_ = 0;
  std::vector<Input> input_;
  bool text_ended_ = false;
  bool drained_ = false;
  std::uint64_t characters_ = 0;  // appended
  std::uint64_t submitted_ = 0;   // of them, those that wait no longer
};

}  // namespace tts::synthesis
