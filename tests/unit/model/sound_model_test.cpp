#include "sound_model.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tts::model {
namespace {

using ::testing::HasSubstr;

std::string load_error(const engine::Manifest& manifest, bool verify = false) {
  try {
    load_sound_model(manifest, verify, ops::WeightFormat::kFloat32);
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

engine::Manifest nano() { return engine::read_manifest(TTS_SOURCE_DIR "/models/nano"); }

TEST(SoundModel, ReportsTheProblemsOfAllFilesTogether) {
  engine::Manifest manifest = nano();
  manifest.files.erase("decoder");
  manifest.architecture.dvae_decoder.hidden += 1;
  manifest.architecture.vocos.num_layers -= 1;
  const std::string error = load_error(manifest);
  EXPECT_THAT(error, HasSubstr("'decoder'"));
  EXPECT_THAT(error, HasSubstr("dvae.safetensors"));
  EXPECT_THAT(error, HasSubstr("'decoder.conv_in.2.weight' has shape"));
  EXPECT_THAT(error, HasSubstr("'backbone.convnext.5.gamma' is not part of this model"));
}

TEST(SoundModel, ChecksHashesWhenAsked) {
  engine::Manifest manifest = nano();
  EXPECT_EQ(load_error(manifest, true), "");
  manifest.files["vocos"].sha256 = std::string(64, '0');
  EXPECT_THAT(load_error(manifest, true), HasSubstr("SHA-256"));
  EXPECT_EQ(load_error(manifest, false), "");
}

TEST(SoundModel, RefusesAnotherQuantiser) {
  engine::Manifest manifest = nano();
  manifest.architecture.quantizer.levels = {5, 5, 5};
  EXPECT_THAT(load_error(manifest), HasSubstr("quantiser"));
}

// The DVAE's weights come with the first request that needs them, from a file that may have changed since the start.
class DvaeTest : public ::testing::Test {
 protected:
  DvaeTest() {
    path_ = std::filesystem::path(::testing::TempDir()) / ("dvae_" + std::to_string(::getpid()) + ".safetensors");
    std::filesystem::copy_file(manifest_.files.at("dvae").path, path_, std::filesystem::copy_options::overwrite_existing);
    manifest_.files.at("dvae").path = path_;
  }
  ~DvaeTest() override { std::filesystem::remove(path_); }

  engine::Manifest manifest_ = nano();
  std::filesystem::path path_;
};

TEST_F(DvaeTest, SizesAreKnownBeforeTheWeights) {
  const Dvae dvae(manifest_, true, ops::WeightFormat::kBfloat16);
  const std::vector<ContextSpec> before(dvae.contexts().begin(), dvae.contexts().end());
  const MelNetwork& decoder = dvae.decoder();
  EXPECT_EQ(&decoder, &dvae.decoder());
  ASSERT_EQ(before.size(), decoder.contexts().size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].pad, decoder.contexts()[i].pad);
    EXPECT_EQ(before[i].width, decoder.contexts()[i].width);
  }
  EXPECT_EQ(dvae.inputs(), decoder.inputs());
  EXPECT_EQ(dvae.max_width(), decoder.max_width());
  EXPECT_EQ(dvae.max_inner(), decoder.max_inner());
}

TEST_F(DvaeTest, AFileThatIsGoneOrAnotherIsAnErrorEachTimeAndNothingMore) {
  const Dvae dvae(manifest_, true, ops::WeightFormat::kFloat32);
  const std::filesystem::path kept = path_.string() + ".kept";
  std::filesystem::rename(path_, kept);
  EXPECT_THROW(dvae.decoder(), std::runtime_error);
  EXPECT_THROW(dvae.encoder(), std::runtime_error);
  std::filesystem::copy_file(nano().files.at("vocos").path, path_);
  EXPECT_THROW(dvae.decoder(), std::runtime_error);
  EXPECT_THROW(dvae.encoder(), std::runtime_error);
  std::filesystem::rename(kept, path_);
  EXPECT_NO_THROW(dvae.decoder());
  EXPECT_NO_THROW(dvae.encoder());
}

class ReferenceEncoderTest : public ::testing::Test {
 protected:
  Result<std::vector<engine::CodeFrame>> encode(const std::vector<float>& pcm) {
    return model_.dvae->encoder().encode(pool_, model_.dvae->quantizer(), pcm);
  }

  SoundModel model_ = load_sound_model(nano(), false, ops::WeightFormat::kFloat32);
  ops::ComputePool pool_{2};
};

TEST_F(ReferenceEncoderTest, GivesOneFrameForTwoHops) {
  for (const std::size_t samples : {1024U, 5000U, 24000U}) {
    std::vector<float> pcm(samples);
    for (std::size_t i = 0; i < samples; ++i) pcm[i] = 0.3F * std::sin(0.05F * static_cast<float>(i));
    const auto codes = encode(pcm);
    ASSERT_TRUE(codes.ok()) << codes.error().message;
    EXPECT_EQ(codes->size(), (1 + samples / 256) / 2);
    for (const engine::CodeFrame& frame : *codes) {
      for (const std::uint16_t code : frame) EXPECT_LT(code, Gfsq::kCodes);
    }
  }
}

TEST_F(ReferenceEncoderTest, RefusesWhatItCannotEncode) {
  EXPECT_EQ(encode({}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(encode(std::vector<float>(1023)).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(encode(std::vector<float>(static_cast<std::size_t>(kMaxReferenceSeconds * 24000) + 1)).error().code, ErrorCode::kTooLarge);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> pcm(4000);
    pcm[1234] = bad;
    EXPECT_EQ(encode(pcm).error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(encode(std::vector<float>(4000, 1e38F)).error().code, ErrorCode::kEngineFailure);
}

}  // namespace
}  // namespace tts::model
