#pragma once
// Syntheses that the test itself speaks: it appends packets, ends or fails them, and sees when the server lets go of them.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tts/base/result.h"
#include "tts/synthesis/synthesis.h"

namespace tts::net {

// Waits end by events; the limit only turns a hang into a failure.
inline constexpr std::chrono::seconds kHang{20};

// The test's end of one synthesis; outlives the server's end.
class Voice {
 public:
  explicit Voice(synthesis::SynthesisRequest asked) : request(std::move(asked)) {}

  bool say(std::string_view bytes) { return log.append(0, {bytes.begin(), bytes.end()}); }

  void let_go() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  bool wait_until_released() {  // the server destroyed its Synthesis
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kHang, [this] { return released_; });
  }
  bool released() {
    const std::lock_guard lock(mutex_);
    return released_;
  }

  const synthesis::SynthesisRequest request;
  resume::StreamLog log;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
};

class FakeSynthesis final : public synthesis::Synthesis {
 public:
  explicit FakeSynthesis(std::shared_ptr<Voice> voice) : voice_(std::move(voice)) {}
  ~FakeSynthesis() override {
    voice_->log.close();
    voice_->let_go();
  }
  resume::StreamLog& log() noexcept override { return voice_->log; }
  std::uint64_t seed() const noexcept override { return voice_->request.seed.value_or(4711); }
  synthesis::SynthesisReport report() const override {
    return {.samples = 100, .sentences = 1, .steps = 40, .first_packet = {}, .total = {}, .dropped = {}};
  }

 private:
  std::shared_ptr<Voice> voice_;
};

class FakeSpeech {
 public:
  Result<std::unique_ptr<synthesis::Synthesis>> start(synthesis::SynthesisRequest request) {
    const std::lock_guard lock(mutex_);
    if (defect_) throw std::runtime_error(*defect_);
    if (refusal_) return *refusal_;
    started_.push_back(std::make_shared<Voice>(std::move(request)));
    changed_.notify_all();
    return std::unique_ptr<synthesis::Synthesis>(std::make_unique<FakeSynthesis>(started_.back()));
  }

  void refuse(Error error) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(error);
  }

  void break_with(std::string what) {  // start() throws
    const std::lock_guard lock(mutex_);
    defect_ = std::move(what);
  }

  // The next synthesis that the server starts; null when none comes.
  std::shared_ptr<Voice> wait_for_voice() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kHang, [this] { return taken_ < started_.size(); })) return nullptr;
    return started_[taken_++];
  }
  std::size_t started() {
    const std::lock_guard lock(mutex_);
    return started_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Voice>> started_;
  std::size_t taken_ = 0;
  std::optional<Error> refusal_;
  std::optional<std::string> defect_;
};

}  // namespace tts::net
