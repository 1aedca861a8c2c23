#include "gpt.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "random_gpt.h"
#include "simd_targets.h"

namespace tts::model {
namespace {

using Sequence = std::vector<std::vector<float>>;  // input rows of one slot

Sequence random_sequence(std::size_t length, std::size_t hidden, std::uint32_t seed) {
  Sequence sequence;
  for (std::size_t i = 0; i < length; ++i) sequence.push_back(ops::random_floats(hidden, seed * 1000 + static_cast<std::uint32_t>(i)));
  return sequence;
}

struct Results {
  std::vector<std::vector<float>> hidden, logits;  // by position
  friend bool operator==(const Results&, const Results&) = default;
};

// Feeds the next `counts[s]` positions of each slot in one pass.
void feed(Gpt& gpt, const std::vector<Sequence>& sequences, const std::vector<std::size_t>& counts, std::vector<Results>& results,
          GptHead head) {
  std::vector<GptRow> rows;
  for (std::uint32_t s = 0; s < sequences.size(); ++s) {
    const std::size_t first = results[s].hidden.size();
    for (std::size_t p = first; p < first + counts[s]; ++p) {
      std::copy(sequences[s][p].begin(), sequences[s][p].end(), gpt.input(rows.size()).begin());
      rows.push_back({.slot = s, .position = static_cast<std::uint32_t>(p), .head = head});
    }
  }
  gpt.forward(rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto hidden = gpt.hidden(r), logits = gpt.logits(r);
    results[rows[r].slot].hidden.emplace_back(hidden.begin(), hidden.end());
    results[rows[r].slot].logits.emplace_back(logits.begin(), logits.end());
  }
}

TEST(Gpt, AgreesWithDoublePrecisionWithAndWithoutGroupedHeads) {
  ops::for_each_simd_target([] {
    for (const std::uint32_t kv_heads : {4U, 2U, 1U}) {
      const RandomGpt random(small_gpt_sizes(4, kv_heads));
      const GptWeights weights = random.weights();
      ops::ComputePool pool(2);
      Gpt gpt(weights, pool, {.slots = 64, .positions = 64, .rows = 64});
      const Sequence sequence = random_sequence(37, gpt.hidden_size(), 1);
      std::vector<Results> results(1);
      feed(gpt, {sequence}, {sequence.size()}, results, GptHead::kCode);
      std::vector<std::vector<double>> input;
      for (const auto& row : sequence) input.emplace_back(row.begin(), row.end());
      const auto expected = random.hidden_states(input);
      for (std::size_t p = 0; p < sequence.size(); ++p) {
        for (std::size_t d = 0; d < gpt.hidden_size(); ++d) ASSERT_NEAR(results[0].hidden[p][d], expected[p][d], 1e-5) << "position " << p;
      }
      const auto& head = random.tensors.at("code_head");
      for (std::size_t v = 0; v < results[0].logits[5].size(); ++v) {
        double logit = 0.0;
        for (std::size_t d = 0; d < gpt.hidden_size(); ++d) logit += head[v * gpt.hidden_size() + d] * expected[5][d];
        ASSERT_NEAR(results[0].logits[5][v], logit, 2e-5);
      }
    }
  });
}

class GptFormats : public ::testing::TestWithParam<std::tuple<ops::WeightFormat, ops::KvFormat>> {
 protected:
  ops::WeightFormat weight_format() const { return std::get<0>(GetParam()); }
  ops::KvFormat kv_format() const { return std::get<1>(GetParam()); }
};

std::string formats_name(const ::testing::TestParamInfo<GptFormats::ParamType>& test) {
  const std::array<const char*, 3> names{"Float32", "Bfloat16", "Int8"};
  return std::string(names[static_cast<std::size_t>(std::get<0>(test.param))]) + "Weights" +
         names[static_cast<std::size_t>(std::get<1>(test.param))] + "Kv";
}

INSTANTIATE_TEST_SUITE_P(Every, GptFormats,
                         ::testing::Combine(::testing::Values(ops::WeightFormat::kFloat32, ops::WeightFormat::kBfloat16,
                                                              ops::WeightFormat::kInt8),
                                            ::testing::Values(ops::KvFormat::kFloat32, ops::KvFormat::kBfloat16, ops::KvFormat::kInt8)),
                         formats_name);

// Sixteen slots whose prompts are cut anywhere, joining and pausing at random, against each alone, a position at a time.
TEST_P(GptFormats, BitsDependNeitherOnChunksNorOnNeighboursNorOnWorkers) {
  const RandomGpt random(small_gpt_sizes(4, 2));
  const GptWeights weights = random.weights(weight_format());
  std::vector<Sequence> sequences;
  for (std::uint32_t s = 0; s < 16; ++s) sequences.push_back(random_sequence(20 + 4 * s, random.sizes.hidden_size, s));

  std::vector<Results> alone;
  for (const Sequence& sequence : sequences) {
    ops::ComputePool pool(1);
    Gpt gpt(weights, pool, {.slots = 1, .positions = 80, .rows = 1, .kv = kv_format()});
    std::vector<Results> results(1);
    for (std::size_t p = 0; p < sequence.size(); ++p) feed(gpt, {sequence}, {1}, results, GptHead::kCode);
    alone.push_back(results[0]);
  }

  for (const std::uint32_t workers : {1U, 2U, 3U}) {
    ops::ComputePool pool(workers);
    Gpt gpt(weights, pool, {.slots = 600, .positions = 80, .rows = 600, .kv = kv_format()});
    std::vector<Results> together(sequences.size());
    std::mt19937 engine(workers);
    for (bool more = true; more;) {
      std::vector<std::size_t> counts;
      for (std::size_t s = 0; s < sequences.size(); ++s)
        counts.push_back(std::min<std::size_t>(engine() % (s % 2 == 0 ? 3 : 33), sequences[s].size() - together[s].hidden.size()));
      if (std::all_of(counts.begin(), counts.end(), [](std::size_t count) { return count == 0; })) {
        more = false;
        for (std::size_t s = 0; s < sequences.size(); ++s) more |= together[s].hidden.size() < sequences[s].size();
        continue;
      }
      feed(gpt, sequences, counts, together, GptHead::kCode);
    }
    for (std::size_t s = 0; s < sequences.size(); ++s) EXPECT_EQ(together[s], alone[s]) << "slot " << s << ", " << workers << " workers";
  }
}

// A slot's next owner starts at position 0 over whatever the last one left.
TEST_P(GptFormats, AReusedSlotForgetsItsFormerOwner) {
  const RandomGpt random(small_gpt_sizes(2, 2));
  const GptWeights weights = random.weights(weight_format());
  ops::ComputePool pool(1);
  Gpt gpt(weights, pool, {.slots = 64, .positions = 64, .rows = 64, .kv = kv_format()});
  const Sequence longer = random_sequence(50, gpt.hidden_size(), 8), shorter = random_sequence(20, gpt.hidden_size(), 9);
  std::vector<Results> fresh(1), former(1), reused(1);
  feed(gpt, {shorter}, {shorter.size()}, fresh, GptHead::kCode);
  feed(gpt, {longer}, {longer.size()}, former, GptHead::kCode);
  feed(gpt, {shorter}, {shorter.size()}, reused, GptHead::kCode);
  EXPECT_EQ(reused[0], fresh[0]);
}

TEST(Gpt, CodeAndTextRowsShareAPass) {
  const RandomGpt random(small_gpt_sizes(2, 1));
  const GptWeights weights = random.weights();
  ops::ComputePool pool(2);
  Gpt gpt(weights, pool, {.slots = 4, .positions = 16, .rows = 8});
  const auto input = ops::random_floats(gpt.hidden_size(), 3);
  const auto run = [&](std::vector<GptHead> heads) {
    std::vector<GptRow> rows;
    for (std::uint32_t s = 0; s < heads.size(); ++s) {
      std::copy(input.begin(), input.end(), gpt.input(s).begin());
      rows.push_back({.slot = s, .position = 0, .head = heads[s]});
    }
    gpt.forward(rows);
    std::vector<std::vector<float>> logits;
    for (std::size_t r = 0; r < heads.size(); ++r) {
      if (heads[r] == GptHead::kNone) continue;
      const auto values = gpt.logits(r);
      logits.emplace_back(values.begin(), values.end());
    }
    return logits;
  };
  const auto code = run({GptHead::kCode})[0], text = run({GptHead::kText})[0];
  ASSERT_EQ(code.size(), 4U * random.sizes.num_audio_tokens);
  ASSERT_EQ(text.size(), random.sizes.num_text_tokens);
  const auto mixed = run({GptHead::kText, GptHead::kCode, GptHead::kNone, GptHead::kText});
  EXPECT_EQ(mixed, (std::vector<std::vector<float>>{text, code, text}));
}

TEST(Gpt, EmbedsTokensAndSumsOfCodes) {
  const RandomGpt random(small_gpt_sizes(2, 2));
  const GptWeights weights = random.weights();
  ops::ComputePool pool(1);
  Gpt gpt(weights, pool, {.slots = 1, .positions = 16, .rows = 2});
  const std::size_t hidden = gpt.hidden_size();
  gpt.embed_text(39, gpt.input(0));
  gpt.embed_codes({0, 29, 7, 3}, gpt.input(1));
  for (std::size_t d = 0; d < hidden; ++d) {
    EXPECT_EQ(gpt.input(0)[d], random.tensors.at("text")[39 * hidden + d]);
    EXPECT_NEAR(gpt.input(1)[d],
                random.tensors.at("code0")[d] + random.tensors.at("code1")[29 * hidden + d] + random.tensors.at("code2")[7 * hidden + d] +
                    random.tensors.at("code3")[3 * hidden + d],
                1e-6);
  }
}

}  // namespace
}  // namespace tts::model
