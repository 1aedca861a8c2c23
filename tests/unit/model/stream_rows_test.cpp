#include "stream_rows.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "ops/linear.h"

namespace tts::model {
namespace {

// One channel; y[t] = 1 x[t-1] + 10 x[t] + 100 x[t+1] + 1000, so every tap, the padding and the bias can be read off.
class StreamRowsTest : public ::testing::Test {
 protected:
  StreamRowsTest() : rows_(64, 4, 4, 4) {
    const float taps[] = {1, 10, 100}, bias = 1000;
    conv_ = ops::make_linear(ops::WeightFormat::kFloat32, taps, 1, 3, &bias);
    for (int i = 0; i < 2; ++i) {
      states_.emplace_back(specs_);
      states_.back().reset();
    }
  }

  std::vector<float> push(std::size_t stream, std::vector<float> in, bool last) {
    rows_.clear(1);
    std::copy(in.begin(), in.end(), rows_.append({stream, in.size(), last}));
    rows_.window_linear(pool_, states_, 0, *conv_, ops::Activation::kNone);
    return {rows_.data(), rows_.data() + rows_.rows()};
  }

  using Values = std::vector<float>;

  std::vector<ContextSpec> specs_{{1, 1}};
  std::vector<StreamState> states_;
  ops::ComputePool pool_{1};
  StreamRows rows_;
  std::unique_ptr<const ops::Linear> conv_;
};

TEST_F(StreamRowsTest, ZeroRowsStandBeforeTheFirstAndAfterTheLast) { EXPECT_EQ(push(0, {1, 2, 3}, true), (Values{1210, 1321, 1032})); }

TEST_F(StreamRowsTest, HoldsBackWhatNeedsARightNeighbour) {
  EXPECT_EQ(push(0, {1}, false), Values{});
  EXPECT_EQ(push(0, {2}, false), Values{1210});
  EXPECT_EQ(push(0, {}, false), Values{});
  EXPECT_EQ(push(0, {3}, true), (Values{1321, 1032}));
}

TEST_F(StreamRowsTest, AFlushAloneGivesTheRest) {
  EXPECT_EQ(push(0, {1, 2, 3}, false), (Values{1210, 1321}));
  EXPECT_EQ(push(0, {}, true), Values{1032});
}

TEST_F(StreamRowsTest, OneRowAndNoRow) {
  EXPECT_EQ(push(0, {7}, true), Values{1070});
  EXPECT_EQ(push(1, {}, true), Values{});
}

TEST_F(StreamRowsTest, StreamsOfOnePassDoNotMix) {
  EXPECT_EQ(push(1, {5}, false), Values{});
  rows_.clear(1);
  for (const float x : {1.0F, 2.0F}) *rows_.append({x == 1.0F ? 0U : 1U, 1, true}) = x;
  rows_.window_linear(pool_, states_, 0, *conv_, ops::Activation::kNone);
  ASSERT_EQ(rows_.segments().size(), 2U);
  EXPECT_EQ(rows_.segments()[0].rows, 1U);
  EXPECT_EQ(rows_.segments()[1].rows, 2U);
  EXPECT_EQ(Values(rows_.data(), rows_.data() + 3), (Values{1010, 1250, 1025}));
}

TEST_F(StreamRowsTest, ResetForgets) {
  push(0, {9, 9, 9}, false);
  states_[0].reset();
  EXPECT_EQ(push(0, {1, 2, 3}, true), (Values{1210, 1321, 1032}));
}

}  // namespace
}  // namespace tts::model
