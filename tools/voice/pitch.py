# SPDX-License-Identifier: Apache-2.0
"""Fundamental frequency by normalised autocorrelation, and the time warp between two readings of one sentence. numpy only."""
import numpy as np

from features import HOP, SAMPLE_RATE

LOWEST, HIGHEST = 60.0, 500.0  # Hz
WINDOW = 1200  # 50 ms: three periods of the lowest voices
VOICED = 0.55  # least height of the autocorrelation's peak


def track(wave):
    """-> Hz every HOP samples, 0 where unvoiced; frame i is centred on sample i * HOP"""
    wave = np.asarray(wave, np.float64)
    shortest, longest = int(SAMPLE_RATE / HIGHEST), int(SAMPLE_RATE / LOWEST)
    size = 1 << int(np.ceil(np.log2(WINDOW + longest)))
    frames = len(wave) // HOP + 1
    around = np.pad(wave, (WINDOW // 2, WINDOW // 2 + longest))
    index = np.arange(frames)[:, None] * HOP + np.arange(WINDOW + longest)
    x = around[np.minimum(index, len(around) - 1)]
    x = x - x[:, :WINDOW].mean(1, keepdims=True)
    head = x.copy()
    head[:, WINDOW:] = 0
    correlation = np.fft.irfft(np.conj(np.fft.rfft(head, size)) * np.fft.rfft(x, size), size)[:, :longest + 1]
    energy = np.cumsum(np.pad(x ** 2, ((0, 0), (1, 0))), 1)
    power = energy[:, WINDOW:WINDOW + longest + 1] - energy[:, :longest + 1]  # of the window at each lag
    height = correlation / np.sqrt(np.maximum(power[:, :1] * power, 1e-12))
    inside = height[:, shortest:longest + 1]
    best = inside.max(1, keepdims=True)
    # The first peak nearly as high as the highest: later ones are multiples of the period.
    peak = (inside[:, 1:-1] >= inside[:, :-2]) & (inside[:, 1:-1] >= inside[:, 2:]) & (inside[:, 1:-1] > 0.87 * best)
    lag = np.where(peak.any(1), peak.argmax(1) + 1, inside.argmax(1)) + shortest
    voiced = (best[:, 0] > VOICED) & (power[:, 0] / WINDOW > 1e-6)
    return np.where(voiced, SAMPLE_RATE / lag, 0.0)


def semitones(hertz):
    """Relative to the median of what is voiced; NaN where unvoiced."""
    voiced = hertz > 0
    if not voiced.any():
        return np.full(len(hertz), np.nan)
    return np.where(voiced, 12 * np.log2(np.maximum(hertz, 1.0) / np.median(hertz[voiced])), np.nan)


def warp(a, b, band=0.25):
    """Dynamic time warping of feature rows [frames, dims] -> for each frame of a the matching frame of b. `band`: how far from the diagonal, as a share."""
    n, m = len(a), len(b)
    reach = max(8, int(band * max(n, m)), abs(n - m) + 8)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    step = np.zeros((n + 1, m + 1), np.int8)
    for i in range(1, n + 1):
        centre = i * m // n
        low, high = max(1, centre - reach), min(m, centre + reach)
        local = np.abs(b[low - 1:high] - a[i - 1]).mean(1)
        above = np.minimum(cost[i - 1, low - 1:high], cost[i - 1, low:high + 1])
        from_above = np.where(cost[i - 1, low - 1:high] <= cost[i - 1, low:high + 1], 0, 1)
        left = cost[i, low - 1]
        for k in range(high - low + 1):
            if left < above[k]:
                left, step[i, low + k] = left + local[k], 2
            else:
                left, step[i, low + k] = above[k] + local[k], from_above[k]
            cost[i, low + k] = left
    out, i, j = np.zeros(n, np.int64), n, m
    while i > 0 and j > 0:
        out[i - 1] = j - 1
        move = step[i, j]
        i, j = (i - 1, j - 1) if move == 0 else (i - 1, j) if move == 1 else (i, j - 1)
    return out
