// Limits and costs of the streaming decoder; its samples are checked beside the recorded numbers (tests/golden).

#include "stream_decoder.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "sound_model.h"
#include "support/allocation_counter.h"
#include "support/golden_data.h"

namespace tts::model {
namespace {

constexpr std::uint32_t kSlots = 3, kMaxSteps = 8;

class StreamDecoderTest : public ::testing::Test {
 protected:
  StreamDecoderTest()
      : hidden_(kMaxSteps * 2 * model_.decoder.inputs(), 0.1F), pcm_(kSlots, std::vector<float>(decoder_.max_samples(kMaxSteps))) {}

  DecodePush make_push(std::uint32_t slot, std::uint32_t steps, bool last) {
    return {.slot = slot, .steps = steps, .last = last, .hidden = hidden_.data(), .codes = codes_.data(), .pcm = pcm_[slot]};
  }

  SoundModel model_ = load_sound_model(testing::golden_manifest(), false, ops::WeightFormat::kFloat32);
  ops::ComputePool pool_{2};
  StreamDecoder decoder_{model_, pool_, {.slots = kSlots, .max_steps = kMaxSteps}};
  std::vector<float> hidden_;
  std::array<engine::CodeFrame, kMaxSteps> codes_{};
  std::vector<std::vector<float>> pcm_;
};

TEST_F(StreamDecoderTest, HoldsBackTheReceptiveFieldAndNoMore) {
  // Convolutions 1 + 1 + 2 * 6 + 1, then 3 + 2 * 3, then two frames of overlap: 26 frames, two a step.
  EXPECT_EQ(decoder_.lookahead_steps(), 13U);
  EXPECT_EQ(decoder_.samples_per_step(), 512U);
}

TEST_F(StreamDecoderTest, NoPushAllocates) {
  if (!testing::kCountsAllocations) GTEST_SKIP() << "the sanitizer's allocator does not count";
  decoder_.open(0, engine::MelPath::kHidden);
  decoder_.open(1, engine::MelPath::kCodes);
  const std::uint64_t before = testing::allocation_count;
  std::array<DecodePush, kSlots> work;
  for (int round = 0; round < 6; ++round) {
    work = {make_push(0, kMaxSteps, false), make_push(1, 3, false)};
    decoder_.push(std::span(work).first(2));
  }
  decoder_.open(2, engine::MelPath::kHidden);
  work = {make_push(0, kMaxSteps, true), make_push(1, 0, true), make_push(2, 1, true)};
  decoder_.push(work);
  EXPECT_EQ(testing::allocation_count, before);
  EXPECT_GT(work[0].samples, 0U);
}

TEST_F(StreamDecoderTest, TheCounterCounts) {
  if (!testing::kCountsAllocations) GTEST_SKIP();
  const std::uint64_t before = testing::allocation_count;
  pcm_.emplace_back(1000);
  EXPECT_GT(testing::allocation_count, before);
}

TEST_F(StreamDecoderTest, MoreRowsThanOnePassHoldsGoInGroups) {
  constexpr std::uint32_t kMany = 64;
  StreamDecoder decoder(model_, pool_, {.slots = kMany, .max_steps = kMaxSteps});
  std::vector<std::vector<float>> pcm(kMany, std::vector<float>(decoder.max_samples(kMaxSteps)));
  std::vector<DecodePush> work;
  for (std::uint32_t slot = 0; slot < kMany; ++slot) {
    decoder.open(slot, slot % 3 == 0 ? engine::MelPath::kCodes : engine::MelPath::kHidden);
    work.push_back({.slot = slot, .steps = kMaxSteps, .last = true, .hidden = hidden_.data(), .codes = codes_.data(), .pcm = pcm[slot]});
  }
  decoder.push(work);
  for (const DecodePush& push : work) {
    ASSERT_EQ(push.samples, (2 * kMaxSteps - 1) * 256U);
    for (std::size_t i = 0; i < push.samples; ++i) ASSERT_EQ(push.pcm[i], pcm[push.slot % 3][i]) << push.slot;
  }
}

TEST_F(StreamDecoderTest, APushOfNothingIsNothing) {
  decoder_.push({});
  decoder_.open(0, engine::MelPath::kHidden);
  DecodePush push = make_push(0, 0, false);
  decoder_.push({&push, 1});
  EXPECT_EQ(push.samples, 0U);
}

}  // namespace
}  // namespace tts::model
