#include "voices.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tts/base/sha256.h"

#include "base16384.h"
#include "speaker.h"

namespace tts::model {
namespace {

using ::testing::HasSubstr;

// The bundled model with other voices; its speakers file holds two tensors.
class VoicesTest : public ::testing::Test {
 protected:
  VoicesTest() : manifest_(engine::read_manifest(TTS_SOURCE_DIR "/models/nano")) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    statistics_path_ =
        std::filesystem::temp_directory_path() / ("tts_voices_" + std::string(test->name()) + "_" + std::to_string(::getpid()));
    manifest_.voices.clear();
  }
  ~VoicesTest() override { std::filesystem::remove(statistics_path_); }

  void add(const std::string& id, engine::SpeakerKind kind, const std::string& value) {
    engine::ManifestVoice voice;
    voice.id = id;
    voice.title = "title of " + id;
    voice.speaker_kind = kind;
    voice.speaker_value = value;
    manifest_.voices.push_back(voice);
  }

  void write_statistics(const std::string& text) {
    std::ofstream(statistics_path_, std::ios::binary) << text;
    manifest_.files["speaker_stat"] = {statistics_path_, sha256_file_hex(statistics_path_), text.size()};
  }

  std::string error(bool verify = true) const {
    try {
      load_voices(manifest_, verify);
      return {};
    } catch (const std::runtime_error& thrown) {
      return thrown.what();
    }
  }

  engine::Manifest manifest_;
  std::filesystem::path statistics_path_;
};

TEST_F(VoicesTest, ResolvesEveryKind) {
  const std::vector<float> spoken(256, 0.5F);
  write_statistics(encode_base16384(std::vector<std::uint8_t>(1024, 0x3C)) + "\n");
  add("none", engine::SpeakerKind::kNone, "");
  add("tensor", engine::SpeakerKind::kTensor, "af_heart");
  add("string", engine::SpeakerKind::kString, format_speaker_string(spoken));
  add("seed", engine::SpeakerKind::kSeed, "42");
  const std::vector<engine::Voice> voices = load_voices(manifest_, true);
  ASSERT_EQ(voices.size(), 4U);
  EXPECT_EQ(voices[0].speaker, nullptr);
  EXPECT_EQ(voices[0].title, "title of none");
  EXPECT_EQ(voices[1].speaker->size(), 256U);
  EXPECT_EQ(*voices[2].speaker, spoken);
  const auto statistics = parse_speaker_statistics(encode_base16384(std::vector<std::uint8_t>(1024, 0x3C)), 256);
  EXPECT_EQ(*voices[3].speaker, random_speaker(*statistics, 42));
}

TEST_F(VoicesTest, ListsEveryVoiceThatCannotBeResolved) {
  add("a", engine::SpeakerKind::kTensor, "nobody");
  add("b", engine::SpeakerKind::kString, "not a speaker");
  add("c", engine::SpeakerKind::kSeed, "1");
  const std::string text = error();
  EXPECT_THAT(text, HasSubstr("voice 'a'"));
  EXPECT_THAT(text, HasSubstr("'nobody' is missing"));
  EXPECT_THAT(text, HasSubstr("voice 'b'"));
  EXPECT_THAT(text, HasSubstr("'speaker_stat'"));
}

TEST_F(VoicesTest, ChecksHashesWhenAsked) {
  write_statistics(encode_base16384(std::vector<std::uint8_t>(1024)));
  add("seed", engine::SpeakerKind::kSeed, "1");
  add("tensor", engine::SpeakerKind::kTensor, "af_heart");
  EXPECT_EQ(error(), "");
  manifest_.files["speaker_stat"].sha256 = manifest_.files["speakers"].sha256 = std::string(64, '0');
  const std::string text = error();
  EXPECT_THAT(text, HasSubstr(statistics_path_.string()));
  EXPECT_THAT(text, HasSubstr("speakers.safetensors"));
  EXPECT_EQ(error(false), "");
}

TEST_F(VoicesTest, RefusesStatisticsOfAnotherModel) {
  write_statistics(encode_base16384(std::vector<std::uint8_t>(1020)));
  add("seed", engine::SpeakerKind::kSeed, "1");
  EXPECT_THAT(error(), HasSubstr("another size"));
}

}  // namespace
}  // namespace tts::model
