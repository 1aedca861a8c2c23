// From prompt tokens to samples, as the reference's infer() gave them: language model, sampler with the recorded noise, Decoder, Vocos.
// Tolerance: 1e-5 on samples (values to 0.5).

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "golden_gpt.h"
#include "gpt.h"
#include "ops/compute_pool.h"
#include "sampler.h"
#include "sound_model.h"
#include "stream_decoder.h"
#include "support/golden_data.h"

namespace tts::model {
namespace {

using testing::golden_manifest;
using testing::GoldenFile;
using testing::max_difference;

constexpr float kAudioTolerance = 1e-5F;
constexpr std::uint32_t kChunk = 8;

// The reference re-seeds before each draw, so one table serves every step.
class SameNoiseEachStep final : public NoiseSource {
 public:
  SameNoiseEachStep(const GoldenFile& file, const std::string& tensor, std::size_t batch_row)
      : table_(file.floats(tensor)), width_(file.shape(tensor)[1]), first_(batch_row * engine::kCodebooks) {}

  float exponential(std::uint32_t, std::uint32_t codebook, std::uint32_t token) const noexcept override {
    return table_[(first_ + codebook) * width_ + token];
  }

 private:
  std::vector<float> table_;
  std::size_t width_, first_;
};

class EndToEnd : public ::testing::Test {
 protected:
  EndToEnd()
      : gpt_weights_(load_golden_gpt()),
        sound_(load_sound_model(golden_manifest(), false, ops::WeightFormat::kFloat32)),
        gpt_(gpt_weights_, pool_, {.slots = 1, .positions = 128, .rows = 64}),
        decoder_(sound_, pool_, {.slots = 1, .max_steps = kChunk}) {}

  // Generates `steps` steps with the reference's default parameters and decodes them as they come.
  std::vector<float> speak(std::size_t text, const NoiseSource& noise, std::uint32_t steps) {
    const nlohmann::json prompts = golden_json("gen_prompts.json");
    const std::vector<std::int32_t> prompt = prompts.at("cases").at("greedy_b3").at("rows").at(text);
    const std::vector<float> speaker = golden_speaker(1);
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      if (prompt[i] == prompts.at("spk_emb")) {
        std::copy(speaker.begin(), speaker.end(), gpt_.input(i).begin());
      } else {
        gpt_.embed_text(prompt[i], gpt_.input(i));
      }
    }
    std::vector<GptRow> rows(prompt.size());
    for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i] = {0, i, GptHead::kNone};
    rows.back().head = GptHead::kCode;
    gpt_.forward(rows);

    std::array<TokenWindow, engine::kCodebooks> recent;
    std::vector<float> pending, out, pcm;
    auto position = static_cast<std::uint32_t>(prompt.size());
    std::size_t row = prompt.size() - 1;
    decoder_.open(0, engine::MelPath::kHidden);
    for (std::uint32_t step = 0; step < steps; ++step) {
      const std::span<const float> hidden = gpt_.hidden(row);
      pending.insert(pending.end(), hidden.begin(), hidden.end());
      engine::CodeFrame codes{};
      for (std::uint32_t q = 0; q < engine::kCodebooks; ++q) codes[q] = static_cast<std::uint16_t>(draw(row, q, step, recent[q], noise));
      if ((step + 1) % kChunk == 0 || step + 1 == steps) {
        decode(pending, step + 1 == steps, pcm, out);
        pending.clear();
      }
      gpt_.embed_codes(codes, gpt_.input(0));
      const GptRow next{0, position++, GptHead::kCode};
      gpt_.forward({&next, 1});
      row = 0;
    }
    return out;
  }

 private:
  std::uint32_t draw(std::size_t row, std::uint32_t codebook, std::uint32_t step, TokenWindow& recent, const NoiseSource& noise) {
    const std::size_t vocabulary = gpt_weights_.sizes.num_audio_tokens;
    Sampler sampler(vocabulary);
    const std::optional<std::uint32_t> token = sampler.sample({.logits = gpt_.logits(row).subspan(codebook * vocabulary, vocabulary),
                                                               .temperature = 0.3F,
                                                               .repetition_penalty = 1.05F,
                                                               .top_p = 0.7F,
                                                               .top_k = 20,
                                                               .forbidden = static_cast<std::uint32_t>(vocabulary - 1),
                                                               .step = step,
                                                               .codebook = codebook,
                                                               .recent = recent.tokens()},
                                                              noise);
    recent.push(token.value());
    return token.value();
  }

  void decode(const std::vector<float>& hidden, bool last, std::vector<float>& pcm, std::vector<float>& out) {
    DecodePush push;
    push.steps = static_cast<std::uint32_t>(hidden.size() / gpt_.hidden_size());
    push.last = last;
    push.hidden = hidden.data();
    pcm.resize(decoder_.max_samples(push.steps));
    push.pcm = pcm;
    decoder_.push({&push, 1});
    out.insert(out.end(), pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(push.samples));
  }

  ops::ComputePool pool_{2};
  GptWeights gpt_weights_;
  SoundModel sound_;
  Gpt gpt_;
  StreamDecoder decoder_;
};

TEST_F(EndToEnd, ThreeTextsAsInfer) {
  const GoldenFile golden("e2e_wav"), noise("e2e_noise");
  const std::vector<float> raw = golden.floats("raw");
  const std::size_t samples = golden.shape("raw")[1];
  // All rows ran for 30 steps, so none of them was padded.
  ASSERT_EQ(samples, (2 * 30 - 1) * 256U);
  for (std::size_t text = 0; text < golden.shape("raw")[0]; ++text) {
    const std::vector<float> ours = speak(text, SameNoiseEachStep(noise, "wav", text), 30);
    EXPECT_LE(max_difference(ours, std::span(raw).subspan(text * samples, samples)), kAudioTolerance) << text;
  }
}

TEST_F(EndToEnd, StreamedChunksJoined) {
  const GoldenFile golden("e2e_stream"), noise("e2e_noise");
  std::vector<float> joined;
  for (int i = 0; golden.has("chunk_" + std::to_string(i)); ++i) {
    const std::vector<float> chunk = golden.floats("chunk_" + std::to_string(i));
    joined.insert(joined.end(), chunk.begin(), chunk.end());
  }
  EXPECT_LE(max_difference(speak(0, SameNoiseEachStep(noise, "stream", 0), 44), joined), kAudioTolerance);
}

}  // namespace
}  // namespace tts::model
