#include "inverse_stft.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "polar.h"

namespace tts::model {
namespace {

constexpr std::size_t kHop = 16, kSize = 64, kBins = kSize / 2 + 1;

std::vector<float> hann() {
  std::vector<float> window(kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    window[i] = static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / kSize));
  }
  return window;
}

// Log-magnitudes and phases of a centred STFT of `signal` with zero padding, computed the slow way.
std::vector<float> analyse(const std::vector<float>& signal, std::size_t frames) {
  const std::vector<float> window = hann();
  std::vector<float> rows(frames * 2 * kBins);
  for (std::size_t f = 0; f < frames; ++f) {
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      double re = 0, im = 0;
      for (std::size_t i = 0; i < kSize; ++i) {
        const std::size_t at = f * kHop + i;
        if (at < kSize / 2 || at - kSize / 2 >= signal.size()) continue;
        const double angle = 2 * std::numbers::pi * static_cast<double>(bin * i) / kSize, x = double{window[i]} * signal[at - kSize / 2];
        re += x * std::cos(angle);
        im -= x * std::sin(angle);
      }
      rows[f * 2 * kBins + bin] = static_cast<float>(std::log(std::max(std::hypot(re, im), 1e-20)));
      rows[f * 2 * kBins + kBins + bin] = static_cast<float>(std::atan2(im, re));
    }
  }
  return rows;
}

class InverseStftTest : public ::testing::Test {
 protected:
  InverseStftTest() : inverse_(hann(), kHop, 2) {}

  std::vector<float> synthesise(const std::vector<float>& rows, std::size_t chunk) {
    const std::size_t frames = rows.size() / (2 * kBins);
    InverseStft::Tail tail = inverse_.make_tail();
    InverseStft::reset(tail);
    std::vector<float> out;
    for (std::size_t f = 0; f < frames; f += chunk) {
      const std::size_t count = std::min(chunk, frames - f);
      StreamRows batch({.rows = count, .width = 2 * kBins, .inner = 0, .segments = 1});
      batch.clear(2 * kBins);
      std::copy_n(rows.data() + f * 2 * kBins, count * 2 * kBins, batch.append({.rows = {.rows = count}}));
      inverse_.to_time(pool_, batch);
      std::vector<float> pcm((count + 1) * kHop);
      pcm.resize(inverse_.overlap_add(batch.row(0), count, f + count == frames, {}, tail, pcm.data()));
      out.insert(out.end(), pcm.begin(), pcm.end());
    }
    return out;
  }

  ops::ComputePool pool_{2};
  InverseStft inverse_;
};

TEST_F(InverseStftTest, UndoesAnAnalysisAndNeverDependsOnTheChunks) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const std::size_t frames : {2U, 3U, 4U, 5U, 11U}) {
    std::vector<float> signal((frames - 1) * kHop);
    for (float& x : signal) x = normal(random);
    const std::vector<float> rows = analyse(signal, frames);
    const std::vector<float> whole = synthesise(rows, frames);
    ASSERT_EQ(whole.size(), signal.size());
    for (std::size_t i = 0; i < signal.size(); ++i) EXPECT_NEAR(whole[i], signal[i], 2e-5) << frames << " frames, sample " << i;
    for (std::size_t chunk = 1; chunk < frames; ++chunk) EXPECT_EQ(synthesise(rows, chunk), whole) << chunk;
  }
}

TEST_F(InverseStftTest, OneFrameHasNoSamples) { EXPECT_TRUE(synthesise(std::vector<float>(2 * kBins), 1).empty()); }

TEST_F(InverseStftTest, RefusesAWindowThatLeavesHoles) {
  EXPECT_THROW(InverseStft(std::vector<float>(kSize), kHop, 1), std::runtime_error);
  std::vector<float> holed = hann();
  for (std::size_t frame = 0; frame < 4; ++frame) holed[frame * kHop + 3] = 0;
  EXPECT_THROW(InverseStft(holed, kHop, 1), std::runtime_error);
  holed = hann();
  holed[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(InverseStft(holed, kHop, 1), std::runtime_error);
}

TEST(Polar, IsExpCosSinWithAClamp) {
  std::vector<float> log_magnitude, phase;
  for (int i = 0; i < 37; ++i) {
    log_magnitude.push_back(-20.0F + static_cast<float>(i));
    phase.push_back(static_cast<float>(i - 18) * 1.7F);
  }
  std::vector<float> out(2 * phase.size());
  polar_to_complex(log_magnitude.data(), phase.data(), phase.size(), 100, out.data());
  for (std::size_t i = 0; i < phase.size(); ++i) {
    const double magnitude = std::min(std::exp(double{log_magnitude[i]}), 100.0);
    EXPECT_NEAR(out[2 * i], magnitude * std::cos(double{phase[i]}), 1e-6 * magnitude + 1e-12) << i;
    EXPECT_NEAR(out[2 * i + 1], magnitude * std::sin(double{phase[i]}), 1e-6 * magnitude + 1e-12) << i;
  }
}

TEST(Polar, HugeInputsStayFinite) {
  const float log_magnitude[] = {1e30F, 3e38F, -3e38F}, phase[] = {1e30F, -1e30F, 3e38F};
  float out[6];
  polar_to_complex(log_magnitude, phase, 3, 100, out);
  for (const float value : out) EXPECT_LE(std::abs(value), 101);
}

}  // namespace
}  // namespace tts::model
