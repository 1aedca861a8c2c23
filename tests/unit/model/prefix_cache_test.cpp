#include "prefix_cache.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tts::model {
namespace {

std::shared_ptr<PrefixCache::Entry> fill(PrefixCache& cache, const std::string& key, std::size_t bytes) {
  auto entry = cache.reserve(key, bytes);
  if (entry) entry->filled = true;
  return entry;
}

TEST(PrefixKey, DiffersWithEverythingThatKeysAndValuesDependOn) {
  const std::vector<std::int32_t> tokens{1, 2, 3}, shorter{1, 2}, other{1, 2, 4};
  const std::vector<float> speaker{1.0F, 2.0F}, other_speaker{1.0F, 2.5F};
  const std::set<std::string> keys{prefix_key(tokens, 2, speaker), prefix_key(shorter, 2, speaker),      prefix_key(other, 2, speaker),
                                   prefix_key(tokens, 3, speaker), prefix_key(tokens, 2, other_speaker), prefix_key(tokens, 2, {})};
  EXPECT_EQ(keys.size(), 6U);
  EXPECT_EQ(prefix_key(tokens, 2, speaker), prefix_key(tokens, 2, speaker));
  EXPECT_EQ(prefix_key(tokens, 2, {}), prefix_key(tokens, -1, {})) << "without a speaker its token means nothing";
}

TEST(PrefixCache, FindsOnlyWhatWasFilled) {
  PrefixCache cache(1000);
  EXPECT_EQ(cache.find("a"), nullptr);
  const auto entry = cache.reserve("a", 100);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->bytes.size(), 100U);
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_EQ(cache.reserve("a", 100), nullptr) << "somebody is at it";
  entry->filled = true;
  EXPECT_EQ(cache.find("a"), entry);
  EXPECT_EQ(cache.reserve("a", 100), nullptr) << "it is there already";
  EXPECT_EQ(cache.hits(), 1U);
  EXPECT_EQ(cache.misses(), 2U);
  EXPECT_EQ(cache.bytes(), 101U);
}

TEST(PrefixCache, AnAbandonedEntryGoesToTheNextWhoAsks) {
  PrefixCache cache(1000);
  cache.reserve("a", 100).reset();
  EXPECT_NE(cache.reserve("a", 100), nullptr);
  EXPECT_EQ(cache.bytes(), 101U);
}

TEST(PrefixCache, TheLeastRecentlyUsedLeaves) {
  PrefixCache cache(330);
  for (const char* key : {"a", "b", "c"}) fill(cache, key, 100);
  EXPECT_NE(cache.find("a"), nullptr);
  fill(cache, "d", 100);
  EXPECT_NE(cache.find("a"), nullptr);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_NE(cache.find("c"), nullptr);
  EXPECT_EQ(cache.bytes(), 303U);
}

TEST(PrefixCache, AnEntryThatLeftWhileBeingFilledHarmsNobody) {
  PrefixCache cache(150);
  const auto entry = cache.reserve("a", 100);
  fill(cache, "b", 100);
  entry->bytes[99] = std::byte{1};
  entry->filled = true;
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_NE(cache.find("b"), nullptr);
}

TEST(PrefixCache, WhatIsTooLargeIsNotKept) {
  PrefixCache cache(100), off(0);
  EXPECT_EQ(cache.reserve("a", 100), nullptr) << "the key counts too";
  EXPECT_EQ(off.reserve("a", 1), nullptr);
}

}  // namespace
}  // namespace tts::model
