# SPDX-License-Identifier: Apache-2.0
"""tools/voice on sound: loudness, trimming and pauses, pitch and time warp, tones, spectrograms, pictures."""
import math
import os
import struct
import sys
import tempfile
import unittest
import zlib

import support

sys.path.insert(0, os.path.join(support.TOOLS, "voice"))
try:
    import numpy as np

    import features
    import pitch
    import png
    import recordings
    import tones
    MISSING = None
except ImportError as e:
    MISSING = str(e)
RATE = 24000


def sine(hertz, seconds, amplitude=1.0):
    return (amplitude * np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE)).astype(np.float32)


def voice(hertz):
    """Pulses at a fundamental that may change from sample to sample, rounded off like a vowel."""
    phase = np.cumsum(np.asarray(hertz) / RATE)
    return sum(np.sin(2 * np.pi * k * phase) / k for k in range(1, 9)).astype(np.float32) * 0.2


@unittest.skipIf(MISSING, MISSING)
class RecordingsTest(unittest.TestCase):
    def test_loudness_of_the_standards_tone(self):
        # ITU-R BS.1770: a full-scale 997 Hz sine in one channel reads -3.01 LKFS.
        self.assertAlmostEqual(recordings.loudness(sine(997, 2)), -3.01, delta=0.05)
        self.assertAlmostEqual(recordings.loudness(sine(997, 2, 0.1)), -23.01, delta=0.05)
        self.assertLess(recordings.loudness(sine(30, 2)), -10)  # below hearing
        self.assertEqual(recordings.loudness(np.zeros(RATE, np.float32)), -math.inf)

    def test_silence_does_not_count(self):
        speech = np.concatenate([sine(997, 2, 0.1), np.zeros(4 * RATE, np.float32)])
        self.assertAlmostEqual(recordings.loudness(speech), -23.0, delta=0.5)

    def test_level(self):
        for amplitude in (0.001, 0.05, 0.9):
            self.assertAlmostEqual(recordings.loudness(recordings.level(sine(997, 1, amplitude))), recordings.LOUDNESS, delta=0.1)
        spiky = sine(997, 1, 0.001)
        spiky[100] = 0.9
        self.assertLessEqual(np.abs(recordings.level(spiky)).max(), recordings.PEAK + 1e-6)

    def test_trim(self):
        wave = np.concatenate([np.zeros(RATE), sine(300, 1, 0.3), np.zeros(RATE)]).astype(np.float32)
        out, starts = recordings.trim(wave, np.array([RATE, 2 * RATE]))
        self.assertAlmostEqual(len(out) / RATE, 1.17, delta=0.03)
        self.assertAlmostEqual(starts[0] / RATE, 0.05, delta=0.02)
        self.assertEqual(starts[1] - starts[0], RATE)
        self.assertEqual(recordings.trim(np.zeros(RATE, np.float32), np.array([0, 5])), (None, None))

    def test_pauses(self):
        wave = np.concatenate([sine(300, 0.5), np.zeros(2400, np.float32), sine(300, 0.5)])
        starts = [0, 12000, 14400, 26400]
        out, moved = recordings.lengthen_pauses(wave, starts, {1: 0.7})
        self.assertEqual(moved.tolist(), [0, 12000, 12000 + 16800, 12000 + 16800 + 12000])
        self.assertEqual(len(out), moved[-1])
        self.assertEqual(recordings.lengthen_pauses(wave, starts, {1: 0.05})[1].tolist(), starts)
        self.assertLess(np.abs(np.diff(out)).max(), 0.1)  # no click


