#include "resume_token.h"

#include <set>

#include <gtest/gtest.h>

namespace tts::stream {
namespace {

TEST(ResumeToken, Has128BitsThatDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto id = random_id();
    EXPECT_EQ(id.size(), 32U);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    seen.insert(id);
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(ResumeToken, OnlyTheTokenMatches) {
  const auto token = random_id();
  const TokenHash hash(token);
  EXPECT_TRUE(hash.matches(token));
  EXPECT_FALSE(hash.matches(""));
  EXPECT_FALSE(hash.matches(token.substr(1)));
  EXPECT_FALSE(hash.matches(token + "0"));
  auto other = token;
  other.back() = other.back() == '0' ? '1' : '0';
  EXPECT_FALSE(hash.matches(other));
}

}  // namespace
}  // namespace tts::stream
