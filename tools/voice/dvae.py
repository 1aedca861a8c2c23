# SPDX-License-Identifier: Apache-2.0
"""DVAE: log mel -> 4 codes of 625 values every two frames -> log mel. Quantiser: grouped residual finite scalar quantisation as in ChatTTS."""
import torch
from torch import nn

from features import N_MELS
from layers import ConvStack, interleave

NUM_VQ = 4


class ResidualFsq(nn.Module):
    """One group: `levels` values a dimension, `rounds` rounds, the second on what the first left, four times as fine."""

    def __init__(self, dim, levels, rounds):
        super().__init__()
        self.project_in, self.project_out = nn.Linear(dim, len(levels)), nn.Linear(len(levels), dim)
        self.levels, self.rounds = levels[0], rounds
        self.register_buffer("basis", torch.tensor([self.levels ** i for i in range(len(levels))]), persistent=False)

    def bound(self, z):
        return torch.tanh(z) * ((self.levels - 1) * (1 + 1e-3) / 2)

    def scale(self, round_):
        return float(self.levels - 1) ** -round_

    def forward(self, x):
        """[B, T, dim] -> quantised [B, T, dim] with straight-through gradients, codes [B, T, rounds]"""
        half = self.levels // 2
        rest, total, codes = self.bound(self.project_in(x).float()), 0.0, []
        for r in range(self.rounds):
            z = self.bound(rest / self.scale(r))
            q = (z + (z.round() - z).detach()) / half
            codes.append(((q.detach() * half).round() + half).long().mul(self.basis).sum(-1))
            total = total + q * self.scale(r)
            rest = rest - (q * self.scale(r)).detach()
        return self.project_out(total), torch.stack(codes, -1)

    def embed(self, codes):
        half, total = self.levels // 2, 0.0
        for r in range(self.rounds):
            value = (codes[..., r, None] // self.basis) % self.levels
            total = total + (value.float() - half) / half * self.scale(r)
        return self.project_out(total)


class GroupedFsq(nn.Module):
    """[B, C, T]; codes are ordered group 0 round 0, group 0 round 1, group 1 round 0, group 1 round 1."""

    def __init__(self, dim, levels, G, R):
        super().__init__()
        self.quantizer = nn.Module()
        self.quantizer.rvqs = nn.ModuleList([ResidualFsq(dim // G, levels, R) for _ in range(G)])
        self.groups, self.rounds = G, R

    def forward(self, x):
        parts = [rvq(part) for rvq, part in zip(self.quantizer.rvqs, x.transpose(1, 2).chunk(self.groups, -1))]
        return torch.cat([p[0] for p in parts], -1).transpose(1, 2), torch.cat([p[1] for p in parts], -1).transpose(1, 2)

    def embed(self, codes):
        c = codes.transpose(1, 2)
        return torch.cat([rvq.embed(c[..., i * self.rounds:(i + 1) * self.rounds]) for i, rvq in enumerate(self.quantizer.rvqs)], -1).transpose(1, 2)


class Dvae(nn.Module):
    """`coef` is the level of each mel band in the training data: the network sees values around one."""

    def __init__(self, sizes):
        super().__init__()
        dim = sizes["dim"]
        self.register_buffer("coef", torch.ones(1, N_MELS, 1))
        self.downsample_conv = nn.Sequential(nn.Conv1d(N_MELS, dim, 3, 1, 1), nn.GELU(), nn.Conv1d(dim, dim, 4, 2, 1), nn.GELU())
        self.encoder, self.decoder = ConvStack(**sizes["encoder"]), ConvStack(**sizes["decoder"])
        self.vq_layer = GroupedFsq(**sizes["vq"])
        self.out_conv = nn.Conv1d(dim, N_MELS, 3, 1, 1, bias=False)

    def encode(self, mel):
        return self.encoder(self.downsample_conv(mel / self.coef))

    def decode(self, features):
        return self.out_conv(self.decoder(interleave(features))) * self.coef

    def forward(self, mel):
        """[B, 100, 2T] -> the same shape, codes [B, 4, T]"""
        quantised, codes = self.vq_layer(self.encode(mel))
        return self.decode(quantised), codes
