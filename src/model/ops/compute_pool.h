#pragma once
// The engine's own threads for one model: short parallel loops, thousands of times a second.
//
// Thread: run() is called from one thread at a time (the engine thread), which takes part as worker 0; never from inside a block.
// Blocking: run() returns when every block is done. Idle workers spin for a few tens of microseconds and then sleep in the
// kernel. A worker that the operating system keeps off its core holds nobody up: the others take the blocks it would have taken.
// Nothing allocates after construction.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace tts::model::ops {

class ComputePool {
 public:
  // `workers` counts the calling thread; 0 acts as 1 (no thread is started).
  explicit ComputePool(std::uint32_t workers);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  std::uint32_t workers() const noexcept { return static_cast<std::uint32_t>(threads_.size()) + 1; }

  // Calls fn(block, worker) once for each block in [0, blocks), in no promised order, worker < workers(). fn must not throw.
  // Blocks are handed out one by one, so make them a few microseconds long at least.
  template <class Fn>
  void run(std::size_t blocks, Fn&& fn) {
    if (blocks <= 1 || threads_.empty()) {
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

  void run_shared(std::uint32_t blocks, void* context, Task task);
  void take_blocks(std::uint32_t worker);
  void worker_loop(std::uint32_t worker);

  // High half: number of the run, low half: blocks nobody has taken yet. Taking a block is one compare-and-swap here; while a
  // block is taken and not reported in done_, run_shared() cannot return, so the task fields stay valid.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
  alignas(64) std::atomic<std::uint32_t> wake_{0};
  std::atomic<bool> stop_{false};
  alignas(64) Task task_ = nullptr;
  void* context_ = nullptr;
  std::uint32_t blocks_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace tts::model::ops
