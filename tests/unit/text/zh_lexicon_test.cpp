#include "zh_lexicon.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "nano_voice.h"
#include "pinyin.h"

namespace tts::text::testing {
namespace {

const std::vector<std::byte>& file() {
  static const auto bytes = read_bytes(nano_directory() / "zh_lexicon.bin");
  return bytes;
}

ZhLexicon::Node walk(const ZhLexicon& lexicon, std::u32string_view word) {
  ZhLexicon::Node node = ZhLexicon::kRoot;
  for (const char32_t c : word) {
    if (node != ZhLexicon::kNoNode) node = lexicon.child(node, c);
  }
  return node;
}

std::string spelled(const ZhLexicon& lexicon, SyllableId id) {
  const Syllable s = lexicon.syllable(id);
  const std::string initial = s.initial == 0 ? "" : lexicon.initial_names()[s.initial - 1U];
  return initial + lexicon.final_names()[s.final] + std::to_string(s.tone);
}

TEST(ZhLexicon, FindsWordsPhrasesAndReadings) {
  const ZhLexicon& lexicon = nano_lexicon();
  const auto china = walk(lexicon, U"中国");
  ASSERT_NE(china, ZhLexicon::kNoNode);
  EXPECT_TRUE(lexicon.is_word(china));
  EXPECT_LT(lexicon.log_probability(china), 0.0);
  EXPECT_GT(lexicon.log_probability(china), lexicon.log_probability_unknown());
  EXPECT_EQ(walk(lexicon, U"中国龘龘"), ZhLexicon::kNoNode);
  EXPECT_EQ(walk(lexicon, U"A"), ZhLexicon::kNoNode);
  EXPECT_EQ(walk(lexicon, U"\U00020000"), ZhLexicon::kNoNode);

  const auto bank = walk(lexicon, U"银行");
  const auto reading = lexicon.phrase_reading(bank, 2);
  ASSERT_EQ(reading.size(), 2U);
  EXPECT_EQ(spelled(lexicon, reading[0]), "in2");
  EXPECT_EQ(spelled(lexicon, reading[1]), "hang2");
  EXPECT_TRUE(lexicon.is_phrase_prefix(walk(lexicon, U"银")));

  EXPECT_EQ(spelled(lexicon, lexicon.reading(U'女').value()), "nv3");
  EXPECT_EQ(spelled(lexicon, lexicon.reading(U'㐀').value()), "qiou1");  // outside the main block
  EXPECT_FALSE(lexicon.reading(U'A').has_value());
}

TEST(ZhLexicon, RefusesAFileThatIsCutOff) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{16}, std::size_t{100}, file().size() / 2, file().size() - 1}) {
    EXPECT_THROW(ZhLexicon(std::vector<std::byte>(file().begin(), file().begin() + static_cast<std::ptrdiff_t>(size))), std::runtime_error)
        << size;
  }
}

TEST(ZhLexicon, RefusesAnotherVersionAndTrailingBytes) {
  auto other = file();
  other[7] = std::byte{'2'};
  EXPECT_THROW(ZhLexicon(std::move(other)), std::runtime_error);
  auto longer = file();
  longer.push_back(std::byte{0});
  EXPECT_THROW(ZhLexicon(std::move(longer)), std::runtime_error);
}

TEST(ZhLexicon, EverySectionIsCheckedAgainstTheFile) {
  for (std::size_t section = 0; section < 19; ++section) {
    const auto refused = [&](std::size_t field, std::uint32_t hostile) {
      auto bytes = file();
      std::memcpy(bytes.data() + 16 + section * 8 + field, &hostile, sizeof hostile);
      EXPECT_THROW(ZhLexicon(std::move(bytes)), std::runtime_error) << section << ' ' << hostile << ' ' << field;
    };
    for (const std::uint32_t offset : {0xFFFFFFF8U, 0x7FFFFFF8U, 1U}) refused(0, offset);
    for (const std::uint32_t size : {0xFFFFFFFFU, 0xFFFFFFF8U, 0x7FFFFFF8U, 8U}) refused(4, size);
  }
}

// A changed byte is either refused or harmless: look-ups stay inside the file.
TEST(ZhLexicon, DamagedContentNeverLeavesTheFile) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    auto bytes = file();
    for (int change = 0; change < 4; ++change) bytes[168 + random() % (bytes.size() - 168)] = static_cast<std::byte>(random());
    try {
      const ZhLexicon damaged(std::move(bytes));
      EXPECT_NO_THROW(read_pinyin(damaged, U"银行里的人不知道一个小老鼠有多少钱龘㐀"));
    } catch (const std::runtime_error&) {
    }
  }
}

}  // namespace
}  // namespace tts::text::testing
