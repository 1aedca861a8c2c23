# SPDX-License-Identifier: Apache-2.0
"""Composes the training corpus: what is read, by which speaker, how fast. The same arguments give the same file on every machine.

  python corpus.py [--sentences 14000] [--out FILE]

Any prefix is balanced, so synthesis may stop anywhere. Sentences that the evaluation uses never occur. Rows: {"id", "voice", "lang"
("zh", "en", "mix"), "kind", "text", "speed": a symbol or absent}; pauses are written into the text as [uv_break] and [lbreak].
"""
import argparse
import collections
import os
import random
import re

import coverage
from symbols import LONG_PAUSE, SHORT_PAUSE, SPEEDS
from templates import english_places, fill, mandarin_places, read_lines, read_toml
from voices import SPEAKERS
from workspace import HERE, ROOT, Workspace, read_jsonl, write_jsonl

SEED = "nano voice"
SHARE = {"zh": 0.48, "en": 0.40, "mix": 0.12}
# Shares of the kinds within a language. Long sentences, questions, numbers and very short ones are where a small model fails first.
KINDS = {
    "zh": {"plain": 0.21, "by_class": 0.16, "syllables": 0.18, "poem": 0.05, "short": 0.08, "question": 0.07, "exclamation": 0.04, "number": 0.07,
           "list": 0.04, "neutral": 0.02, "sentences": 0.01, "long": 0.07},
    "en": {"plain": 0.21, "diphones": 0.25, "verse": 0.13, "short": 0.08, "question": 0.07, "exclamation": 0.04, "number": 0.08, "list": 0.03,
           "spelled": 0.03, "sentences": 0.01, "long": 0.07},
    "mix": {"plain": 0.80, "short": 0.12, "sentences": 0.03, "long": 0.05},
}
SPEED_SHARE, PAUSE_SHARE = 0.12, 0.05
LONG_PARTS = (2, 4)  # sentences that are joined to a long one


def bare(text):
    """For comparing sentences: letters and characters only."""
    return re.sub(r"[\W_]", "", text).lower()


def evaluation_texts():
    paths = [os.path.join(ROOT, "tests", "data", "sentences.jsonl"), os.path.join(HERE, "texts", "evaluation.jsonl")]
    return {bare(row[key]) for path in paths for row in read_jsonl(path) for key in ("text", "spoken")}


def joined(parts, connectors, chance, english):
    """Sentences without their last mark, joined by connectors; the last keeps its mark."""
    out = re.sub(r"[.。]$", "", parts[0])
    for part in parts[1:]:
        link = chance.choice(connectors)
        if out[-1] in "?!？！":
            link = " " if english else ""
        lower = english and link and link.rstrip()[-1:] not in (".", "") and not re.match(r"I\b|[A-Z][a-z]+ (?:is|was)", part)
        out += link + (part[0].lower() + part[1:] if lower else part)
        out = re.sub(r"[.。]$", "", out) if part is not parts[-1] else out
    return out


