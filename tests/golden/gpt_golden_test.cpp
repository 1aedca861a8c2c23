// Folded heads, prompt passes: embeddings, hidden states and logits of the reference.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "golden_gpt.h"
#include "gpt.h"
#include "speaker_norm.h"

namespace tts::model {
namespace {

constexpr float kHiddenTolerance = 5e-5F, kLogitTolerance = 1e-4F;

TEST(GptGolden, FoldedHeadsAreTheReferencesEffectiveWeights) {
  const SafetensorsFile embed(testing::golden_path("model/asset/Embed.safetensors"));
  const testing::GoldenFile expected("embed_heads_effective");
  TensorReader reader(embed);
  const engine::GptSizes sizes = testing::golden_manifest().architecture.gpt;
  const auto check = [&](const std::string& head, std::uint64_t rows) {
    const std::string prefix = head + ".parametrizations.weight.original";
    const std::vector<float> magnitude = reader.get(prefix + "0", {rows, 1}),
                             direction = reader.get(prefix + "1", {rows, sizes.hidden_size});
    expect_close(fold_weight_norm(magnitude, direction, sizes.hidden_size), expected.floats(head + ".weight"), 1e-6F, head);
  };
  for (int q = 0; q < 4; ++q) check("head_code." + std::to_string(q), sizes.num_audio_tokens);
  check("head_text", sizes.num_text_tokens);
}

TEST(GptGolden, SpeakersAreNormalisedInHalfPrecision) {
  const testing::GoldenFile golden("speaker");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(golden_speaker(i), golden.floats("spk_emb_" + std::to_string(i) + "_normalized_f16"));
}

// Runs the prompts of one file side by side, each row alone in its slot and without its padding.
void check_prefill(const std::string& name, int speaker) {
  const testing::GoldenFile golden(name);
  const std::size_t batch = golden.shape("input_ids")[0], length = golden.shape("input_ids")[1];
  const std::vector<std::int32_t> ids = golden.ints("input_ids"), attention = golden.ints("attention_mask"),
                                  text = golden.ints("text_mask");
  const GptWeights weights = load_golden_gpt();
  ops::ComputePool pool(2);
  const auto rows = static_cast<std::uint32_t>(batch * length);
  Gpt gpt(weights, pool, {.slots = rows, .positions = static_cast<std::uint32_t>(length), .rows = rows});
  const std::size_t hidden = gpt.hidden_size();
  const std::vector<float> emb = golden.floats("emb"), final_hidden = golden.floats("final_hidden");
  const std::int32_t speaker_token = golden_json("gen_prompts.json").at("spk_emb");
  const std::vector<float> speaker_vector = speaker < 0 ? std::vector<float>{} : golden_speaker(speaker);

  for (const GptHead head : {GptHead::kCode, GptHead::kText}) {
    std::vector<GptRow> plan;
    std::vector<std::size_t> origin;  // of each row in the golden's [batch, length]
    for (std::size_t b = 0; b < batch; ++b) {
      std::uint32_t position = 0;
      for (std::size_t at = b * length; at < (b + 1) * length; ++at) {
        if (attention[at] == 0) continue;
        const std::span<float> input = gpt.input(plan.size());
        if (text[at] == 0) {
          engine::CodeFrame codes{};
          for (std::size_t q = 0; q < codes.size(); ++q) codes[q] = static_cast<std::uint16_t>(ids[at * 4 + q]);
          gpt.embed_codes(codes, input);
        } else if (speaker >= 0 && ids[at * 4] == speaker_token) {
          std::copy(speaker_vector.begin(), speaker_vector.end(), input.begin());
        } else {
          gpt.embed_text(ids[at * 4], input);
        }
        expect_close(input, std::span(emb).subspan(at * hidden, hidden), 1e-6F, name + ", embedding " + std::to_string(at));
        plan.push_back({.slot = static_cast<std::uint32_t>(b), .position = position++, .head = head});
        origin.push_back(at);
      }
    }
    gpt.forward(plan);
    for (std::size_t r = 0; r < plan.size(); ++r) {
      expect_close(gpt.hidden(r), std::span(final_hidden).subspan(origin[r] * hidden, hidden), kHiddenTolerance,
                   name + ", hidden " + std::to_string(origin[r]));
      if (origin[r] % length != length - 1) continue;
      const std::vector<float> logits = golden.floats(head == GptHead::kCode ? "audio_logits" : "text_logits_last");
      const std::size_t width = logits.size() / batch;
      expect_close(gpt.logits(r), std::span(logits).subspan(origin[r] / length * width, width), kLogitTolerance, name + ", logits");
    }
  }
}

// A stack cut after n layers shows the n-th layer's output, behind the final norm.
TEST(GptGolden, EveryLayersOutput) {
  const testing::GoldenFile golden("prefill_b1");
  const std::size_t length = golden.shape("emb")[1], hidden = golden.shape("emb")[2];
  const std::vector<float> emb = golden.floats("emb");
  const std::size_t layers = load_golden_gpt().layers.size();
  ASSERT_EQ(layers, 3U);
  for (std::size_t kept = 1; kept <= layers; ++kept) {
    GptWeights weights = load_golden_gpt();
    weights.layers.erase(weights.layers.begin() + static_cast<std::ptrdiff_t>(kept), weights.layers.end());
    weights.sizes.num_hidden_layers = static_cast<std::uint32_t>(kept);
    ops::ComputePool pool(1);
    const auto rows = static_cast<std::uint32_t>(length);
    Gpt gpt(weights, pool, {.slots = rows, .positions = rows, .rows = rows});
    std::vector<GptRow> plan;
    for (std::uint32_t at = 0; at < rows; ++at) {
      std::copy_n(emb.begin() + static_cast<std::ptrdiff_t>(at * hidden), hidden, gpt.input(at).begin());
      plan.push_back({.slot = 0, .position = at, .head = GptHead::kCode});
    }
    gpt.forward(plan);
    const std::string stage = "layer" + std::to_string(kept - 1) + "_out";
    const std::vector<float> output = golden.floats(stage);
    for (std::size_t at = 0; at < length; ++at) {
      const std::span<const float> row = std::span(output).subspan(at * hidden, hidden);
      double squares = 0;
      for (const float x : row) squares += double{x} * x;
      const double scale = 1 / std::sqrt(squares / static_cast<double>(hidden) + weights.sizes.rms_norm_eps);
      std::vector<float> expected(hidden);
      for (std::size_t c = 0; c < hidden; ++c) expected[c] = static_cast<float>(row[c] * scale) * weights.final_norm[c];
      expect_close(gpt.hidden(at), expected, kHiddenTolerance, stage + ", position " + std::to_string(at));
    }
  }
}

TEST(GptGolden, PromptAlone) { check_prefill("prefill_b1", 0); }
TEST(GptGolden, PromptsOfDifferentLengthTogether) { check_prefill("prefill_b3_leftpad", 1); }
TEST(GptGolden, PromptWithReferenceAudio) { check_prefill("prefill_zero_shot", -1); }

}  // namespace
}  // namespace tts::model
