#include "ops/compute_pool.h"

#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tts::model::ops {
namespace {

// Longer than the gap between two loops of one step, shorter than anything a scheduler would call busy.
constexpr std::chrono::microseconds kSpin{40};

void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `value` differs from `old` or the spin time is over.
void spin_while_equal(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
}

}  // namespace

ComputePool::ComputePool(std::uint32_t workers) {
  const std::uint32_t own = workers > 1 ? workers - 1 : 0;
  threads_.reserve(own);
  for (std::uint32_t i = 0; i < own; ++i) threads_.emplace_back([this, i] { worker_loop(i + 1); });
}

ComputePool::~ComputePool() {
  stop_.store(true);
  wake_.fetch_add(1);
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ComputePool::run_shared(std::uint32_t blocks, void* context, Task task) {
  task_ = task;
  context_ = context;
  blocks_ = blocks;
  done_.store(0, std::memory_order_relaxed);
  const std::uint64_t run = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store((run << 32) | blocks, std::memory_order_release);
  wake_.fetch_add(1);
  wake_.notify_all();
  take_blocks(0);
  for (std::uint32_t done = done_.load(std::memory_order_acquire); done != blocks; done = done_.load(std::memory_order_acquire)) {
    spin_while_equal(done_, done);
    done_.wait(done, std::memory_order_acquire);
  }
}

void ComputePool::take_blocks(std::uint32_t worker) {
  std::uint32_t finished = 0, blocks = 0;
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(ticket) != 0) {
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    blocks = blocks_;
    task_(context_, blocks - static_cast<std::uint32_t>(ticket), worker);
    ++finished;
    ticket = ticket_.load(std::memory_order_acquire);
  }
  if (finished != 0 && done_.fetch_add(finished) + finished == blocks) done_.notify_one();
}

void ComputePool::worker_loop(std::uint32_t worker) {
  while (!stop_.load()) {
    const std::uint32_t seen = wake_.load(std::memory_order_acquire);
    take_blocks(worker);
    if (stop_.load()) return;
    spin_while_equal(wake_, seen);
    wake_.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace tts::model::ops
