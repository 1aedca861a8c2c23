#include "gpt_weights.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "random_gpt.h"

namespace tts::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FoldWeightNorm, WorkedExample) { EXPECT_THAT(fold_weight_norm({10}, {3, 4}, 2), ElementsAre(6, 8)); }

TEST(FoldWeightNorm, AZeroRowStaysZero) { EXPECT_THAT(fold_weight_norm({10, 2}, {0, 0, 0, 5}, 2), ElementsAre(0, 0, 0, 2)); }

TEST(CheckGptSizes, AcceptsWhatTheKernelsTake) {
  EXPECT_THAT(check_gpt_sizes(small_gpt_sizes(4, 4)), IsEmpty());
  EXPECT_THAT(check_gpt_sizes(small_gpt_sizes(4, 1)), IsEmpty());
}

TEST(CheckGptSizes, ListsEveryProblem) {
  engine::GptSizes sizes = small_gpt_sizes(4, 3);
  sizes.hidden_size = 4 * 20;
  sizes.num_vq = 2;
  sizes.num_audio_tokens = 3;
  sizes.num_text_tokens = 1;
  EXPECT_THAT(check_gpt_sizes(sizes), ElementsAre(HasSubstr("num_vq"), HasSubstr("multiple of 16"), HasSubstr("num_key_value_heads"),
                                                  HasSubstr("num_audio_tokens"), HasSubstr("num_text_tokens")));
  sizes = small_gpt_sizes(4, 4);
  sizes.hidden_size += 1;
  EXPECT_THAT(check_gpt_sizes(sizes), ElementsAre(HasSubstr("multiple of num_attention_heads")));
}

// Attention keeps one head on the stack.
TEST(CheckGptSizes, RefusesHeadsWiderThanTheKernelsHold) {
  engine::GptSizes sizes = small_gpt_sizes(2, 2);
  sizes.hidden_size = 2 * 512;
  EXPECT_THAT(check_gpt_sizes(sizes), IsEmpty());
  sizes.hidden_size = 2 * 528;
  EXPECT_THAT(check_gpt_sizes(sizes), ElementsAre(HasSubstr("above 512")));
}

}  // namespace
}  // namespace tts::model
