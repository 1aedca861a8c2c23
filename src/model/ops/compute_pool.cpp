#include "ops/compute_pool.h"

#include <algorithm>
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

constexpr std::uint64_t range(std::uint64_t first, std::uint64_t end) noexcept { return first << 32 | end; }
constexpr std::uint64_t first_of(std::uint64_t range) noexcept { return range >> 32; }
constexpr std::uint64_t end_of(std::uint64_t range) noexcept { return range & 0xFFFFFFFFU; }

}  // namespace

ComputePool::ComputePool(std::uint32_t workers) : workers_(std::max(workers, 1U)), shares_(std::make_unique<Share[]>(workers_)) {
  threads_.reserve(workers_ - 1);
  try {
    for (std::uint32_t worker = 1; worker < workers_; ++worker) threads_.emplace_back([this, worker] { worker_loop(worker); });
  } catch (...) {
    stop();
    throw;
  }
}

ComputePool::~ComputePool() { stop(); }

void ComputePool::stop() noexcept {
  stop_.store(true);
  for (std::uint32_t worker = 1; worker < workers_; ++worker) {
    shares_[worker].loops.fetch_add(1);
    shares_[worker].loops.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ComputePool::run_shared(std::uint32_t blocks, void* context, Task task) {
  const std::uint64_t count = workers_;
  left_.store(blocks, std::memory_order_relaxed);
  // Its own share last: the others should not wait for it.
  for (std::uint64_t w = count; w-- > 0;) {
    Share& share = shares_[w];
    share.task = task;
    share.context = context;
    share.blocks.store(range(blocks * w / count, blocks * (w + 1) / count), std::memory_order_release);
    if (w != 0) {
      share.loops.fetch_add(1);
      share.loops.notify_one();
    }
  }
  work(0);
  for (std::uint32_t left = left_.load(std::memory_order_acquire); left != 0; left = left_.load(std::memory_order_acquire)) {
    spin_while_equal(left_, left);
    left_.wait(left, std::memory_order_acquire);
  }
}

// Takes blocks until the share is empty, its own worker from the front, others from the end. Returns how many.
std::uint32_t ComputePool::take_blocks(Share& share, std::uint32_t worker, bool own) {
  std::uint32_t taken = 0;
  std::uint64_t blocks = share.blocks.load(std::memory_order_acquire);
  while (first_of(blocks) < end_of(blocks)) {
    const std::uint64_t rest = own ? range(first_of(blocks) + 1, end_of(blocks)) : range(first_of(blocks), end_of(blocks) - 1);
    if (!share.blocks.compare_exchange_weak(blocks, rest, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    share.task(share.context, static_cast<std::uint32_t>(own ? first_of(blocks) : end_of(rest)), worker);
    ++taken;
    blocks = share.blocks.load(std::memory_order_acquire);
  }
  return taken;
}

void ComputePool::work(std::uint32_t worker) {
  std::uint32_t taken = take_blocks(shares_[worker], worker, true);
  for (std::uint32_t i = 1; i < workers_; ++i) taken += take_blocks(shares_[(worker + i) % workers_], worker, false);
  if (taken != 0 && left_.fetch_sub(taken) == taken) left_.notify_one();
}

void ComputePool::worker_loop(std::uint32_t worker) {
  Share& share = shares_[worker];
  while (!stop_.load()) {
    const std::uint32_t seen = share.loops.load(std::memory_order_acquire);
    work(worker);
    if (stop_.load()) return;
    spin_while_equal(share.loops, seen);
    share.loops.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace tts::model::ops
