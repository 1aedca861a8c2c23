#pragma once
// A point where a thread waits until the test lets it through.

#include <condition_variable>
#include <mutex>

namespace tts::test {

// Thread-safe. Closed at first; once open it stays open.
class Gate {
 public:
  void pass() {  // blocks while closed
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
  }

  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

  void wait_until_reached() {  // blocks until a thread stands at the gate, or it is open
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ || waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
};

}  // namespace tts::test
