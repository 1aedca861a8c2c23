#include "ops/weight_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tts::model::ops {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20;

// Pages that lie wholly inside [data, data + bytes) and hold memory.
std::size_t resident_pages(const std::byte* data, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)), address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
  std::vector<unsigned char> present((end - begin) / page);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), end - begin, present.data()), 0);
  return static_cast<std::size_t>(std::count_if(present.begin(), present.end(), [](unsigned char p) { return (p & 1U) != 0; }));
}

void fill(WeightMemory& memory, int value) { std::memset(memory.data(), value, memory.size()); }

bool holds(const WeightMemory& memory, int value) {
  return std::all_of(memory.data(), memory.data() + memory.size(), [&](std::byte b) { return b == static_cast<std::byte>(value); });
}

TEST(WeightMemory, IsZeroedAndLiesInOneSweep) {
  const WeightMemory first(100), second(kBytes), third(64);
  EXPECT_EQ(first.size(), 100U);
  EXPECT_TRUE(holds(first, 0) && holds(second, 0));
  EXPECT_EQ(second.data(), first.data() + 128) << "the next cache line";
  EXPECT_EQ(third.data(), second.data() + kBytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data()) % 64, 0U);
}

TEST(WeightMemory, NothingIsNothing) {
  const WeightMemory none(0), other;
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(other.size(), 0U);
}

// What was made only to be looked at must not stay in memory until its neighbours go.
TEST(WeightMemory, FreedMemoryLeavesItsNeighboursAndGoesBackAtOnce) {
  WeightMemory before(kBytes), after;
  const std::byte* freed = nullptr;
  {
    WeightMemory middle(kBytes);
    after = WeightMemory(kBytes);
    fill(before, 1);
    fill(middle, 2);
    fill(after, 3);
    freed = middle.data();
    ASSERT_GT(resident_pages(freed, kBytes), 0U);
  }
  EXPECT_EQ(resident_pages(freed, kBytes), 0U);
  EXPECT_TRUE(holds(before, 1));
  EXPECT_TRUE(holds(after, 3));
}

TEST(WeightMemory, MovesWithItsOwner) {
  WeightMemory memory(100);
  fill(memory, 7);
  const std::byte* const place = memory.data();
  const WeightMemory moved = std::move(memory);
  EXPECT_EQ(moved.data(), place);
  EXPECT_TRUE(holds(moved, 7));
}

TEST(WeightMemory, LargerThanASlabIsFine) {
  const WeightMemory memory(std::size_t{80} << 20);
  EXPECT_EQ(memory.data()[memory.size() - 1], std::byte{0});
}

TEST(WeightMemory, AnImpossibleSizeIsRefused) { EXPECT_THROW(WeightMemory(~std::size_t{0}), std::bad_alloc); }

}  // namespace
}  // namespace tts::model::ops
