# SPDX-License-Identifier: Apache-2.0
"""What is done to the teacher's sound before it is trained on: silence trimmed, pauses made long enough, loudness made equal. numpy only."""
import numpy as np

from features import SAMPLE_RATE

FRAME = 240  # 10 ms
QUIET = 0.006  # RMS below which a frame is silence
LEAD, TAIL = SAMPLE_RATE // 20, SAMPLE_RATE * 3 // 25  # silence kept: 50 ms before, 120 ms after
LOUDNESS = -23.0  # LUFS
PEAK = 0.97


def frame_rms(wave):
    n = len(wave) // FRAME
    return np.sqrt(np.mean(wave[:n * FRAME].reshape(n, FRAME) ** 2, 1))


def trim(wave, starts):
    """-> wave, starts; (None, None) when nothing is said"""
    on = np.nonzero(frame_rms(wave) > QUIET)[0]
    if not len(on):
        return None, None
    begin, end = max(0, on[0] * FRAME - LEAD), min(len(wave), (on[-1] + 1) * FRAME + TAIL)
    return wave[begin:end], np.clip(starts - begin, 0, end - begin)


def lengthen_pauses(wave, starts, wanted):
    """wanted: {index of a symbol: seconds}. Silence is put into the quietest place of the symbol until it lasts that long; later starts move."""
    starts = np.array(starts)
    for index in sorted(wanted, reverse=True):
        begin, end = int(starts[index]), int(starts[index + 1])
        missing = int(wanted[index] * SAMPLE_RATE) - (end - begin)
        if missing <= 0:
            continue
        rms = frame_rms(wave[begin:end])
        at = begin + (int(rms.argmin()) * FRAME + FRAME // 2 if len(rms) else (end - begin) // 2)
        fade = min(120, at, len(wave) - at)
        down = np.linspace(1, 0, fade, dtype=np.float32)
        wave = np.concatenate([wave[:at - fade], wave[at - fade:at] * down, np.zeros(missing, np.float32), wave[at:at + fade] * down[::-1], wave[at + fade:]])
        starts[index + 1:] += missing
    return wave, starts


def _weighting(frequency):
    """Power response of ITU-R BS.1770's K-weighting: a shelf for the head, then a high-pass, both from their analogue prototypes."""
    z = np.exp(-2j * np.pi * frequency / SAMPLE_RATE)

    def response(corner, q, numerator):
        k = np.tan(np.pi * corner / SAMPLE_RATE)
        a = 1 + k / q + k * k, 2 * (k * k - 1), 1 - k / q + k * k
        b = numerator(k, q, a[0])
        return (b[0] + b[1] * z + b[2] * z * z) / (a[0] + a[1] * z + a[2] * z * z)
    v = 10 ** (3.999843853973347 / 20)
    w = v ** 0.4996667741545416
    shelf = response(1681.974450955533, 0.7071752369554196, lambda k, q, _: (v + w * k / q + k * k, 2 * (k * k - v), v - w * k / q + k * k))
    high = response(38.13547087602444, 0.5003270373238773, lambda k, q, a0: (a0, -2 * a0, a0))
    return shelf * high


def _weighted(wave):
    """In the frequency domain: no recursion, and the filter's tail falls into the padding."""
    n = len(wave) + SAMPLE_RATE // 4
    return np.fft.irfft(np.fft.rfft(wave, n) * _weighting(np.fft.rfftfreq(n, 1 / SAMPLE_RATE)), n)[:len(wave)]


def loudness(wave):
    """Integrated loudness in LUFS with both gates of BS.1770; -inf for silence. Sounds under 0.4 s are measured as a whole."""
    block, hop = int(0.4 * SAMPLE_RATE), int(0.1 * SAMPLE_RATE)
    power = _weighted(np.asarray(wave, np.float64)) ** 2
    if len(power) == 0 or not power.any():
        return -np.inf
    sums = np.concatenate([[0.0], np.cumsum(power)])
    first = np.arange(0, max(1, len(power) - block + 1), hop)
    mean = (sums[np.minimum(first + block, len(power))] - sums[first]) / min(block, len(power))

    def lufs(x):
        return -0.691 + 10 * np.log10(np.maximum(x, 1e-20))
    kept = mean[lufs(mean) > -70.0]
    if not len(kept):
        return -np.inf
    kept = kept[lufs(kept) > lufs(kept.mean()) - 10.0]
    return float(lufs(kept.mean()))


def level(wave):
    """Brings speech to LOUDNESS, less where that would clip."""
    now = loudness(wave)
    if not np.isfinite(now):
        return wave
    gain = 10 ** ((LOUDNESS - now) / 20)
    peak = float(np.abs(wave).max()) or 1.0
    return (wave * min(gain, PEAK / peak)).astype(np.float32)
