#include "tts/observability/request_id.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tts::observability {
namespace {

TEST(RequestId, KeepsSaneClientIds) {
  EXPECT_EQ(choose_request_id("abc-123_X.y"), "abc-123_X.y");
  EXPECT_EQ(choose_request_id(std::string(64, 'a')), std::string(64, 'a'));
}

TEST(RequestId, ReplacesTheRest) {
  for (const std::string& offered :
       {std::string(), std::string(65, 'a'), std::string("a b"), std::string("a\r\nx: y"), std::string("é"), std::string("a\0b", 3)}) {
    const auto chosen = choose_request_id(offered);
    EXPECT_NE(chosen, offered);
    EXPECT_TRUE(is_request_id(chosen)) << chosen;
  }
}

TEST(RequestId, NewOnesDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(new_request_id());
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace tts::observability
