# SPDX-License-Identifier: Apache-2.0
"""Vocos: log mel -> magnitude and phase of each frame -> waveform by inverse STFT; and the critics of its adversarial stage."""
import torch
from torch import nn
from torch.nn import functional as F

from features import HOP, N_FFT, N_MELS
from layers import ConvNeXtBlock


class Vocos(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        dim, layers = sizes["dim"], sizes["num_layers"]
        b = self.backbone = nn.Module()
        b.embed = nn.Conv1d(N_MELS, dim, 7, padding=3)
        b.norm, b.final_layer_norm = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        b.convnext = nn.ModuleList([ConvNeXtBlock(dim, sizes["intermediate_dim"], scale=1.0 / layers, scale_name="gamma") for _ in range(layers)])
        self.head = nn.Module()
        self.head.out = nn.Linear(dim, N_FFT + 2)
        self.register_buffer("window", torch.hann_window(N_FFT), persistent=False)
        for m in self.modules():
            if isinstance(m, (nn.Conv1d, nn.Linear)):
                nn.init.trunc_normal_(m.weight, std=0.02)
                nn.init.zeros_(m.bias)

    def spectrum(self, mel):
        b = self.backbone
        x = b.norm(b.embed(mel).transpose(1, 2).float())
        for block in b.convnext:
            x = block(x)
        with torch.autocast("cpu", enabled=False):
            x = self.head.out(b.final_layer_norm(x.float())).transpose(1, 2)
        magnitude, phase = x.chunk(2, 1)
        magnitude = torch.clamp(torch.exp(magnitude), max=1e2)
        return torch.complex(magnitude * torch.cos(phase), magnitude * torch.sin(phase))

    def forward(self, mel):
        """[B, 100, T] -> [B, 256 (T - 1)]"""
        return torch.istft(self.spectrum(mel), N_FFT, HOP, window=self.window, center=True)


class SpectrumCritic(nn.Module):
    """Complex STFT as two channels through strided 2-D convolutions."""

    def __init__(self, size, width=16):
        super().__init__()
        self.size = size
        self.register_buffer("window", torch.hann_window(size), persistent=False)
        norm = nn.utils.parametrizations.weight_norm
        self.convolutions = nn.ModuleList([norm(nn.Conv2d(2, width, (7, 5), (2, 1), (3, 2))), norm(nn.Conv2d(width, width, (5, 3), (2, 1), (2, 1))),
                                           norm(nn.Conv2d(width, width, (5, 3), (2, 2), (2, 1))), norm(nn.Conv2d(width, width, 3, (2, 1), 1))])
        self.out = norm(nn.Conv2d(width, 1, 3, 1, 1))

    def forward(self, wave):
        """-> verdicts, features of each layer"""
        s = torch.stft(wave, self.size, self.size // 4, window=self.window, return_complex=True)
        s = torch.stack([s.real, s.imag], 1)
        s = s / (s.abs() + 1e-3).sqrt()  # keeps quiet partials visible
        features = []
        for convolution in self.convolutions:
            s = F.leaky_relu(convolution(s), 0.1)
            features.append(s)
        return self.out(s), features


class Critics(nn.Module):
    SIZES = (512, 1024, 2048)

    def __init__(self):
        super().__init__()
        self.critics = nn.ModuleList([SpectrumCritic(n) for n in self.SIZES])

    def forward(self, wave):
        return [critic(wave) for critic in self.critics]
