// Decoder, DVAE, quantiser and Vocos against the reference's numbers. Tolerances: mel and audio 1e-5, log-mel 2e-4, codes exact.

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "inverse_stft.h"
#include "ops/compute_pool.h"
#include "sound_model.h"
#include "stream_rows.h"
#include "support/golden_data.h"

namespace tts::model {
namespace {

using testing::code_frames;
using testing::golden_manifest;
using testing::GoldenFile;
using testing::max_difference;
using testing::time_first;

constexpr float kMelTolerance = 1e-5F, kAudioTolerance = 1e-5F, kLogMelTolerance = 2e-4F, kEncoderTolerance = 1e-4F;

class GoldenSound : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = std::make_unique<SoundModel>(load_sound_model(golden_manifest(), false, ops::WeightFormat::kFloat32));
  }
  static void TearDownTestSuite() { model_.reset(); }

  // Runs a whole [rows, width] matrix through a network.
  template <class Network>
  std::vector<float> run(const Network& network, const std::vector<float>& in, std::size_t width) {
    const std::size_t count = in.size() / width;
    StreamRows rows({.rows = count + total_pad(network.contexts()) + 2 * max_pad(network.contexts()),
                     .width = network.max_width(),
                     .inner = network.max_inner(),
                     .segments = 1});
    StreamState state(network.contexts());
    rows.clear(width);
    std::copy(in.begin(), in.end(), rows.append({.rows = {.rows = count}, .last = true}));
    network.forward(pool_, rows, std::span(&state, 1));
    const StreamRows::Run& made = rows.segments().front().rows;
    return {rows.row(made.first), rows.row(made.first + made.rows)};
  }

  std::vector<float> embed(const std::vector<engine::CodeFrame>& frames) const {
    std::vector<float> out(frames.size() * model_->dvae->quantizer().dim());
    for (std::size_t t = 0; t < frames.size(); ++t) model_->dvae->quantizer().embed(frames[t], out.data() + t * model_->dvae->quantizer().dim());
    return out;
  }

  static std::unique_ptr<SoundModel> model_;
  ops::ComputePool pool_{2};
};

std::unique_ptr<SoundModel> GoldenSound::model_;

TEST_F(GoldenSound, DecoderTurnsHiddenStatesIntoMel) {
  const GoldenFile golden("decoder");
  const std::vector<float> hidden = golden.floats("hidden_in"), mel = golden.floats("mel");
  const std::size_t steps = golden.shape("hidden_in")[2];
  for (std::size_t b = 0; b < golden.shape("mel")[0]; ++b) {
    const std::vector<float> rows = time_first(hidden, b, 64, steps);
    EXPECT_EQ(max_difference(rows, time_first(golden.floats("interleaved"), b, 32, 2 * steps)), 0);
    EXPECT_LE(max_difference(run(model_->decoder, rows, 32), time_first(mel, b, 100, 2 * steps)), kMelTolerance);
  }
}

TEST_F(GoldenSound, DvaeTurnsCodesIntoMel) {
  const GoldenFile golden("dvae_decode");
  const std::vector<std::int32_t> ids = golden.ints("ids");
  const std::vector<float> mel = golden.floats("mel");
  const std::size_t steps = golden.shape("ids")[2];
  for (std::size_t b = 0; b < golden.shape("ids")[0]; ++b) {
    const std::vector<float> embedded = embed(code_frames(ids, b, steps));
    EXPECT_LE(max_difference(run(model_->dvae->decoder(), embedded, 24), time_first(mel, b, 100, 2 * steps)), kMelTolerance);
  }
}

TEST_F(GoldenSound, QuantizerEmbedsAsInTheFamilyTheModelWasTrainedWith) {
  const GoldenFile golden("gfsq");
  const std::vector<std::int32_t> ids = golden.ints("ids");
  const std::size_t steps = golden.shape("ids")[2], dim = model_->dvae->quantizer().dim();
  for (std::size_t b = 0; b < golden.shape("ids")[0]; ++b) {
    const std::vector<float> embedded = embed(code_frames(ids, b, steps));
    EXPECT_LE(max_difference(embedded, time_first(golden.floats("embed_vqp_1.17.8"), b, dim, steps)), 1e-6F);
    EXPECT_GT(max_difference(embedded, time_first(golden.floats("embed_vqp_1.32.0"), b, dim, steps)), 1e-2F);
  }
}

