#include "ops/compute_pool.h"

#include <atomic>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tts::model::ops