@unittest.skipIf(MISSING, MISSING)
class PitchTest(unittest.TestCase):
    def test_steady(self):
        for hertz in (85.0, 120.0, 210.0, 400.0):
            found = pitch.track(voice(np.full(RATE, hertz)))[5:-12]
            self.assertTrue((found > 0).all(), hertz)
            self.assertLess(np.abs(12 * np.log2(found / hertz)).max(), 0.5, hertz)

    def test_glide_and_silence(self):
        hertz = np.linspace(120, 240, RATE)
        found = pitch.semitones(pitch.track(voice(hertz)))[8:-12]
        self.assertGreater(np.corrcoef(found, np.arange(len(found)))[0, 1], 0.98)
        noise = np.random.default_rng(0).normal(0, 0.1, RATE)
        self.assertLess((pitch.track(noise) > 0).mean(), 0.1)
        self.assertFalse(pitch.track(np.zeros(RATE)).any())

    def test_warp(self):
        a = np.random.default_rng(1).normal(size=(60, 8))
        slow = np.repeat(a, 2, 0)
        self.assertEqual(pitch.warp(a, a).tolist(), list(range(60)))
        self.assertTrue((np.abs(pitch.warp(a, slow) // 2 - np.arange(60)) <= 1).all())

    def test_tones_by_contour(self):
        def mel(wave):  # loudness and noise are enough to follow two equal readings
            n = len(wave) // features.HOP + 1
            return np.arange(n)[:, None] / n * np.ones((1, 4))
        high_low = voice(np.concatenate([np.full(12000, 220.0), np.full(12000, 150.0)]))
        low_high = voice(np.concatenate([np.full(12000, 150.0), np.full(12000, 220.0)]))
        said = ["m", "a1", "m", "a4", "."]
        starts = [0, 600, 12000, 12600, 23400, 24000]
        self.assertEqual(tones.by_contour(mel, high_low, high_low, said, starts), (0, 2))
        self.assertEqual(tones.by_contour(mel, high_low * 0.5, high_low, said, starts), (0, 2))
        self.assertEqual(tones.by_contour(mel, low_high, high_low, said, starts), (2, 2))

    def test_alignment(self):
        self.assertEqual(tones.align("abcd", "abd"), [(0, 0), (1, 1), (3, 2)])
        self.assertEqual(tones.align("", "ab"), [])

    def test_tones_by_recogniser(self):
        try:
            import pypinyin  # noqa: F401
        except ImportError as e:
            self.skipTest(str(e))
        self.assertEqual(tones.by_recogniser("买书。", "卖书"), (1, 2))
        self.assertEqual(tones.by_recogniser("买书。", "天"), (0, 0))


@unittest.skipIf(MISSING, MISSING)
class FeaturesTest(unittest.TestCase):
    def test_steps_cover_the_recording(self):
        for samples in (1, 255, 256, 511, 512, 24000, 24001):
            steps = features.steps_of(samples)
            padded = features.padded(np.ones(samples, np.int16))
            self.assertEqual(len(padded) // features.HOP + 1, 2 * steps)
            self.assertGreaterEqual(2 * steps * features.HOP, samples)

    def test_bank(self):
        bank = features.mel_bank()
        self.assertEqual(bank.shape, (513, 100))
        self.assertTrue((bank.max(0) > 0.3).all())
        self.assertEqual(int(bank[:, 0].nonzero()[0][0]), 1)


@unittest.skipIf(MISSING, MISSING)
class PictureTest(unittest.TestCase):
    def test_png(self):
        image = png.curves([([0, 1, 2], [3.0, 1.0, 2.0])], 300, 200)
        self.assertEqual(image.shape, (200, 300, 3))
        self.assertTrue((image == png.COLOURS[0]).all(-1).any())
        both = png.stacked([image, png.spectrogram(np.zeros((100, 20)))])
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "x.png")
            png.write(path, both)
            with open(path, "rb") as f:
                data = f.read()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", data[16:24]), (both.shape[1], both.shape[0]))
        at = data.index(b"IDAT")
        size = struct.unpack(">I", data[at - 4:at])[0]
        self.assertEqual(len(zlib.decompress(data[at + 4:at + 4 + size])), both.shape[0] * (1 + 3 * both.shape[1]))

    def test_nothing_to_draw(self):
        self.assertTrue((png.curves([([1], [1])]) == 255).all())


if __name__ == "__main__":
    unittest.main()
