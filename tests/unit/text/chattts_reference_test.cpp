#include "chattts_reference.h"

#include <gtest/gtest.h>

#include "chattts_goldens.h"

namespace tts::text {
namespace {

using nlohmann::json;

TEST(ChatttsReference, SplitsAsRecorded) {
  const json recorded = test::golden("normalizer.json")["split_text"];
  ASSERT_FALSE(recorded.empty());
  for (const json& one : recorded)
    EXPECT_EQ(split_like_reference(one["text"].get<std::string>()), one["parts"].get<std::vector<std::string>>());
}

TEST(ChatttsReference, DecoratesAsRecorded) {
  const json recorded = test::golden("speaker.json");
  ASSERT_FALSE(recorded["decorate_code"].empty());
  for (const json& one : recorded["decorate_code"]) {
    const auto prompt = one["prompt"].get<std::string>();
    const auto transcript = one["txt_smp"].is_null() ? "" : one["txt_smp"].get<std::string>();
    EXPECT_EQ(decorate_code_like_reference(one["text"].get<std::string>(), {prompt, transcript, one["spk_emb"].get<bool>()}),
              one["out"].get<std::string>());
  }
  ASSERT_FALSE(recorded["decorate_text"].empty());
  for (const json& one : recorded["decorate_text"]) {
    EXPECT_EQ(decorate_refine_like_reference(one["text"].get<std::string>(), one["prompt"].get<std::string>()),
              one["out"].get<std::string>());
  }
}

}  // namespace
}  // namespace tts::text
