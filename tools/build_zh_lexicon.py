#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build the Mandarin lexicon of a `phones` voice from the data of jieba and pypinyin (both MIT).

  python3 -m venv lexicon-venv && lexicon-venv/bin/pip install -r tools/lexicon_requirements.txt
  lexicon-venv/bin/python tools/build_zh_lexicon.py models/nano/zh_lexicon.bin
  python3 tools/update_manifest.py models/nano --add zh_lexicon=zh_lexicon.bin

The output depends on nothing but the pinned package versions. The layout is described in src/text/zh_lexicon.h; change FORMAT there and
here together.
"""
import argparse
import hashlib
import math
import os
import re
import struct
import sys
from array import array
from importlib.metadata import version

MAGIC = b"TTSZHLX1"
SECTIONS = ("labels frequencies internal_bits internal_ranks first_children phrase_bits phrase_ranks phrase_prefix_bits phrase_readings "
            "log_frequencies syllables han_readings other_characters other_readings hmm_characters hmm_emissions hmm_values "
            "hmm_transitions names").split()
PINNED = {"pypinyin": "0.55.0", "jieba": "0.42.1"}
FIRST_HAN, LAST_HAN, LAST_SEGMENTED = 0x4E00, 0x9FFF, 0x9FD5  # jieba segments up to U+9FD5 only
NO_READING, UNSPOKEN = 0xFFFF, 0xFF
STATES = "BMES"

INITIALS = "b p m f d t n l g k h j q x zh ch sh r z c s".split()
FINALS = ("a ai an ang ao e ei en eng er i ia ian iang iao ie in ing iong iou ir o ong ou "
          "u ua uai uan uang uei uen ueng uo v van ve vn").split()


def split_syllable(spelling):
    """'zhong1' (tone at the end, v for u-umlaut) -> (initial or None, final or None when the voice has no such sound, tone)."""
    match = re.fullmatch(r"([a-zêü]+)([1-5])", spelling)
    if not match:
        raise ValueError(f"unexpected syllable {spelling!r}")
    letters, tone = match.group(1).replace("ü", "v"), int(match.group(2))
    if letters in ("m", "n", "ng", "hm", "hng"):  # syllabic nasals: 嗯, 呣, 哼
        return None, "en", tone
    if letters == "ê":
        return None, "ei", tone
    initial = next((i for i in ("zh", "ch", "sh") if letters.startswith(i)), None)
    if initial is None and letters[0] in "bpmfdtnlgkhjqxrzcs":
        initial = letters[0]
    final = letters[len(initial or ""):]
    if initial is None:  # y- and w- are spellings of i-, u- and v-finals without an initial
        for written, sound in (("yu", "v"), ("yi", "i"), ("y", "i"), ("wu", "u"), ("w", "u")):
            if final.startswith(written):
                final = sound + final[len(written):]
                break
    elif initial in ("j", "q", "x") and final.startswith("u"):
        final = "v" + final[1:]
    elif final == "i" and initial in ("zh", "ch", "sh", "r", "z", "c", "s"):
        final = "ir"
    final = {"iu": "iou", "ui": "uei", "un": "uen", "ue": "ve", "io": "ia", "von": "iong", "vong": "iong", "ien": "ian",
             "iai": "ia"}.get(final, final)
    if final == "ong" and initial in ("j", "q", "x"):
        final = "iong"
    if final not in FINALS:
        return None, None, tone
    return initial, final, tone


class Syllables:
    """Ids of distinct (initial, final, tone) triples in order of first use."""

    def __init__(self):
        self.ids, self.rows = {}, bytearray()

    def id(self, spelling):
        initial, final, tone = split_syllable(spelling)
        key = (0 if initial is None else INITIALS.index(initial) + 1, UNSPOKEN if final is None else FINALS.index(final), tone)
        if key not in self.ids:
            self.ids[key] = len(self.ids)
            self.rows += bytes(key)
        return self.ids[key]


def bits(flags):
    """Bit i of word i // 64, and for every word the number of set bits before it."""
    words, ranks, total = array("Q"), array("I"), 0
    for start in range(0, len(flags), 64):
        word = sum(1 << k for k, flag in enumerate(flags[start:start + 64]) if flag)
        words.append(word)
        ranks.append(total)
        total += bin(word).count("1")
    return words, ranks


def level_order(keys):
    """Every prefix of the keys, level by level, siblings together and sorted: children of one node are neighbours."""
    prefixes = {key[:n] for key in keys for n in range(1, len(key) + 1)}
    return [""] + sorted(prefixes, key=lambda p: (len(p), p))


