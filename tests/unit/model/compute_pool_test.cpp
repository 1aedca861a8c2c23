#include "ops/compute_pool.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tts::model::ops {
namespace {

TEST(ComputePool, ZeroAndOneWorkerRunOnTheCaller) {
  for (const std::uint32_t workers : {0U, 1U}) {
    ComputePool pool(workers);
    EXPECT_EQ(pool.workers(), 1U);
    std::vector<std::size_t> order;
    pool.run(5, [&](std::size_t block, std::uint32_t worker) {
      EXPECT_EQ(worker, 0U);
      order.push_back(block);
    });
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  }
}

TEST(ComputePool, NoBlocksCallNothing) {
  ComputePool pool(3);
  pool.run(0, [](std::size_t, std::uint32_t) { FAIL(); });
}

TEST(ComputePool, EachBlockRunsOnceWhateverTheNumberOfWorkers) {
  for (std::uint32_t workers = 1; workers <= 5; ++workers) {
    ComputePool pool(workers);
    for (std::size_t blocks = 0; blocks < 60; ++blocks) {
      const auto counts = std::make_unique<std::atomic<int>[]>(blocks);
      std::atomic<bool> worker_in_range = true;
      pool.run(blocks, [&](std::size_t block, std::uint32_t worker) {
        counts[block].fetch_add(1);
        if (worker >= workers) worker_in_range = false;
      });
      EXPECT_TRUE(worker_in_range);
      for (std::size_t block = 0; block < blocks; ++block) EXPECT_EQ(counts[block].load(), 1) << "block " << block << " of " << blocks;
    }
  }
}

// The result of one run is visible to the next without any synchronisation by the caller.
TEST(ComputePool, RunsFollowEachOther) {
  ComputePool pool(3);
  std::vector<std::uint64_t> values(64, 1);
  for (int round = 0; round < 2000; ++round) {
    pool.run(values.size(), [&](std::size_t block, std::uint32_t) { values[block] += values[block] % 7 + 1; });
  }
  for (const std::uint64_t value : values) EXPECT_EQ(value, values[0]);
}

TEST(ComputePool, TwoWorkersCanBeInsideAtOnce) {
  ComputePool pool(2);
  std::atomic<int> inside = 0;
  pool.run(2, [&](std::size_t, std::uint32_t) {
    inside.fetch_add(1);
    while (inside.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(inside.load(), 2);
}

TEST(ComputePool, StopsWhileIdle) {
  for (int round = 0; round < 50; ++round) ComputePool pool(3);
}

// In a process of its own, with address space for a few stacks more, so that some workers start and the next does not.
TEST(ComputePool, AThreadThatCannotStartIsAnErrorNotTheEnd) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes all address space";
#endif
  const auto start_too_many = [] {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (std::size_t{20} << 20);
    if (pages == 0 || ::setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
    try {
      ComputePool pool(64);
    } catch (const std::system_error&) {
      std::_Exit(0);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(start_too_many(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tts::model::ops
