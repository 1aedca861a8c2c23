// Whole generations of the reference, replayed with the noise it drew: every token equal, hidden states close.

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "golden_gpt.h"
#include "gpt.h"
#include "sampler.h"

namespace tts::model {
namespace {

constexpr float kHiddenTolerance = 5e-5F;

// The Exp(1) draws of one batch row, dense or for the listed tokens of each step only.
class RecordedNoise final : public NoiseSource {
 public:
  RecordedNoise(const testing::GoldenFile& golden, std::size_t first_row) : first_row_(first_row) {
    if (golden.has("noise")) {
      noise_ = golden.floats("noise");
      rows_ = golden.shape("noise")[1];
      width_ = golden.shape("noise")[2];
      steps_ = golden.shape("noise")[0];
    } else if (golden.has("scores_noise")) {
      noise_ = golden.floats("scores_noise");
      tokens_ = golden.ints("scores_idx");
      rows_ = golden.shape("scores_noise")[1];
      width_ = golden.shape("scores_noise")[2];
      steps_ = golden.shape("scores_noise")[0];
    }
  }

  float exponential(std::uint32_t step, std::uint32_t codebook, std::uint32_t token) const noexcept override {
    const std::size_t base = (std::min<std::size_t>(step, steps_ - 1) * rows_ + first_row_ + codebook) * width_;
    if (tokens_.empty()) return noise_[base + token];
    for (std::size_t i = 0; i < width_; ++i) {
      if (tokens_[base + i] == static_cast<std::int32_t>(token)) return noise_[base + i];
    }
    ADD_FAILURE() << "token " << token << " survived at step " << step << ", but the reference dropped it";
    return std::numeric_limits<float>::infinity();
  }

