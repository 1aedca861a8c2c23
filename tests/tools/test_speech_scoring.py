# SPDX-License-Identifier: Apache-2.0
"""The error rates of eval_voice: digits in a transcript must count as the words that were spoken."""
import json
import os
import unittest

import support
import eval_voice
import speech_scoring as s

try:
    import pypinyin  # noqa: F401
    HAVE_PINYIN = True
except ImportError:
    HAVE_PINYIN = False


class ScoringTest(unittest.TestCase):
    def test_edit_distance(self):
        for a, b, d in (("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("abc", "abc", 0)):
            self.assertEqual(s.edit_distance(list(a), list(b)), d)

    def test_mandarin_numbers(self):
        for digits, spoken in (("2023年11月5日", "二零二三年十一月五日"), ("14:35起飞", "十四点三十五分起飞"), ("增长6.8%", "增长百分之六点八"), ("3:1", "三比一"),
                               ("¥59.9", "五十九点九元"), ("1/3的同学", "三分之一的同学"), ("100℃", "一百摄氏度"), ("400-000-1234", "四零零零零零幺二三四"),
                               ("10010元", "一万零一十元"), ("200个", "两百个"), ("XQ2047", "XQ二零四七"), ("1,200元", "一千二百元")):
            self.assertEqual(s.zh_characters(digits), s.zh_characters(spoken), digits)

    def test_english_numbers(self):
        for digits, spoken in (("87 metres", "eighty seven metres"), ("364 steps", "three hundred and sixty four steps"), ("6:15 AM", "six fifteen A M"),
                               ("$12.50 in 2019", "twelve dollars and fifty cents in twenty nineteen"), ("62%", "sixty two percent"), ("March 3rd", "March third"),
                               ("3/4 cup", "three quarters cup"), ("1,204,000", "one million two hundred and four thousand"), ("5th", "fifth"), ("20th", "twentieth"),
                               ("B12", "B twelve"), ("2.5", "two point five")):
            self.assertEqual(s.en_words(digits), s.en_words(spoken), digits)

    def test_mixed_units(self):
        self.assertEqual(s.mixed_units("我的iPhone没电了，OK？"), ["我", "的", "iphone", "没", "电", "了", "ok"])

    def test_perfect_and_empty_transcripts(self):
        with open(os.path.join(support.ROOT, "tests", "data", "sentences.jsonl"), encoding="utf-8") as f:
            for row in map(json.loads, f):
                group = eval_voice.group_of(row)
                if row["lang"] == "zh" and not HAVE_PINYIN and group != "mixed":
                    continue
                for metric, (errors, length) in s.compare(row["lang"], group, row["spoken"], row["spoken"]).items():
                    self.assertEqual(errors, 0)
                    self.assertGreater(length, 0, (row["id"], metric))
                for errors, length in s.compare(row["lang"], group, row["spoken"], "").values():
                    self.assertEqual(errors, length)

    def test_a_recogniser_in_a_loop_counts_as_one_lost_sentence(self):
        self.assertEqual(s.compare("en", "en", "They teach us well.", "to teach us " * 50), {"wer": (4, 4)})

    def test_digits_as_a_recogniser_writes_them(self):
        """The written form of the number sentences must score (nearly) as well as the spoken one."""
        with open(os.path.join(support.ROOT, "tests", "data", "sentences.jsonl"), encoding="utf-8") as f:
            for row in (r for r in map(json.loads, f) if "-num-" in r["id"]):
                metric = "cer" if row["lang"] == "zh" else "wer"
                a, b = s.METRICS[metric](row["spoken"]), s.METRICS[metric](row["text"])
                self.assertLessEqual(s.edit_distance(a, b), 2, (row["id"], "".join(a), "".join(b)))

    def test_totals(self):
        t = eval_voice.Totals()
        t.add("en", {"wer": (1, 4)}, 1.0)
        t.add("en", {"wer": (0, 6)}, 2.0)
        self.assertEqual(t.summary(), {"en": {"sentences": 2, "audio_seconds": 3.0, "wer": {"rate": 0.1, "errors": 1, "reference": 10}}})


if __name__ == "__main__":
    unittest.main()
