#include "tts/base/result.h"

#include <memory>
#include <set>

#include <gtest/gtest.h>

namespace tts {
namespace {

TEST(Result, HoldsAValue) {
  Result<int> result = 7;
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(*result, 7);
  *result = 8;
  EXPECT_EQ(result.value(), 8);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = Error{ErrorCode::kQueueFull, "busy", "", std::chrono::milliseconds(250)};
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kQueueFull);
  EXPECT_EQ(result.error().retry_after, std::chrono::milliseconds(250));
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 3);
  Result<std::unique_ptr<int>> failed = Error{ErrorCode::kInternal, "why", "", {}};
  EXPECT_EQ(std::move(failed).error().message, "why");
}

TEST(Status, CarriesSuccessWithoutAValue) {
  EXPECT_TRUE(Status(Ok{}));
  EXPECT_FALSE(Status(Error{}));
}

TEST(ErrorCode, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) names.insert(to_string(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kInternal) + 1);
}

}  // namespace
}  // namespace tts