 private:
  std::size_t first_row_, rows_ = 0, width_ = 0, steps_ = 0;
  std::vector<float> noise_;
  std::vector<std::int32_t> tokens_;
};

struct Row {
  std::uint32_t position = 0;
  std::uint32_t length = 0;  // generated, the end step excluded
  bool finished = false;
  engine::CodeFrame codes{};
  std::int32_t token = 0;
  std::array<TokenWindow, engine::kCodebooks> recent;
};

const nlohmann::json& find_case(const nlohmann::json& meta, const std::string& name) {
  for (const auto& entry : meta.at("generation")) {
    if (entry.at("name") == name) return entry;
  }
  throw std::runtime_error("no generation " + name);
}

void replay(const std::string& name, const std::string& file, const std::optional<ChangedWeight>& change = std::nullopt) {
  const testing::GoldenFile golden(file);
  const nlohmann::json meta = golden_json("meta.json"), prompts = golden_json("gen_prompts.json");
  const nlohmann::json& entry = find_case(meta, name);
  const nlohmann::json& prompt = prompts.at("cases").at(name);
  const nlohmann::json& parameters = entry.at("params");
  const bool text_stage = name.starts_with("refine");
  const std::size_t batch = prompt.at("rows").size(), codebooks = text_stage ? 1 : engine::kCodebooks;
  const GptHead head = text_stage ? GptHead::kText : GptHead::kCode;
  const GptWeights weights = load_golden_gpt(change);
  const std::uint32_t end_token = text_stage ? prompts.at("Ebreak").get<std::uint32_t>() : weights.sizes.num_audio_tokens - 1;
  const std::size_t vocabulary = text_stage ? weights.sizes.num_text_tokens : weights.sizes.num_audio_tokens;
  const std::vector<float> speaker = prompt.at("speaker").is_null() ? std::vector<float>{} : golden_speaker(prompt.at("speaker"));
  const std::vector<std::int32_t> reference_codes = testing::GoldenFile("speaker").ints("spk_smp_codes");  // [4, P]

  ops::ComputePool pool(2);
  Gpt gpt(weights, pool, {.slots = static_cast<std::uint32_t>(batch), .positions = 256, .rows = 128});
  Sampler sampler(vocabulary);
  std::vector<RecordedNoise> noise;
  for (std::size_t b = 0; b < batch; ++b) noise.emplace_back(golden, b * codebooks);
  const std::vector<std::int32_t> expected = golden.ints("token");

  std::vector<Row> rows(batch);
  std::vector<GptRow> plan;
  std::vector<std::size_t> drawing(batch);
  for (std::size_t b = 0; b < batch; ++b) {
    const auto add = [&](auto&& embed) {
      embed(gpt.input(plan.size()));
      plan.push_back({.slot = static_cast<std::uint32_t>(b), .position = rows[b].position++, .head = GptHead::kNone});
    };
    for (const std::int32_t token : prompt.at("rows")[b]) {
      add([&](std::span<float> input) {
        if (!speaker.empty() && token == prompts.at("spk_emb")) {
          std::copy(speaker.begin(), speaker.end(), input.begin());
        } else {
          gpt.embed_text(token, input);
        }
      });
    }
    if (prompt.at("audio_prompt")) {
      const std::size_t frames = reference_codes.size() / engine::kCodebooks;
      for (std::size_t i = 0; i < frames; ++i) {
        engine::CodeFrame codes{};
        for (std::size_t q = 0; q < codes.size(); ++q) codes[q] = static_cast<std::uint16_t>(reference_codes[q * frames + i]);
        add([&](std::span<float> input) { gpt.embed_codes(codes, input); });
      }
    }
    plan.back().head = head;
    drawing[b] = plan.size() - 1;
  }

  const std::uint32_t steps = entry.at("steps");
  for (std::uint32_t step = 0; step < steps; ++step) {
    gpt.forward(plan);
    for (std::size_t b = 0; b < batch; ++b) {
      Row& row = rows[b];
      if (row.finished) continue;
      for (std::uint32_t q = 0; q < codebooks; ++q) {
        const auto& temperature = parameters.at("temperature");
        const auto token =
            sampler.sample({.logits = gpt.logits(drawing[b]).subspan(q * vocabulary, vocabulary),
                            .temperature = temperature.is_array() ? temperature.at(q).get<float>() : temperature.get<float>(),
                            .repetition_penalty = parameters.at("repetition_penalty").get<float>(),
                            .top_p = parameters.at("top_P"),
                            .top_k = parameters.at("top_K"),
                            .forbidden = step < parameters.at("min_new_token") ? std::optional(end_token) : std::nullopt,
                            .greedy = entry.at("greedy"),
                            .step = step,
                            .codebook = q,
                            .recent = row.recent[q].tokens()},
                           noise[b]);
        ASSERT_TRUE(token.has_value());
        ASSERT_EQ(*token, static_cast<std::uint32_t>(expected[(step * batch + b) * codebooks + q]))
            << "step " << step << ", row " << b << ", codebook " << q;
        row.recent[q].push(*token);
        row.codes[q] = static_cast<std::uint16_t>(*token);
        row.token = static_cast<std::int32_t>(*token);
        row.finished |= *token == end_token;
      }
      if (row.finished) continue;
      if (!text_stage) {
        const std::string tensor = "hidden_" + std::to_string(b);
        const std::vector<float> hidden = golden.floats(tensor);
        expect_close(gpt.hidden(drawing[b]), std::span(hidden).subspan(row.length * gpt.hidden_size(), gpt.hidden_size()), kHiddenTolerance,
                     tensor);
      }
      ++row.length;
    }
    plan.clear();
    for (std::size_t b = 0; b < batch; ++b) {
      if (rows[b].finished) continue;
      drawing[b] = plan.size();
      if (text_stage) {
        gpt.embed_text(rows[b].token, gpt.input(plan.size()));
      } else {
        gpt.embed_codes(rows[b].codes, gpt.input(plan.size()));
      }
      plan.push_back({.slot = static_cast<std::uint32_t>(b), .position = rows[b].position++, .head = head});
    }
    if (plan.empty()) break;
  }
  for (std::size_t b = 0; b < batch; ++b) {
    EXPECT_EQ(rows[b].length, entry.at("lens")[b]) << "row " << b;
    EXPECT_EQ(golden.shape("ids_" + std::to_string(b))[0], rows[b].length);
  }
}

TEST(GenerationGolden, GreedyAlone) { replay("greedy_b1", "gen_greedy_b1"); }
TEST(GenerationGolden, GreedyInABatch) { replay("greedy_b3", "gen_greedy_b3"); }
TEST(GenerationGolden, SameNoiseAtEachStep) { replay("manual_seed_b1", "gen_manual_seed_b1"); }
TEST(GenerationGolden, StrongPenaltyAndMinimumLength) { replay("global_seed_b3", "gen_global_seed_b3"); }
TEST(GenerationGolden, ReferenceAudioInThePrompt) { replay("zero_shot_b1", "gen_zero_shot_b1"); }
TEST(GenerationGolden, OneTemperatureForEachCodebook) { replay("no_speaker_temp_list", "gen_no_speaker_temp_list"); }
TEST(GenerationGolden, RowsEndOnTheirOwn) {
  replay("natural_eos_b3", "gen_natural_eos_b3", ChangedWeight{"head_code.0.parametrizations.weight.original0", 625, 6.0F});
}

TEST(GenerationGolden, RefineGreedy) { replay("refine_greedy_b1", "refine_greedy_b1"); }
TEST(GenerationGolden, RefineSampled) { replay("refine_global_seed_b3", "refine_global_seed_b3"); }
TEST(GenerationGolden, RefineRowsEndOnTheirOwn) {
  replay("refine_natural_eos_b3", "refine_natural_eos_b3", ChangedWeight{"head_text.parametrizations.weight.original0", 237, 7.0F});
}

}  // namespace
}  // namespace tts::model
