# SPDX-License-Identifier: Apache-2.0
"""Sentences chosen so that every sound occurs often enough: all tonal syllables of Mandarin, all pairs of phones of English."""
import collections
import os
import re

from english import english_symbols
from mandarin import readings

MANY = 60  # how many candidates are looked at for the next word
RARE = 8  # a sound is covered when it occurred so often


def dictionary():
    """jieba's words by class: {class: [words]}, frequent ones only, all characters Chinese"""
    import jieba
    out = collections.defaultdict(list)
    with open(os.path.join(os.path.dirname(jieba.__file__), "dict.txt"), encoding="utf-8") as f:
        for line in f:
            word, frequency, kind = line.split()
            if int(frequency) >= 60 and re.fullmatch("[一-鿿]{1,4}", word):
                out[kind].append(word)
    return out


def neutral_words():
    """Words with a neutral tone that pypinyin knows only as a whole, like 衣裳: about the only places where rare neutral finals occur."""
    import jieba
    from pypinyin.constants import PHRASES_DICT
    jieba.setLogLevel(60)
    jieba.initialize()
    return sorted(p for p in PHRASES_DICT if len(p) in (2, 3) and jieba.dt.FREQ.get(p) and any(s.endswith("5") for s in readings(p)))


def phone_pairs(word):
    phones = [re.sub(r"\d", "", p) for p in english_symbols(word)]
    return list(zip(phones, phones[1:]))


def cover(sounds_of, words, chance, count, length):
    """`count` lists of words, of `length(chance)` words each, picked by which of their sounds occurred least so far."""
    words_with = collections.defaultdict(list)
    sounds = {}
    for word in words:
        sounds[word] = sounds_of(word)
        for sound in sounds[word]:
            words_with[sound].append(word)
    keys, seen, out = sorted(words_with), collections.Counter(), []
    missing = []  # sounds below RARE, rebuilt when used up: these go first, so that even a short list covers everything once
    for _ in range(count):
        picked = []
        for _ in range(length(chance)):
            while missing and seen[missing[-1]] >= RARE:
                missing.pop()
            if not missing:
                missing = sorted((k for k in keys if seen[k] < RARE), key=lambda k: (-seen[k], chance.random()))
            rare = missing.pop() if missing else min(chance.sample(keys, min(MANY, len(keys))), key=seen.__getitem__)
            word = chance.choice(words_with[rare])
            seen.update(sounds[word])
            picked.append(word)
        out.append(picked)
    return out


def mandarin_sentences(words, chance, count):
    """Few words that make no sense together, so that nothing but the sounds can be learned from them."""
    picked = cover(readings, words, chance, count, lambda c: c.randint(2, 5))
    return [chance.choice(["，", "、", ""]).join(p) + chance.choice("。。。？！") for p in picked]


def english_sentences(words, glue, chance, count):
    out = []
    for picked in cover(phone_pairs, words, chance, count, lambda c: c.randint(3, 7)):
        text = []
        for word in picked:
            if chance.random() < 0.6:
                text.append(chance.choice(glue))
            text.append(word + ("," if chance.random() < 0.12 else ""))
        line = " ".join(text).strip(",")
        out.append(line[0].upper() + line[1:] + chance.choice("...?!"))
    return out
