#include "stream_rows.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>


namespace tts::model {
namespace {

using Values = std::vector<float>;

// One channel; y[t] = 1 x[t-1] + 10 x[t] + 100 x[t+1] + 1000, so every tap, the padding and the bias can be read off.
class StreamRowsTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kLayers = 3;

  StreamRowsTest() : rows_({.rows = 64, .width = 4, .inner = 4, .segments = 4}), seen_(2) {
    for (int i = 0; i < 2; ++i) states_.emplace_back(specs_);
  }

  StreamRows::Segment segment(std::size_t stream, std::size_t count, bool last) {
    StreamRows::Segment made{.stream = stream, .rows = {.begin = seen_[stream], .rows = count}, .last = last};
    seen_[stream] = last ? 0 : made.rows.end();
    return made;
  }

  void put(const StreamRows::Segment& segment, const Values& in) { std::copy(in.begin(), in.end(), rows_.append(segment)); }

  Values get(const StreamRows::Run& run) const { return {rows_.row(run.first), rows_.row(run.first + run.rows)}; }

  void convolve(std::size_t layer = 0) { rows_.window_linear(pool_, states_, layer, conv_, ops::Activation::kNone); }

  Values push(std::size_t stream, const Values& in, bool last) {
    rows_.clear(1);
    put(segment(stream, in.size(), last), in);
    convolve();
    return get(rows_.segments()[0].rows);
  }

  std::vector<ContextSpec> specs_{kLayers, {1, 1}};
  std::vector<StreamState> states_;
  ops::ComputePool pool_{2};
  StreamRows rows_;
  std::vector<std::int64_t> seen_;
  const SoundLinear conv_{ops::WeightFormat::kFloat32, SoundLinear::Grade::kPrecise, std::vector<float>{1, 10, 100}, 1, 3,
                          std::vector<float>{1000}};
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
  put(segment(0, 1, true), {1});
  put(segment(1, 1, true), {2});
  convolve();
  ASSERT_EQ(rows_.segments().size(), 2U);
  EXPECT_EQ(get(rows_.segments()[0].rows), Values{1010});
  EXPECT_EQ(get(rows_.segments()[1].rows), (Values{1250, 1025}));
}

TEST_F(StreamRowsTest, ANewUtteranceForgetsTheOld) {
  push(0, {9, 9, 9}, false);
  seen_[0] = 0;
  EXPECT_EQ(push(0, {1, 2, 3}, true), (Values{1210, 1321, 1032}));
}

TEST_F(StreamRowsTest, ProvisionalRowsAreThoseOfAnUtteranceThatEndsHereAndLeaveNoTrace) {
  rows_.clear(1);
  StreamRows::Segment early = segment(0, 2, false);
  early.wanted_begin = -1, early.wanted_end = 4, early.end = 2;
  put(early, {1, 2});
  convolve();
  EXPECT_EQ(get(rows_.segments()[0].rows), Values{1210});
  EXPECT_EQ(get(rows_.segments()[0].provisional), Values{1021});
  EXPECT_EQ(push(0, {3}, true), (Values{1321, 1032}));
}

// Through three layers, whatever part of the provisional rows is asked for.
TEST_F(StreamRowsTest, AnyWantedRangeOfProvisionalRowsIsRight) {
  std::mt19937 random(3);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  int provisional_rows = 0, apart = 0;
  for (int round = 0; round < 300; ++round) {
    Values in(static_cast<std::size_t>(pick(1, 12)));
    for (float& x : in) x = static_cast<float>(pick(-9, 9));
    // The rows of an utterance that ends here, from another stream's memory.
    rows_.clear(1);
    seen_[1] = 0;
    put(segment(1, in.size(), true), in);
    for (std::size_t layer = 0; layer < kLayers; ++layer) convolve(layer);
    const Values whole = get(rows_.segments()[0].rows);
    ASSERT_EQ(whole.size(), in.size());

    seen_[0] = 0;
    Values final_rows;
    for (std::size_t at = 0; at < in.size();) {
      const std::size_t count = std::min(in.size() - at, static_cast<std::size_t>(pick(1, 5)));
      rows_.clear(1);
      StreamRows::Segment early = segment(0, count, false);
      const std::int64_t begin = pick(0, 12), end = begin + pick(0, 6);
      early.end = early.rows.end();
      early.wanted_begin = begin - static_cast<std::int64_t>(kLayers), early.wanted_end = end + static_cast<std::int64_t>(kLayers);
      put(early, Values(in.begin() + static_cast<std::ptrdiff_t>(at), in.begin() + static_cast<std::ptrdiff_t>(at + count)));
      for (std::size_t layer = 0; layer < kLayers; ++layer) convolve(layer);
      at += count;
      const StreamRows::Segment& made = rows_.segments()[0];
      const Values fresh = get(made.rows), provisional = get(made.provisional);
      ASSERT_EQ(made.rows.begin, static_cast<std::int64_t>(final_rows.size()));
      final_rows.insert(final_rows.end(), fresh.begin(), fresh.end());
      if (at < in.size()) continue;
      // All of what was asked for and is not final.
      const auto length = static_cast<std::int64_t>(in.size());
      const std::int64_t expected_begin = std::max(made.rows.end(), begin);
      ASSERT_EQ(std::max<std::int64_t>(0, std::min(length, end) - expected_begin), static_cast<std::int64_t>(provisional.size()));
      for (std::size_t i = 0; i < provisional.size(); ++i) {
        EXPECT_EQ(provisional[i], whole[static_cast<std::size_t>(expected_begin) + i]) << round;
      }
      provisional_rows += static_cast<int>(provisional.size());
      apart += !provisional.empty() && expected_begin > made.rows.end() ? 1 : 0;
    }
    ASSERT_LE(final_rows.size(), whole.size());
    EXPECT_TRUE(std::equal(final_rows.begin(), final_rows.end(), whole.begin()));
  }
  EXPECT_GT(provisional_rows, 50);
  EXPECT_GT(apart, 10);
}

}  // namespace
}  // namespace tts::model
