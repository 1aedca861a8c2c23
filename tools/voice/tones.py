# SPDX-License-Identifier: Apache-2.0
"""Does a Mandarin reading keep the tones? Two views: what the recogniser wrote, and the pitch contour against the teacher's.

The recogniser guesses tones from context, so its figure is a lower bound; the contour needs no words but the teacher's reading of the text.
"""
import re

import numpy as np

from features import HOP
from pitch import semitones, track, warp

WRONG = 3.0  # semitones between two contours of one syllable, each relative to its utterance; README: how it was chosen
TONED = re.compile(r"[a-z]+[1-5]$")


def align(reference, heard):
    """Pairs of positions of the cheapest alignment of two lists, where both have an element."""
    n, m = len(reference), len(heard)
    cost = np.zeros((n + 1, m + 1), np.int32)
    cost[:, 0], cost[0] = np.arange(n + 1), np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost[i, j] = min(cost[i - 1, j] + 1, cost[i, j - 1] + 1, cost[i - 1, j - 1] + (reference[i - 1] != heard[j - 1]))
    pairs, i, j = [], n, m
    while i and j:
        if cost[i, j] == cost[i - 1, j - 1] + (reference[i - 1] != heard[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif cost[i, j] == cost[i - 1, j] + 1:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]


def by_recogniser(reference, transcript):
    """-> (tones that differ, syllables that were heard right but for the tone)"""
    from pypinyin import Style, lazy_pinyin
    from speech_scoring import zh_characters

    def toned(text):
        han = "".join(c for c in zh_characters(text) if "一" <= c <= "鿿")
        return lazy_pinyin(han, style=Style.TONE3, neutral_tone_with_five=True)
    a, b = toned(reference), toned(transcript)
    same = [(a[i], b[j]) for i, j in align([s.rstrip("12345") for s in a], [s.rstrip("12345") for s in b]) if a[i].rstrip("12345") == b[j].rstrip("12345")]
    return sum(x != y for x, y in same), len(same)


def syllable_spans(symbols, starts):
    """First and last sample of each toned final."""
    return [(int(starts[i]), int(starts[i + 1])) for i, s in enumerate(symbols) if TONED.match(s)]


def by_contour(mel, wave, teacher_wave, symbols, starts):
    """-> (syllables whose contour differs by more than WRONG, syllables voiced in both). mel: float samples -> [frames, bands]"""
    warped = warp(mel(teacher_wave), mel(wave))
    mine, theirs = semitones(track(wave)), semitones(track(teacher_wave))
    wrong = compared = 0
    for begin, end in syllable_spans(symbols, starts):
        frames = np.arange(begin // HOP, min(end // HOP + 1, len(theirs), len(warped)))
        if not len(frames):
            continue
        a, b = theirs[frames], mine[np.minimum(warped[frames], len(mine) - 1)]
        both = np.isfinite(a) & np.isfinite(b)
        if both.sum() < 3:
            continue
        compared += 1
        wrong += bool(np.sqrt(np.mean((a[both] - b[both]) ** 2)) > WRONG)
    return wrong, compared
