// Processed distributions of the reference for its recorded logits and histories.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "golden_gpt.h"
#include "sampler.h"

namespace tts::model {
namespace {

std::vector<std::uint32_t> last_tokens(const std::vector<std::int32_t>& history, std::size_t row, std::size_t length) {
  const std::size_t first = length > TokenWindow::kCapacity ? length - TokenWindow::kCapacity : 0;
  std::vector<std::uint32_t> recent;
  for (std::size_t i = first; i < length; ++i) recent.push_back(static_cast<std::uint32_t>(history[row * length + i]));
  return recent;
}

TEST(SamplerGolden, EveryCaseHasTheReferencesDistribution) {
  const testing::GoldenFile golden("sampler");
  int cases = 0;
  const nlohmann::json meta = golden_json("meta.json");
  for (const nlohmann::json& parameters : meta.at("sampler")) {
    const std::string name = parameters.at("name");
    if (name == "row_quirk") continue;
    SCOPED_TRACE(name);
    ++cases;
    const std::vector<float> logits = golden.floats(name + ".logits"), penalised = golden.floats(name + ".after_penalty"),
                             filtered = golden.floats(name + ".after_top_k"), probs = golden.floats(name + ".probs");
    const std::vector<std::int32_t> history = golden.ints(name + ".history");
    const std::size_t rows = golden.shape(name + ".logits")[0], vocabulary = golden.shape(name + ".logits")[1],
                      length = golden.shape(name + ".history")[1];
    Sampler sampler(vocabulary);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::vector<std::uint32_t> recent = last_tokens(history, row, length);
      SampleRequest request{.logits = std::span(logits).subspan(row * vocabulary, vocabulary),
                            .temperature = parameters.at("temperature").at(row),
                            .repetition_penalty = parameters.at("repetition_penalty").get<float>(),
                            .top_p = parameters.at("top_P").is_null() ? 1.0F : parameters.at("top_P").get<float>(),
                            .top_k = parameters.at("top_K"),
                            .forbidden = {},
                            .recent = recent};
      if (!parameters.at("eos_masked").is_null()) request.forbidden = parameters.at("eos_masked").get<std::uint32_t>();
      const auto survivors = sampler.survivors(request);

      std::vector<float> left(vocabulary, -std::numeric_limits<float>::infinity());
      double total = 0.0, highest = -1e300;
      for (const auto& candidate : survivors) highest = std::max(highest, double{candidate.logit});
      for (const auto& candidate : survivors) {
        left[candidate.token] = candidate.logit;
        total += std::exp(candidate.logit - highest);
      }
      for (std::size_t v = 0; v < vocabulary; ++v) {
        const std::size_t at = row * vocabulary + v;
        const bool kept = std::isfinite(filtered[at]) && v != request.forbidden;
        ASSERT_EQ(std::isfinite(left[v]), kept) << "row " << row << ", token " << v;
        if (kept) {
          ASSERT_NEAR(left[v], penalised[at], 1e-5 * std::max(1.0F, std::abs(penalised[at])));
        }
        ASSERT_NEAR(kept ? std::exp(left[v] - highest) / total : 0.0, probs[at], 1e-5) << "row " << row << ", token " << v;
      }
    }
  }
  EXPECT_EQ(cases, 9);
}

// The reference stops penalising rows whose number reaches the vocabulary guard (2 here); we penalise every row alike.
TEST(SamplerGolden, ThePenaltyDoesNotDependOnTheRowsNumber) {
  const testing::GoldenFile golden("sampler");
  const std::vector<float> logits = golden.floats("row_quirk.logits"), penalised = golden.floats("row_quirk.after_penalty");
  const std::size_t vocabulary = golden.shape("row_quirk.logits")[1];
  Sampler sampler(vocabulary);
  const std::vector<std::uint32_t> recent{0};
  for (std::size_t row = 0; row < 4; ++row) {
    const SampleRequest request{
        .logits = std::span(logits).subspan(row * vocabulary, vocabulary), .repetition_penalty = 2.0F, .forbidden = {}, .recent = recent};
    for (const auto& candidate : sampler.survivors(request)) EXPECT_EQ(candidate.logit, penalised[candidate.token]);  // of row 0
  }
}

}  // namespace
}  // namespace tts::model