TEST_F(GoldenSound, QuantizerDigitsAreTheRecordedTable) {
  const std::vector<float> table = GoldenFile("gfsq").floats("code_table");
  for (unsigned code = 0; code < Gfsq::kCodes; ++code) {
    const auto digits = Gfsq::digits(code);
    for (std::size_t k = 0; k < Gfsq::kDigits; ++k) EXPECT_EQ(digits[k], table[code * Gfsq::kDigits + k]) << code;
  }
}

TEST_F(GoldenSound, QuantizerEncodesAsInTheFamilyTheModelWasTrainedWith) {
  const GoldenFile golden("gfsq");
  const std::size_t steps = golden.shape("encode_in")[2], dim = model_->dvae->quantizer().dim();
  const std::vector<float> rows = time_first(golden.floats("encode_in"), 0, dim, steps);
  const std::vector<engine::CodeFrame> expected = code_frames(golden.ints("encode_ids_vqp_1.17.8"), 0, steps);
  for (std::size_t t = 0; t < steps; ++t) EXPECT_EQ(model_->dvae->quantizer().encode(rows.data() + t * dim), expected[t]) << t;
}

TEST_F(GoldenSound, EncoderTurnsARecordingIntoCodes) {
  const GoldenFile golden("dvae_encode");
  const std::vector<float> wav = golden.floats("wav");
  const std::vector<float> mel = model_->dvae->encoder().log_mel(pool_, wav);
  std::vector<float> unscaled = mel;  // recorded before the division by coef
  for (std::size_t i = 0; i < unscaled.size(); ++i) unscaled[i] *= model_->dvae->decoder().coef()[i % 100];
  EXPECT_LE(max_difference(unscaled, time_first(golden.floats("preprocessor_mel"), 0, 100, golden.shape("preprocessor_mel")[1])),
            kLogMelTolerance);

  const std::size_t steps = golden.shape("encoder")[2];
  const std::vector<float> vectors = model_->dvae->encoder().encode_mel(pool_, mel);
  EXPECT_LE(max_difference(vectors, time_first(golden.floats("encoder"), 0, model_->dvae->quantizer().dim(), steps)), kEncoderTolerance);

  const auto codes = model_->dvae->encoder().encode(pool_, model_->dvae->quantizer(), wav);
  ASSERT_TRUE(codes.ok()) << codes.error().message;
  EXPECT_EQ(*codes, code_frames(golden.ints("ids_vqp_1.17.8"), 0, steps));
}

TEST_F(GoldenSound, VocosTurnsMelIntoAudio) {
  const GoldenFile golden("vocos");
  const std::vector<float> mel = golden.floats("mel"), audio = golden.floats("audio");
  const std::size_t frames = golden.shape("mel")[2], samples = golden.shape("audio")[1];
  ASSERT_EQ(samples, (frames - 1) * 256);
  InverseStft inverse(model_->vocos.window(), model_->vocos.hop(), pool_.workers());
  for (std::size_t b = 0; b < golden.shape("mel")[0]; ++b) {
    StreamRows rows({.rows = frames + total_pad(model_->vocos.contexts()) + 6,
                     .width = model_->vocos.max_width(),
                     .inner = model_->vocos.max_inner(),
                     .segments = 1});
    StreamState state(model_->vocos.contexts());
    rows.clear(100);
    const std::vector<float> in = time_first(mel, b, 100, frames);
    std::copy(in.begin(), in.end(), rows.append({.rows = {.rows = frames}, .last = true}));
    model_->vocos.forward(pool_, rows, std::span(&state, 1));
    const std::vector<float> head(rows.row(0), rows.row(frames));
    const std::vector<float> expected_head = golden.floats("head.out");
    EXPECT_LE(max_difference(head, std::span(expected_head).subspan(b * frames * 1026, frames * 1026)), kMelTolerance);
    inverse.to_time(pool_, rows);
    InverseStft::Tail tail = inverse.make_tail();
    std::vector<float> out((frames + 1) * 256);
    out.resize(inverse.overlap_add(rows.row(0), frames, true, {}, tail, out.data()));
    EXPECT_LE(max_difference(out, std::span(audio).subspan(b * samples, samples)), kAudioTolerance);
  }
}

}  // namespace
}  // namespace tts::model
