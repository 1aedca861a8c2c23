#pragma once
// The engine's own threads for one model: short parallel loops, thousands of times a second.
//
// Thread: run() is called from one thread at a time (the engine thread), which takes part as worker 0; never from inside a block.
// Blocking: run() returns when every block is done. Idle workers spin for a short while and then sleep in the kernel. A worker that
// the operating system keeps off its core holds nobody up: the others take its blocks. Nothing allocates after construction.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace tts::model::ops {

class ComputePool {
 public:
  // `workers` counts the calling thread; 0 acts as 1 (no thread is started). Throws std::system_error when the system has no thread left.
  explicit ComputePool(std::uint32_t workers);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  std::uint32_t workers() const noexcept { return workers_; }

  // Calls fn(block, worker) once for each block in [0, blocks), worker < workers(). fn must not throw. Each worker begins with a run of
  // neighbouring blocks, the same ones in every loop of as many blocks, so that they find their data in order in memory and in their
  // own cache; who is done helps the others. Make blocks a microsecond long at least.
  template <class Fn>
  void run(std::size_t blocks, Fn&& fn) {
    if (blocks <= 1 || workers_ == 1) {
      for (std::size_t block = 0; block < blocks; ++block) fn(block, std::uint32_t{0});
      return;
    }
    using Plain = std::remove_reference_t<Fn>;
    run_shared(
        static_cast<std::uint32_t>(blocks), const_cast<void*>(static_cast<const void*>(&fn)),
        [](void* context, std::uint32_t block, std::uint32_t worker) { (*static_cast<Plain*>(context))(std::size_t{block}, worker); });
  }

 private:
  using Task = void (*)(void* context, std::uint32_t block, std::uint32_t worker);

  // What one worker begins with, alone in its cache line: a new loop reaches an idle worker in one transfer.
  struct alignas(64) Share {
    // Blocks that nobody has taken yet: the first in the high half, the end in the low half. Taking one is a compare-and-swap here;
    // while a block is taken and not reported in done_, run_shared() cannot return, so the task stays valid.
    std::atomic<std::uint64_t> blocks{0};
    Task task = nullptr;
    void* context = nullptr;
    std::atomic<std::uint32_t> loops{0};  // counts up with each loop; its worker waits here
  };

  void run_shared(std::uint32_t blocks, void* context, Task task);
  static std::uint32_t take_blocks(Share& share, std::uint32_t worker, bool own);
  void work(std::uint32_t worker);
  void worker_loop(std::uint32_t worker);
  void stop() noexcept;

  std::uint32_t workers_;
  std::unique_ptr<Share[]> shares_;                 // [worker]
  alignas(64) std::atomic<std::uint32_t> left_{0};  // blocks of this loop that are not done
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace tts::model::ops
