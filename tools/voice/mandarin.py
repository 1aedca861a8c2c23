# SPDX-License-Identifier: Apache-2.0
"""Runs of Chinese characters to symbols: jieba's words, pypinyin's readings, tone sandhi. src/text/{zh_segmenter,pinyin}.cpp do the same."""
import workspace  # noqa: F401  (first: makes the other tools importable)
from build_zh_lexicon import split_syllable
from symbols import SPACE

# 一 keeps its tone in numbers, ordinals and dates.
_ONE_AFTER = "第初十百千零点〇二三四五六七八九一月星期周"
_ONE_BEFORE = "月号日二三四五六七八九零点一"


def _single_tones(characters, tones):
    """Sandhi of 不 and 一, and the neutral tone between doubled words (看一看, 好不好)."""
    n = len(characters)
    for k, c in enumerate(characters):
        following = tones[k + 1] if k + 1 < n else 0
        doubled = 0 < k < n - 1 and characters[k - 1] == characters[k + 1]
        if c == "不" and tones[k] == 4:
            tones[k] = 5 if doubled else 2 if following == 4 else 4
        elif c == "一" and tones[k] == 1:
            if doubled:
                tones[k] = 5
            elif (k and characters[k - 1] in _ONE_AFTER) or (k + 1 < n and characters[k + 1] in _ONE_BEFORE):
                continue
            elif following == 4:
                tones[k] = 2
            elif following in (1, 2, 3):
                tones[k] = 4


def sandhi(words):
    """[(text, ['ni3', ...])] of one phrase -> the syllables of each word as spoken. Two third tones meet inside a word, or where either word is one syllable."""
    syllables = [list(readings) for _, readings in words]
    characters = [c for text, _ in words for c in text]
    places = [(i, j) for i, word in enumerate(syllables) for j in range(len(word))]
    if len(characters) != len(places):  # a character without a reading: leave the phrase as it is written
        return syllables
    tones = [int(syllables[i][j][-1]) for i, j in places]
    _single_tones(characters, tones)
    written = list(tones)
    for k in range(len(places) - 1):
        here, there = places[k][0], places[k + 1][0]
        if written[k] == written[k + 1] == 3 and (here == there or 1 in (len(syllables[here]), len(syllables[there]))):
            tones[k] = 2
    for (i, j), tone in zip(places, tones):
        syllables[i][j] = syllables[i][j][:-1] + str(tone)
    return syllables


def readings(text):
    """pypinyin's reading of each character, tone as a last digit, 5 for neutral; characters without one are left out."""
    from pypinyin import Style, lazy_pinyin
    return lazy_pinyin(text, style=Style.TONE3, neutral_tone_with_five=True, v_to_u=False, errors="ignore")


def words_of(run):
    import jieba
    jieba.setLogLevel(60)
    return jieba.lcut(run)


def mandarin_symbols(run):
    """A run of Chinese characters -> symbols, words separated by SPACE."""
    spoken = [(word, said) for word in words_of(run) if (said := readings(word))]
    out = []
    for word in sandhi(spoken):
        symbols = []
        for initial, final, tone in map(split_syllable, word):
            if final:
                symbols += ([initial] if initial else []) + [f"{final}{tone}"]
        if symbols:
            out += ([SPACE] if out else []) + symbols
    return out
