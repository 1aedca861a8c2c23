#include "zh_segmenter.h"

#include <gtest/gtest.h>

#include "tts/base/utf8.h"

#include "nano_voice.h"

namespace tts::text::testing {
namespace {

// The words with spaces between them.
std::string segmented(std::u32string_view run) {
  std::u32string out;
  std::size_t begin = 0;
  for (const std::size_t end : segment_words(nano_lexicon(), run)) {
    if (begin != 0) out += U' ';
    out += run.substr(begin, end - begin);
    begin = end;
  }
  EXPECT_EQ(begin, run.size());
  return encode_utf8(out);
}

// Expected values: jieba 0.42.1.
TEST(SegmentWords, DictionaryPath) {
  EXPECT_EQ(segmented(U"我来到北京清华大学"), "我 来到 北京 清华大学");
  EXPECT_EQ(segmented(U"南京市长江大桥"), "南京市 长江大桥");
  EXPECT_EQ(segmented(U"研究生命的起源"), "研究 生命 的 起源");
}

TEST(SegmentWords, UnknownWordsComeFromTheModel) { EXPECT_EQ(segmented(U"他来到了网易杭研大厦"), "他 来到 了 网易 杭研 大厦"); }

TEST(SegmentWords, CharactersOutsideTheModelStandAlone) {
  EXPECT_EQ(segmented(U"\u9FD6\u9FD7中国\u3400"), encode_utf8(U"\u9FD6 \u9FD7 中国 \u3400"));
}

TEST(SegmentWords, EmptyAndSingle) {
  EXPECT_EQ(segmented(U""), "");
  EXPECT_EQ(segmented(U"我"), "我");
}

TEST(SegmentWords, LongRunsAreCoveredOnce) {
  segmented(std::u32string(4000, U'的'));
  segmented(std::u32string(4000, U'龘'));
  segmented(std::u32string(4000, U'\u9FFF'));
}

}  // namespace
}  // namespace tts::text::testing
