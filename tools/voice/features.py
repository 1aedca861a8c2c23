# SPDX-License-Identifier: Apache-2.0
"""Log-mel spectrograms as the server computes them: 24 kHz, 1024-point Hann frames every 256 samples, 100 HTK bands up to 12 kHz."""
import numpy as np

SAMPLE_RATE, N_FFT, HOP, N_MELS = 24000, 1024, 256, 100
STEP = 2 * HOP  # samples of one code step
FLOOR = 1e-5


def hann():
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)).astype(np.float32)


def mel_bank():
    """HTK triangles without area normalisation, [513, 100]."""
    top = 2595.0 * np.log10(1 + SAMPLE_RATE / 2 / 700.0)
    points = 700.0 * (10 ** (np.linspace(0.0, top, N_MELS + 2) / 2595.0) - 1)
    f = np.linspace(0, SAMPLE_RATE / 2, N_FFT // 2 + 1)
    width = np.diff(points)
    up = (f[:, None] - points[None, :-2]) / width[None, :-1]
    down = (points[None, 2:] - f[:, None]) / width[None, 1:]
    return np.maximum(0, np.minimum(up, down)).astype(np.float32)


def steps_of(samples):
    """Code steps that cover so many samples: two mel frames each, frames centred on multiples of HOP."""
    return -(-(samples // HOP + 1) // 2)


def padded(wave):
    """int16 samples -> float32 ones, padded or cut so that their frames are exactly those of steps_of() steps."""
    out = np.zeros(HOP * (2 * steps_of(len(wave)) - 1), np.float32)
    n = min(len(wave), len(out))
    out[:n] = wave[:n] / 32768.0
    return out


class Mel:
    """wave [B, samples] -> natural-log mel [B, 100, 1 + samples / 256]"""

    def __init__(self):
        import torch
        self.torch = torch
        self.window, self.bank = torch.from_numpy(hann()), torch.from_numpy(mel_bank())

    def __call__(self, wave):
        torch = self.torch
        spectrum = torch.stft(wave, N_FFT, HOP, window=self.window, center=True, pad_mode="reflect", return_complex=True).abs()
        return torch.log(torch.clamp(spectrum.transpose(1, 2) @ self.bank, min=FLOOR)).transpose(1, 2)

    def of_recording(self, wave):
        """int16 samples of a whole utterance -> [100, 2 x steps]"""
        return self(self.torch.from_numpy(padded(wave))[None])[0]
