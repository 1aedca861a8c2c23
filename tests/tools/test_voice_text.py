# SPDX-License-Identifier: Apache-2.0
"""tools/voice: the corpus is the same every time, balanced and complete; texts become the symbols that the server's front end gives."""
import collections
import json
import os
import random
import sys
import unittest

import support

sys.path.insert(0, os.path.join(support.TOOLS, "voice"))
try:
    import corpus
    import coverage
    import english
    import phones
    import symbols
    from build_zh_lexicon import split_syllable
    from mandarin import readings
    from templates import fill
    from voices import SPEAKERS
    from workspace import is_held_out
    import jieba  # noqa: F401
    import pypinyin  # noqa: F401
    english.lexicon("a")
    MISSING = None
except (ImportError, OSError) as e:  # an interpreter without the packages of tests/requirements.txt
    MISSING = str(e)

PHONE_REFERENCE = os.path.join(support.ROOT, "tests", "data", "phone_reference.jsonl")


@unittest.skipIf(MISSING, MISSING)
class CorpusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = corpus.compose(14000)

    def test_same_every_time(self):
        self.assertEqual(corpus.compose(900), corpus.compose(900))

    def test_every_tonal_syllable_and_phone_pair_occurs(self):
        spoken = collections.Counter(s for row in self.rows if row["kind"] == "syllables" for s in readings(row["text"]))
        words = {w for k, ws in coverage.dictionary().items() if k in ("n", "v", "a", "d") for w in ws}
        wanted = {s for w in random.Random(1).sample(sorted(words), 4000) for s in readings(w)}
        self.assertGreater(len(wanted), 900)
        self.assertEqual({s for s in wanted if not spoken[s]}, set())
        pairs = {p for row in self.rows if row["kind"] == "diphones" for w in row["text"].replace(",", "").rstrip(".?!").lower().split() for p in coverage.phone_pairs(w)}
        wanted = {p for w in corpus.Generators().common for p in coverage.phone_pairs(w)}
        self.assertGreater(len(wanted), 800)
        self.assertEqual(wanted - pairs, set())

    def test_neutral_tones_occur(self):
        possible = {split_syllable(s)[1] for w in coverage.neutral_words() for s in readings(w) if s.endswith("5")}
        self.assertGreater(len(possible), 15)
        occurring = collections.Counter(split_syllable(s)[1] for row in self.rows if row["kind"] == "syllables" for s in readings(row["text"]) if s.endswith("5"))
        self.assertEqual({f for f in possible if occurring[f] < 4}, set())

    def test_prefixes_are_balanced(self):
        part = self.rows[:1000]
        for lang, share in corpus.SHARE.items():
            self.assertAlmostEqual(sum(r["lang"] == lang for r in part) / len(part), share, delta=0.03)
        self.assertEqual({(r["lang"], r["kind"]) for r in part}, {(lang, kind) for lang, kinds in corpus.KINDS.items() for kind in kinds})
        for lang in ("zh", "en"):
            readers = [s for s in SPEAKERS if lang in s.reads]
            total = sum(s.share for s in readers)
            for s in readers:
                share = sum(r["voice"] == s.teacher for r in part if r["lang"] == lang) / sum(r["lang"] == lang for r in part)
                self.assertAlmostEqual(share, s.share / total, delta=0.02)

    def test_rows(self):
        self.assertEqual(len({r["id"] for r in self.rows}), len(self.rows))
        barred = corpus.evaluation_texts()
        self.assertGreater(len(barred), 250)
        self.assertFalse([r for r in self.rows if corpus.bare(r["text"]) in barred])
        self.assertTrue(all(r.get("speed", "[speed_0]") in symbols.SPEEDS for r in self.rows))
        self.assertGreater(sum("speed" in r for r in self.rows), 1000)
        self.assertGreater(sum("break]" in r["text"] for r in self.rows), 300)
        self.assertAlmostEqual(sum(map(is_held_out, self.rows)) / len(self.rows), 0.02, delta=0.001)

    def test_every_sentence_has_symbols(self):
        for row in self.rows[::40]:
            found = phones.text_to_symbols(row["text"])
            self.assertGreater(len(found), 1, row)
            self.assertFalse([s for s in found if s not in symbols.ID], row)
            self.assertEqual("break]" in row["text"], any(s in symbols.PAUSES for s in found), row)

    def test_long_sentences_are_joined_in_one_piece(self):
        chance = random.Random(0)
        self.assertEqual(corpus.joined(["He came.", "The dog ran.", "I saw it!"], [", and "], chance, True), "He came, and the dog ran, and I saw it!")
        self.assertEqual(corpus.joined(["好吗？", "走吧。"], ["，"], chance, False), "好吗？走吧。")
        self.assertEqual(corpus.joined(["Why?", "Yes."], [". However, "], chance, True), "Why? Yes.")

    def test_fill(self):
        self.assertEqual(fill("{a}-{a}{b}", {"a": lambda c: "x", "b": lambda c: "y"}, None), "x-xy")


@unittest.skipIf(MISSING, MISSING)
class SymbolsTest(unittest.TestCase):
    def test_same_symbols_as_the_servers_front_end(self):
        with open(PHONE_REFERENCE, encoding="utf-8") as f:
            rows = [json.loads(line) for line in f][::7]
        self.assertGreater(len(rows), 300)
        for row in rows:
            self.assertEqual(" ".join(phones.text_to_symbols(row["text"])), row["symbols"], row["text"])

    def test_the_teacher_can_spell_everything_but_control_symbols(self):
        unspelled = [s for s in symbols.SYMBOLS if s not in symbols.SPELLING]
        self.assertTrue(all(s.startswith("[") for s in unspelled), unspelled)
        self.assertEqual(symbols.teacher_spelling(["n", "i3", symbols.SPACE, "HH", "AY1", "."]), ["n", "i↓", " ", "h", "ˈI", "."])

    def test_prompt(self):
        self.assertEqual([symbols.SYMBOLS[i] for i in symbols.prompt(["a1", "."], "[speed_9]")], ["[Stts]", "[spk_emb]", "[speed_9]", "a1", ".", "[Ptts]"])
        self.assertEqual(symbols.SPEEDS["[speed_9]"], 2.0)

    def test_pauses_stand_between_words(self):
        self.assertEqual(phones.text_to_symbols("go [uv_break] on")[2], "[uv_break]")
        found = phones.text_to_symbols("走 [lbreak] 吧。")
        self.assertEqual(found[2], "[lbreak]")
        self.assertNotIn(symbols.SPACE, found[1:4])
        self.assertNotIn("[lbreak]", phones.text_to_symbols("走吧。[lbreak]"))


if __name__ == "__main__":
    unittest.main()