class Generators:
    """Per language and kind a function (chance, count) -> sentences. Repeated ones are dropped by the caller."""

    def __init__(self):
        self.tables = {"zh": read_toml("zh.toml"), "en": read_toml("en.toml"), "mix": read_toml("mixed.toml")}
        common = " ".join(read_lines("common_words.txt")).split()
        zh, en = mandarin_places(self.tables["zh"]["words"]), english_places(self.tables["en"]["words"], common)
        mixed = {**zh, **mandarin_places(self.tables["mix"]["words"]), "time_en": en["time"]}
        self.places, self.common = {"zh": zh, "en": en, "mix": mixed}, common

    def make(self, lang, kind, chance, count):
        if kind == "by_class":
            classes = {k: (lambda c, words=words: c.choice(words)) for k, words in coverage.dictionary().items()}
            classes["x"] = self.places["zh"]["particle"]
            return [fill(chance.choice(self.tables["zh"]["templates"][kind]), classes, chance) for _ in range(count)]
        if kind == "syllables":
            words = sorted({w for k, ws in coverage.dictionary().items() if k in "n v a d i l ns nr zg z r q y".split() for w in ws} | set(coverage.neutral_words()))
            return coverage.mandarin_sentences(words, chance, count)
        if kind == "diphones":
            return coverage.english_sentences(self.common, self.tables["en"]["words"]["glue"], chance, count)
        if kind in ("poem", "verse"):
            lines = read_lines("poems.txt" if kind == "poem" else "verses.txt")
            return chance.sample(lines, min(count, len(lines)))
        if kind == "long":
            return self.long(lang, chance, count)
        templates = self.tables[lang]["templates"][kind]
        if kind == "sentences":
            return templates[:]
        return [fill(chance.choice(templates), self.places[lang], chance) for _ in range(count)]

    def long(self, lang, chance, count):
        connectors = self.tables["en" if lang == "en" else "zh"]["templates"]["connect"]
        out = []
        for _ in range(count):
            templates = self.tables[lang]["templates"]
            parts = [fill(chance.choice(templates["plain"] + templates["sentences"]), self.places[lang], chance) for _ in range(chance.randint(*LONG_PARTS))]
            out.append(joined(parts, connectors, chance, lang == "en"))
        return out


def with_pause(text, english, chance):
    """A pause symbol between two words (English) or behind an existing comma (Mandarin); the text as it is where there is no place."""
    mark = chance.choice([SHORT_PAUSE, SHORT_PAUSE, LONG_PAUSE])
    places = [m.start() for m in re.finditer(r"(?<=[a-z]) (?=[A-Za-z])" if english else "，", text)]
    if not places:
        return text
    at = chance.choice(places)
    return text[:at] + " " + mark + " " + text[at + 1:]


def compose(sentences):
    """-> rows"""
    generators, barred = Generators(), evaluation_texts()
    placed, used = [], collections.Counter()
    for lang, share in SHARE.items():
        seen = set()
        for kind, part in KINDS[lang].items():
            chance = random.Random(f"{SEED}/{lang}/{kind}")
            made = []
            for text in generators.make(lang, kind, chance, round(sentences * share * part)):
                text = text[0].upper() + text[1:]
                if bare(text) not in barred and text not in seen:
                    seen.add(text)
                    made.append(text)
            chance.shuffle(made)
            placed += [((i + 0.5) / len(made), lang, kind, text) for i, text in enumerate(made)]
    placed.sort()
    rows = []
    for number, (_, lang, kind, text) in enumerate(placed):
        chance = random.Random(f"{SEED}/{number}")
        readers = [s for s in SPEAKERS if lang in s.reads]
        # The reader who is furthest behind its share: exact shares in every prefix.
        reader = min(readers, key=lambda s: (used[lang, s.teacher] + 1) / s.share)
        used[lang, reader.teacher] += 1
        row = {"id": f"s{number:05d}", "voice": reader.teacher, "lang": lang, "kind": kind, "text": text}
        if kind != "short" and chance.random() < SPEED_SHARE:
            row["speed"] = chance.choice(sorted(SPEEDS))
        elif kind not in ("short", "spelled") and chance.random() < PAUSE_SHARE:
            row["text"] = with_pause(text, lang == "en", chance)
        rows.append(row)
    return rows


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sentences", type=int, default=14000, help="about so many (default: %(default)s)")
    p.add_argument("--out", help="default: corpus.jsonl in the training folder")
    a = p.parse_args(argv)
    work = None if a.out else Workspace()
    out = a.out or work.made("corpus.jsonl")
    rows = compose(a.sentences)
    write_jsonl(out, rows)
    print(f"{out}: {len(rows)} sentences; " + ", ".join(f"{lang} {n}" for lang, n in collections.Counter(r["lang"] for r in rows).items())
          + "; " + ", ".join(f"{v} {n}" for v, n in collections.Counter(r["voice"] for r in rows).items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
