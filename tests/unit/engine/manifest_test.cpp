#include "tts/engine/manifest.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace tts::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ManifestTest : public ::testing::Test {
 protected:
  ManifestTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    base_ = fs::temp_directory_path() / ("tts_manifest_" + std::string(test->name()) + "_" + std::to_string(::getpid()));
    folder_ = base_ / "model";
    fs::create_directories(folder_ / "sub");
    std::ifstream stream(TTS_SOURCE_DIR "/models/nano/manifest.json");
    document_ = json::parse(stream);
    for (auto& [role, entry] : document_["files"].items()) {
      write(folder_ / role, "12345");
      entry.update({{"path", role}, {"bytes", 5}});
    }
  }
  ~ManifestTest() override { fs::remove_all(base_); }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

  std::string error_of_text(const std::string& text) const {
    write(folder_ / "manifest.json", text);
    try {
      read_manifest(folder_);
      return {};
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

  // The message after `change` to a valid document; empty when it is still accepted.
  std::string error_after(const std::function<void(json&)>& change) const {
    json changed = document_;
    change(changed);
    return error_of_text(changed.dump());
  }

  std::string error_with(const char* pointer, const json& value) const {
    return error_after([&](json& j) { j[json::json_pointer(pointer)] = value; });
  }

  fs::path base_, folder_;
  json document_;
};

TEST_F(ManifestTest, ReadsTheBundledModel) {
  const Manifest m = read_manifest(TTS_SOURCE_DIR "/models/nano");
  EXPECT_EQ(m.name, "nano");
  EXPECT_EQ(m.license, "Apache-2.0");
  EXPECT_EQ(m.front_end, TextFrontEndKind::kPhones);
  EXPECT_EQ(m.speaker_precision, SpeakerPrecision::kFloat32);
  EXPECT_EQ(m.architecture.gpt.hidden_size, 256U);
  EXPECT_EQ(m.architecture.gpt.num_hidden_layers, 8U);
  EXPECT_EQ(m.architecture.decoder.hidden, 192U);
  EXPECT_EQ(m.architecture.dvae_encoder.odim, 256U);
  EXPECT_EQ(m.architecture.dvae_decoder.idim, 128U);
  EXPECT_THAT(m.architecture.quantizer.levels, ElementsAre(5, 5, 5, 5));
  EXPECT_EQ(m.architecture.vocos.intermediate_dim, 768U);
  EXPECT_EQ(m.files.at("gpt").bytes, fs::file_size(m.files.at("gpt").path));
  ASSERT_EQ(m.voices.size(), 2U);
  EXPECT_EQ(m.voices[0].id, m.default_voice);
  EXPECT_EQ(m.voices[0].speaker_kind, SpeakerKind::kTensor);
  EXPECT_EQ(m.voices[0].speaker_value, "zf_xiaobei");
  EXPECT_THAT(m.voices[0].languages, ElementsAre("zh", "en"));
  EXPECT_FLOAT_EQ(m.sampling.temperature[3], 0.3F);
  EXPECT_EQ(m.sampling.min_steps, 8U);
  EXPECT_EQ(m.max_prompt_tokens, 400U);
}

TEST_F(ManifestTest, AcceptsWhatTheTestsStartFrom) { EXPECT_EQ(error_of_text(document_.dump()), ""); }

TEST_F(ManifestTest, ListsEveryProblemAtOnce) {
  const std::string error = error_after([](json& j) {
    j["format"] = 2;
    j["architecture"]["gpt"].erase("hidden_size");
    j["architecture"]["vocos"]["dim"] = -1;
    j["files"].erase("dvae");
    j["files"]["gpt"]["bytes"] = 6;
    j["files"]["embed"]["path"] = "../outside";
    j["voices"][1]["id"] = "xiaobei";
    j["default_voice"] = "nobody";
    j["sampling"]["top_p"] = 1.5;
  });
  for (const char* part : {"format: must be", "architecture.gpt.hidden_size: is missing", "architecture.vocos.dim: must be",
                           "files.dvae: is missing", "files.gpt.bytes: 'gpt' has 5 bytes, expected 6", "files.embed.path: must stay",
                           "voices[1].id: occurs twice", "default_voice: is not the id", "sampling.top_p: must be"}) {
    EXPECT_THAT(error, HasSubstr(part));
  }
}

TEST_F(ManifestTest, RefusesPathsThatLeaveTheFolder) {
  write(base_ / "secret", "12345");
  for (const std::string& path : {std::string("/etc/hostname"), std::string("../secret"), std::string("sub/../../secret"),
                                  std::string("./gpt"), std::string("sub//gpt"), std::string("sub\\gpt"), std::string("gpt\0x", 5),
                                  std::string("sub"), std::string("absent"), std::string("gpt/"), std::string()}) {
    EXPECT_THAT(error_with("/files/gpt/path", path), HasSubstr("files.gpt.path")) << path;
  }
  fs::create_symlink("../secret", folder_ / "link");
  EXPECT_THAT(error_with("/files/gpt/path", "link"), HasSubstr("outside the model's folder"));
  fs::create_directory_symlink(base_, folder_ / "up");
  EXPECT_THAT(error_with("/files/gpt/path", "up/secret"), HasSubstr("outside the model's folder"));
  fs::create_symlink("gpt", folder_ / "inner");
  EXPECT_EQ(error_with("/files/gpt/path", "inner"), "");
}

TEST_F(ManifestTest, BoundsEverySize) {
  for (const char* pointer : {"/architecture/sample_rate",
                              "/architecture/n_fft",
                              "/architecture/hop",
                              "/architecture/n_mels",
                              "/architecture/gpt/hidden_size",
                              "/architecture/gpt/intermediate_size",
                              "/architecture/gpt/num_hidden_layers",
                              "/architecture/gpt/num_attention_heads",
                              "/architecture/gpt/num_key_value_heads",
                              "/architecture/gpt/max_position_embeddings",
                              "/architecture/gpt/num_text_tokens",
                              "/architecture/gpt/num_audio_tokens",
                              "/architecture/gpt/num_vq",
                              "/architecture/decoder/idim",
                              "/architecture/decoder/odim",
                              "/architecture/decoder/hidden",
                              "/architecture/decoder/n_layer",
                              "/architecture/decoder/bn_dim",
                              "/architecture/dvae/encoder/hidden",
                              "/architecture/dvae/decoder/n_layer",
                              "/architecture/dvae/vq/dim",
                              "/architecture/dvae/vq/G",
                              "/architecture/dvae/vq/R",
                              "/architecture/vocos/dim",
                              "/architecture/vocos/intermediate_dim",
                              "/architecture/vocos/num_layers",
                              "/sampling/max_steps",
                              "/limits/max_prompt_tokens"}) {
    for (const json& value : {json(0), json(-1), json(1.5), json("1"), json(nullptr), json(4294967297U), json(18446744073709551615U)}) {
      EXPECT_NE(error_with(pointer, value), "") << pointer << " = " << value;
    }
  }
}

TEST_F(ManifestTest, ChecksThatTheNetworksFitTogether) {
  EXPECT_THAT(error_with("/architecture/hop", 128), HasSubstr("n_fft must be 4 * hop"));
  EXPECT_THAT(error_with("/architecture/decoder/idim", 127), HasSubstr("decoder.idim must be half"));
  EXPECT_THAT(error_with("/architecture/dvae/decoder/idim", 127), HasSubstr("dvae.decoder.idim must be half"));
  EXPECT_THAT(error_with("/architecture/dvae/encoder/odim", 255), HasSubstr("dvae.encoder.odim"));
  EXPECT_THAT(error_with("/architecture/dvae/vq/G", 1), HasSubstr("dvae.vq.G"));
  EXPECT_THAT(error_with("/architecture/gpt/num_audio_tokens", 625), HasSubstr("num_audio_tokens"));
  EXPECT_THAT(error_with("/architecture/dvae/vq/levels", json::array({255, 255, 255, 255, 255, 255})), HasSubstr("num_audio_tokens"));
  EXPECT_THAT(error_with("/architecture/gpt/num_attention_heads", 3), HasSubstr("num_attention_heads"));
  EXPECT_THAT(error_with("/architecture/gpt/num_key_value_heads", 3), HasSubstr("num_key_value_heads"));
  EXPECT_THAT(error_with("/limits/max_prompt_tokens", 2000), HasSubstr("max_position_embeddings"));
}

TEST_F(ManifestTest, ChecksVoicesAndSampling) {
  EXPECT_THAT(error_with("/voices", json::array()), HasSubstr("at least one"));
  EXPECT_THAT(error_with("/voices/0/id", "a b"), HasSubstr("voices[0].id"));
  EXPECT_THAT(error_with("/voices/0/speaker/kind", "other"), HasSubstr("voices[0].speaker.kind"));
  EXPECT_THAT(error_with("/voices/0/speaker", json{{"kind", "seed"}, {"value", "12x"}}), HasSubstr("decimal seed"));
  EXPECT_THAT(error_with("/voices/0/speaker", json{{"kind", "seed"}, {"value", "18446744073709551616"}}), HasSubstr("decimal seed"));
  EXPECT_THAT(error_with("/voices/0/speaker", json{{"kind", "seed"}, {"value", 7}}), HasSubstr("files.speaker_stat: is missing"));
  EXPECT_EQ(error_with("/voices/0/speaker", json{{"kind", "none"}}), "");
  EXPECT_THAT(error_with("/sampling/min_steps", 701), HasSubstr("min_steps"));
  EXPECT_THAT(error_with("/sampling/temperature", 0), HasSubstr("temperature"));
  EXPECT_THAT(error_with("/sampling/temperature", json::array({0.1, 0.2})), HasSubstr("temperature"));
  EXPECT_EQ(error_with("/sampling/temperature", json::array({0.1, 0.2, 0.3, 0.4})), "");
  EXPECT_THAT(error_with("/files/gpt/sha256", std::string(64, 'G')), HasSubstr("sha256"));
  EXPECT_THAT(error_with("/text/front_end", "chattts"), HasSubstr("files.tokenizer: is missing"));
}

TEST_F(ManifestTest, ATemperatureListIsPerCodebook) {
  json changed = document_;
  changed["sampling"]["temperature"] = {0.1, 0.2, 0.3, 0.4};
  write(folder_ / "manifest.json", changed.dump());
  EXPECT_THAT(read_manifest(folder_).sampling.temperature, ElementsAre(0.1F, 0.2F, 0.3F, 0.4F));
}

TEST_F(ManifestTest, RefusesWhatIsNotStrictJson) {
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"), std::string("null"), document_.dump() + "x",
                                  std::string("{\"a\":\"\xff\"}"), document_.dump() + std::string("\0", 1)}) {
    EXPECT_NE(error_of_text(text), "") << text.substr(0, 40);
  }
  std::string twice = document_.dump();
  twice.insert(1, "\"name\":\"other\",");
  EXPECT_THAT(error_of_text(twice), HasSubstr("occurs twice"));
  EXPECT_THAT(error_of_text(std::string(100000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of_text(document_.dump() + std::string(2U << 20, ' ')), HasSubstr("larger than"));
}

TEST_F(ManifestTest, NamesTheFolderThatIsNotThere) {
  EXPECT_THROW(read_manifest(base_ / "nothing"), std::runtime_error);
  EXPECT_THROW(read_manifest(folder_ / "sub"), std::runtime_error);
}

TEST_F(ManifestTest, SurvivesArbitraryDamage) {
  const std::string good = document_.dump();
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    std::string text = good;
    for (auto flips = 1 + random() % 4; flips > 0; --flips) text[random() % text.size()] = static_cast<char>(random());
    refused += error_of_text(text).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 150);
}

TEST_F(ManifestTest, SurvivesEveryValueBeingOfAnotherType) {
  const json flat = document_.flatten();
  for (const auto& [pointer, unused] : flat.items()) {
    for (const json& value : {json(nullptr), json(1e300), json::array({1}), json::object({{"a", 1}})}) {
      error_with(pointer.c_str(), value);  // must return, whatever it says
    }
  }
}

}  // namespace
}  // namespace tts::engine
