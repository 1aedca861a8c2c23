#include "english.h"

#include <thread>

#include <gtest/gtest.h>

#include "nano_voice.h"

namespace tts::text::testing {
namespace {

const SymbolTable& symbols() {
  static const SymbolTable table(read_bytes(nano_directory() / "symbols.json"), 320);
  return table;
}

std::string read(std::string_view word) {
  std::string out;
  for (const std::string& phone : read_english(symbols(), word)) out += (out.empty() ? "" : " ") + phone;
  return out;
}

TEST(ReadEnglish, FunctionWordsComeFromTheTable) {
  EXPECT_EQ(read("the"), "DH AH0");
  EXPECT_EQ(read("The"), "DH AH0");
  EXPECT_EQ(read("I'm"), "AY1 M");
}

TEST(ReadEnglish, WordsComeFromTheLexicon) {
  EXPECT_EQ(read("hello"), "HH AH0 L OW1");
  EXPECT_EQ(read("about"), "AH0 B AW1 T");
}

TEST(ReadEnglish, UnknownWordsAreGuessed) { EXPECT_EQ(read("blorptastic"), read("Blorptastic")); }

TEST(ReadEnglish, FlapsTBetweenVowels) {
  EXPECT_EQ(read("water"), "W AO1 DX ER0");
  EXPECT_EQ(read("attack"), "AH0 T AE1 K");
}

TEST(ReadEnglish, ShortCapitalsAreSpelled) {
  EXPECT_EQ(read("PPT"), "P IY1 P IY1 T IY1");
  EXPECT_EQ(read("A"), "AH0");  // the article
  EXPECT_EQ(read("B"), "B IY1");
  EXPECT_EQ(read("x"), "EH1 K S");
  EXPECT_EQ(read("BUFF"), read("buff"));      // four letters are a word
  EXPECT_EQ(read("NVIDIA"), read("nvidia"));  // and so are more than five
  EXPECT_EQ(read("HTTPS"), "EY1 CH T IY1 T IY1 P IY1 EH1 S");
  EXPECT_EQ(read("HTTP"), "EY1 CH T IY1 T IY1 P IY1");  // no vowel
}

TEST(ReadEnglish, PossessiveFollowsTheLastSound) {
  EXPECT_EQ(read("cat's"), "K AE1 T S");
  EXPECT_EQ(read("dog's"), "D AO1 G Z");
  EXPECT_EQ(read("fox's"), "F AA1 K S IH0 Z");
}

TEST(ReadEnglish, EveryPhoneIsASymbolOfTheVoice) {
  for (const char* word : {"thought", "measure", "church", "judge", "sing", "oil", "bird", "rock'n'roll", "zzyzx", "qqqq"}) {
    const auto phones = read_english(symbols(), word);
    EXPECT_FALSE(phones.empty()) << word;
    for (const std::string& phone : phones) EXPECT_TRUE(symbols().find(phone).has_value()) << word << ' ' << phone;
  }
}

TEST(ReadEnglish, TheLongestWordIsReadWhole) { EXPECT_FALSE(read(std::string(kMaxWordLetters, 'a')).empty()); }

TEST(ReadEnglish, MayBeCalledFromManyThreads) {
  const std::string want = read("university");
  std::vector<std::string> got(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : got) threads.emplace_back([&result] { result = read("university"); });
  }
  for (const auto& result : got) EXPECT_EQ(result, want);
}

}  // namespace
}  // namespace tts::text::testing
