#include "bench/workload.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tts/base/utf8.h"

#include "bench/bodies.h"

namespace tts::bench {
namespace {

using testing::HasSubstr;

TEST(BuiltInTexts, HaveAboutTheLengthThatWasAsked) {
  for (const auto* language : {"zh", "en"}) {
    for (const std::size_t length : {10, 40, 120, 300}) {
      const auto texts = built_in_texts(language, length);
      EXPECT_GE(texts.size(), 4U) << language << length;
      std::set<std::string> different;
      for (const auto& text : texts) {
        EXPECT_FALSE(find_invalid_utf8(text.text));
        EXPECT_NEAR(static_cast<double>(count_code_points(text.text)), static_cast<double>(length), 0.2 * static_cast<double>(length))
            << text.text;
        EXPECT_EQ(text.language, language);
        different.insert(text.text);
      }
      EXPECT_EQ(different.size(), texts.size());
    }
  }
}

TEST(BuiltInTexts, KnowTwoLanguages) { EXPECT_THROW(built_in_texts("de", 40), std::invalid_argument); }

class TextsFile : public testing::Test {
 protected:
  ~TextsFile() override { std::filesystem::remove(path_); }
  void write(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }
  std::string problem() {
    try {
      read_texts(path_);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
  const std::filesystem::path path_ = std::filesystem::temp_directory_path() / ("tts-texts-" + std::to_string(getpid()));
};

TEST_F(TextsFile, HoldsPlainLinesAndJsonLines) {
  write("你好。\r\n\n{\"text\": \"Hello.\", \"lang\": \"en\", \"id\": 3}\n{\"text\": \"Hm\"}");
  const auto texts = read_texts(path_);
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_EQ(texts[0].text, "你好。");
  EXPECT_EQ(texts[0].language, "");
  EXPECT_EQ(texts[1].text, "Hello.");
  EXPECT_EQ(texts[1].language, "en");
  EXPECT_EQ(texts[2].language, "");
}

TEST_F(TextsFile, SaysWhereItIsWrong) {
  write("good\n{\"txt\": 1}\n");
  EXPECT_THAT(problem(), HasSubstr(":2: "));
  write("\xff\n");
  EXPECT_THAT(problem(), HasSubstr("UTF-8"));
  write("\n\n");
  EXPECT_THAT(problem(), HasSubstr("no text"));
  std::filesystem::remove(path_);
  EXPECT_THAT(problem(), HasSubstr("cannot read"));
}

TEST(Shuffle, KeepsTheTextsAndDependsOnTheSeed) {
  const auto texts = built_in_texts("en", 40);
  auto one = texts, same = texts, other = texts;
  shuffle(one, 1);
  shuffle(same, 1);
  shuffle(other, 2);
  const auto words = [](std::vector<Text> list) {
    std::vector<std::string> out;
    for (auto& text : list) out.push_back(text.text);
    return out;
  };
  EXPECT_EQ(words(one), words(same));
  EXPECT_NE(words(one), words(other));
  EXPECT_THAT(words(one), testing::UnorderedElementsAreArray(words(texts)));
}

constexpr const char* kVoices = R"({"data": [{"id": "a", "languages": ["en"], "default": false},
  {"id": "b", "languages": ["zh", "en"], "default": true}, {"id": "c", "languages": ["fr"], "default": false}]})";

TEST(ChooseVoice, PrefersTheDefault) {
  EXPECT_EQ(choose_voice(kVoices, "en"), "b");
  EXPECT_EQ(choose_voice(kVoices, "fr"), "c");
  EXPECT_EQ(choose_voice(kVoices, "de"), std::nullopt);
}

TEST(ChooseVoice, ADefaultThatDoesNotSayWhatItSpeaksSpeaksAnything) {
  EXPECT_EQ(choose_voice(R"({"data": [{"id": "x", "languages": [], "default": true}]})", "zh"), "x");
}

TEST(ChooseVoice, RefusesAnotherDocument) { EXPECT_THROW(choose_voice("<html>", "zh"), std::runtime_error); }

TEST(Bodies, GoRoundTheTextsWithNewSeeds) {
  Bodies bodies({{"one", "en"}, {"two", ""}}, {"v", ""}, {{"format", "pcm"}}, 7);
  EXPECT_EQ(bodies.next(), R"({"format":"pcm","text":"one","voice":"v","seed":7})");
  EXPECT_EQ(bodies.next(), R"({"format":"pcm","text":"two","seed":8})");
  EXPECT_EQ(bodies.next(), R"({"format":"pcm","text":"one","voice":"v","seed":9})");
}

}  // namespace
}  // namespace tts::bench