def build():
    import jieba
    from jieba.finalseg import emit_P, start_P, trans_P
    from pypinyin import Style, lazy_pinyin
    from pypinyin.constants import PHRASES_DICT, PINYIN_DICT
    jieba.setLogLevel(60)
    frequencies, total = jieba.Tokenizer.gen_pfdict(jieba.get_module_res("dict.txt"))

    def readings(text):
        return lazy_pinyin(text, style=Style.TONE3, neutral_tone_with_five=True, v_to_u=False, errors="ignore")

    # Only runs of Han characters are looked up, so words with letters or digits in them cannot be met.
    words = {w: f for w, f in frequencies.items() if f and all(FIRST_HAN <= ord(c) <= LAST_SEGMENTED for c in w)}
    phrases = {p: readings(p) for p in PHRASES_DICT}
    broken = [p for p, r in phrases.items() if len(r) != len(p)]
    if broken:
        raise ValueError(f"phrases without one reading a character: {broken[:5]}")
    nodes = level_order([*words, *phrases])
    parents = {n[:-1] for n in nodes[1:]}
    phrase_prefixes = {p[:n] for p in phrases for n in range(1, len(p) + 1)}
    first_children, children = array("I"), 1
    child_counts = {}
    for node in nodes[1:]:
        child_counts[node[:-1]] = child_counts.get(node[:-1], 0) + 1
    for node in nodes:
        if node in parents:
            first_children.append(children)
            children += child_counts[node]
    first_children.append(children)

    # Index 0 is the probability of a character that is no word; the numbers are exactly those that jieba computes.
    distinct = sorted(set(words.values()))
    rank = {f: i + 1 for i, f in enumerate(distinct)}
    log_total = math.log(total)
    out = {
        "labels": array("H", [0] + [ord(n[-1]) for n in nodes[1:]]),
        "frequencies": array("H", [rank[words[n]] if n in words else 0 for n in nodes]),
        "first_children": first_children,
        "log_frequencies": array("d", [math.log(1) - log_total] + [math.log(f) - log_total for f in distinct]),
    }
    out["internal_bits"], out["internal_ranks"] = bits([n in parents for n in nodes])
    out["phrase_bits"], out["phrase_ranks"] = bits([n in phrases for n in nodes])
    out["phrase_prefix_bits"], _ = bits([n in phrase_prefixes for n in nodes])

    syllables = Syllables()
    out["phrase_readings"] = array("H", [syllables.id(s) for n in nodes if n in phrases for s in phrases[n]])
    single = {code: syllables.id(readings(chr(code))[0]) for code in sorted(PINYIN_DICT) if readings(chr(code))}
    out["han_readings"] = array("H", [single.get(code, NO_READING) for code in range(FIRST_HAN, LAST_HAN + 1)])
    other = [code for code in single if not FIRST_HAN <= code <= LAST_HAN]
    out["other_characters"] = array("I", other)
    out["other_readings"] = array("H", [single[code] for code in other])
    out["syllables"] = bytes(syllables.rows)

    minimum = -3.14e100  # jieba's logarithm of zero
    characters = sorted(c for c in set().union(*(emit_P[s] for s in STATES)) if FIRST_HAN <= ord(c) <= LAST_SEGMENTED)
    values = [minimum] + sorted({emit_P[s][c] for s in STATES for c in characters if c in emit_P[s]})
    index = {v: i for i, v in enumerate(values)}
    out["hmm_characters"] = array("H", [ord(c) for c in characters])
    out["hmm_emissions"] = array("H", [index[emit_P[s].get(c, minimum)] for c in characters for s in STATES])
    out["hmm_values"] = array("d", values)
    out["hmm_transitions"] = array("d", [start_P[s] for s in STATES] + [trans_P[a].get(b, minimum) for a in STATES for b in STATES])
    out["names"] = (" ".join(INITIALS) + "\n" + " ".join(FINALS)).encode()
    print(f"{len(nodes)} nodes, {len(words)} words, {len(phrases)} phrases, {len(single)} characters, {len(syllables.ids)} syllables")
    return out


def pack(sections):
    """Header: magic, u32 file size, u32 number of sections, then for each u32 offset and u32 bytes. Sections start at multiples of 8."""
    offset = len(MAGIC) + 8 + 8 * len(SECTIONS)
    table, body = b"", b""
    for name in SECTIONS:
        data = sections[name]
        data = data if isinstance(data, bytes) else data.tobytes()
        padding = -(offset + len(body)) % 8
        body += b"\0" * padding
        table += struct.pack("<II", offset + len(body), len(data))
        body += data
    return MAGIC + struct.pack("<II", offset + len(body), len(SECTIONS)) + table + body


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    a = parser.parse_args(argv)
    wrong = [f"{name} {version(name)} (want {want})" for name, want in PINNED.items() if version(name) != want]
    if wrong:
        return "error: " + ", ".join(wrong) + "; install tools/lexicon_requirements.txt"
    if sys.byteorder != "little":
        return "error: run this on a little-endian machine"
    data = pack(build())
    with open(a.out + ".tmp", "wb") as f:
        f.write(data)
    os.replace(a.out + ".tmp", a.out)
    print(f"{a.out}: {len(data) / 1e6:.2f} MB, sha256 {hashlib.sha256(data).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
