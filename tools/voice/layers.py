# SPDX-License-Identifier: Apache-2.0
"""ConvNeXt parts of the DVAE, the Decoder and Vocos. Parameter names are those of the ChatTTS and Vocos checkpoints."""
import torch
from torch import nn
from torch.nn import functional as F


class ConvNeXtBlock(nn.Module):
    """On [B, T, C]. The residual's scale is called `weight` in ChatTTS and `gamma` in Vocos."""

    def __init__(self, dim, inner, kernel=7, dilation=1, scale=1e-6, scale_name="weight"):
        super().__init__()
        self.dwconv = nn.Conv1d(dim, dim, kernel, padding=dilation * (kernel // 2), dilation=dilation, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1, self.pwconv2 = nn.Linear(dim, inner), nn.Linear(inner, dim)
        self.scale_name, self.dilation, self.kernel = scale_name, dilation, kernel
        setattr(self, scale_name, nn.Parameter(scale * torch.ones(dim)))

    def depthwise(self, x):
        """Shifted multiply-adds: on [B, T, C] several times as fast on a CPU as the grouped convolution."""
        length, pad = x.shape[1], self.dilation * (self.kernel // 2)
        padded, w = F.pad(x, (0, 0, pad, pad)), self.dwconv.weight[:, 0].to(x.dtype)
        y = self.dwconv.bias.to(x.dtype) + padded[:, :length] * w[:, 0]
        for i in range(1, self.kernel):
            y = torch.addcmul(y, padded[:, i * self.dilation:i * self.dilation + length], w[:, i])
        return y

    def forward(self, x):
        y = self.norm(self.depthwise(x).float())
        return x + self.pwconv2(F.gelu(self.pwconv1(y))) * getattr(self, self.scale_name)


class ConvStack(nn.Module):
    """Convolutions in, `n_layer` ConvNeXt blocks of dilation 2, a 1x1 convolution out. [B, C, T] in and out."""

    def __init__(self, idim, odim, hidden, n_layer, bn_dim):
        super().__init__()
        self.conv_in = nn.Sequential(nn.Conv1d(idim, bn_dim, 3, 1, 1), nn.GELU(), nn.Conv1d(bn_dim, hidden, 3, 1, 1))
        self.decoder_block = nn.ModuleList([ConvNeXtBlock(hidden, hidden * 4, 7, 2, 0.1) for _ in range(n_layer)])
        self.conv_out = nn.Conv1d(hidden, odim, 1, bias=False)

    def forward(self, x):
        y = self.conv_in(x).transpose(1, 2)
        for block in self.decoder_block:
            y = block(y)
        return self.conv_out(y.transpose(1, 2))


def interleave(x):
    """[B, C, T] -> [B, C / 2, 2T]: the halves of the channels become neighbouring frames."""
    b, c, t = x.shape
    return x.view(b, 2, c // 2, t).permute(0, 2, 3, 1).reshape(b, c // 2, 2 * t)
