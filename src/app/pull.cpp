#include "pull.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace tts::app {
namespace {

class Signal {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool wait_for(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

}  // namespace

Status pull(synthesis::Synthesis& synthesis, const std::function<void(const resume::Packet&)>& on_packet,
            const std::function<void()>& on_tick, std::chrono::milliseconds tick) {
  auto& log = synthesis.log();
  for (std::uint32_t seq = 1;; ++seq) {
    const auto ready = std::make_shared<Signal>();
    log.notify_when(seq, [ready] { ready->set(); });
    while (!ready->wait_for(tick)) {
      if (on_tick) on_tick();
    }
    if (on_tick) on_tick();
    const auto packet = log.next(seq);
    if (!packet) break;
    on_packet(*packet);
    log.acknowledge(seq);
  }
  if (auto error = log.error()) return *std::move(error);
  return Ok{};
}

}  // namespace tts::app
