#pragma once
// An UtteranceSink that keeps everything, for tests.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "tts/engine/utterance_engine.h"

namespace tts::test {

// Thread-safe.
class RecordingSink final : public engine::UtteranceSink {
 public:
  std::function<void(std::size_t samples)> pcm_hook;  // runs on the engine's thread, outside locks; set before submission

  void on_pcm(std::span<const float> samples, bool last) override {
    {
      const std::lock_guard lock(mutex_);
      if (finals_ > 0 || last_seen_) ++calls_after_final_;
      last_seen_ = last;
      pcm_.insert(pcm_.end(), samples.begin(), samples.end());
      pieces_.push_back(samples.size());
    }
    if (pcm_hook) pcm_hook(samples.size());
  }

  void on_done(const engine::UtteranceSummary& summary) override {
    const std::lock_guard lock(mutex_);
    summary_ = summary;
    ++finals_;
    changed_.notify_all();
  }

  void on_error(const Error& error) override {
    const std::lock_guard lock(mutex_);
    error_ = error;
    ++finals_;
    changed_.notify_all();
  }

  void wait() {  // blocks until the final call
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finals_ > 0; });
  }

  std::vector<float> pcm() const { return locked(pcm_); }
  std::vector<std::size_t> pieces() const { return locked(pieces_); }
  std::optional<engine::UtteranceSummary> summary() const { return locked(summary_); }
  std::optional<Error> error() const { return locked(error_); }
  int finals() const { return locked(finals_); }
  bool last_seen() const { return locked(last_seen_); }  // a piece said that it was the last
  int calls_after_final() const { return locked(calls_after_final_); }  // likewise of pieces after the last

 private:
  template <class T>
  T locked(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<float> pcm_;
  std::vector<std::size_t> pieces_;
  std::optional<engine::UtteranceSummary> summary_;
  std::optional<Error> error_;
  int finals_ = 0;
  int calls_after_final_ = 0;
  bool last_seen_ = false;
};

}  // namespace tts::test
