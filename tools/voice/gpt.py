# SPDX-License-Identifier: Apache-2.0
"""GPT over audio codes (Llama layers, ChatTTS's names and topology) and the Decoder that turns its hidden states into mel."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from dvae import NUM_VQ
from features import N_MELS
from layers import ConvStack, interleave
from symbols import SPEAKER

N_CODES = 626
END_CODE = 625
MASKED = -1e9


class RmsNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


def rotary_angles(length, head_dim, theta, start=0):
    frequency = theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angle = torch.outer(torch.arange(start, start + length).float(), frequency)
    angle = torch.cat([angle, angle], -1)
    return angle.cos(), angle.sin()


def rotate(x, angles):
    cos, sin = angles
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        dim = sizes["hidden_size"]
        self.heads = sizes["num_attention_heads"]
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(dim, dim, bias=False))

    def forward(self, x, angles, wanted=None, cache=None):
        """`wanted`: heads whose masked scores are returned (training); `cache`: a list that holds keys and values of earlier positions (generation)."""
        b, length, dim = x.shape
        qkv = F.linear(x, torch.cat([self.q_proj.weight, self.k_proj.weight, self.v_proj.weight]))
        q, k, v = (t.view(b, length, self.heads, dim // self.heads).transpose(1, 2) for t in qkv.split(dim, -1))
        q, k = rotate(q, angles), rotate(k, angles)
        if cache is not None:
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = [k, v]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
            return self.o_proj(y.transpose(1, 2).reshape(b, length, dim)), None
        # Explicit scores: on a CPU faster than the fused kernel at this size, and the supervised heads' scores come for free.
        scores = (q * (1.0 / math.sqrt(dim // self.heads))) @ k.transpose(-1, -2)
        scores = scores + torch.full((length, length), MASKED, dtype=scores.dtype).triu(1)
        y = scores.softmax(-1).to(v.dtype) @ v
        return self.o_proj(y.transpose(1, 2).reshape(b, length, dim)), None if wanted is None else scores[:, wanted]


class Mlp(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(dim, inner, bias=False), nn.Linear(dim, inner, bias=False)
        self.down_proj = nn.Linear(inner, dim, bias=False)

    def forward(self, x):
        gate, up = F.linear(x, torch.cat([self.gate_proj.weight, self.up_proj.weight])).chunk(2, -1)
        return self.down_proj(F.silu(gate) * up)


class Layer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        dim, eps = sizes["hidden_size"], sizes["rms_norm_eps"]
        self.self_attn, self.mlp = Attention(sizes), Mlp(dim, sizes["intermediate_size"])
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(dim, eps), RmsNorm(dim, eps)

    def forward(self, x, angles, wanted=None, cache=None):
        y, scores = self.self_attn(self.input_layernorm(x), angles, wanted, cache)
        x = x + y
        return x + self.mlp(self.post_attention_layernorm(x)), scores


class Gpt(nn.Module):
    # Heads that training points at the phone being spoken (0) or the next one (1): layer -> heads, and their targets in that order.
    ALIGNED = {2: [0], 3: [0, 1], 4: [0, 1]}
    ALIGNED_TO = [0, 0, 1, 0, 1]

    def __init__(self, sizes, speakers):
        super().__init__()
        self.sizes, dim = sizes, sizes["hidden_size"]
        self.emb_text = nn.Embedding(sizes["num_text_tokens"], dim)
        self.emb_code = nn.ModuleList([nn.Embedding(N_CODES, dim) for _ in range(NUM_VQ)])
        self.head_code = nn.ModuleList([nn.Linear(dim, N_CODES, bias=False) for _ in range(NUM_VQ)])
        self.emb_spk = nn.Embedding(speakers, dim)
        self.layers = nn.ModuleList([Layer(sizes) for _ in range(sizes["num_hidden_layers"])])
        self.norm = RmsNorm(dim, sizes["rms_norm_eps"])
        residual = 0.02 / math.sqrt(2 * sizes["num_hidden_layers"])
        for name, p in self.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                nn.init.normal_(p, std=residual)
            elif p.dim() == 2:
                nn.init.normal_(p, std=0.02 if "proj" in name or "head" in name else 0.05)
        nn.init.normal_(self.emb_spk.weight, std=1.0)

    def embed_text(self, text, speaker):
        """text [B, L] with the speaker symbol in it; speaker [B] rows or [B, dim] vectors of any length."""
        vector = F.normalize(self.emb_spk(speaker) if speaker.dim() == 1 else speaker, dim=-1)
        e = self.emb_text(text)
        return torch.where((text == SPEAKER)[..., None], vector[:, None].to(e.dtype), e)

    def embed_codes(self, codes):
        return sum(self.emb_code[q](codes[..., q]) for q in range(NUM_VQ))

    def trunk(self, x, aligned=False, start=0, caches=None):
        """-> hidden states after the last norm, scores [B, heads, L, L] of the supervised heads or None"""
        angles = rotary_angles(x.shape[1], self.sizes["hidden_size"] // self.sizes["num_attention_heads"], self.sizes["rope_theta"], start)
        if torch.is_autocast_enabled("cpu"):
            angles = tuple(t.to(torch.bfloat16) for t in angles)
        collected = []
        for i, layer in enumerate(self.layers):
            x, scores = layer(x, angles, self.ALIGNED.get(i) if aligned else None, caches[i] if caches is not None else None)
            if scores is not None:
                collected.append(scores)
        return self.norm(x), torch.cat(collected, 1) if collected else None

    def logits(self, hidden):
        w = torch.cat([head.weight for head in self.head_code])
        return F.linear(hidden, w).view(*hidden.shape[:-1], NUM_VQ, N_CODES)


class Decoder(nn.Module):
    """Hidden states [B, dim, T] -> log mel [B, 100, 2T]"""

    def __init__(self, sizes):
        super().__init__()
        self.register_buffer("coef", torch.ones(1, N_MELS, 1))
        self.decoder = ConvStack(**sizes["decoder"])
        self.out_conv = nn.Conv1d(sizes["dim"], N_MELS, 3, 1, 1, bias=False)

    def forward(self, hidden):
        return self.out_conv(self.decoder(interleave(hidden))) * self.coef


def keep_top_p(logits, top_p):
    """Masks what lies outside the smallest set with probability top_p; at least three stay, as in ChatTTS."""
    values, order = logits.sort(-1)
    outside = values.softmax(-1).cumsum(-1) <= 1 - top_p
    outside[:, -3:] = False
    return logits.masked_fill(torch.zeros_like(outside).scatter(1, order, outside), MASKED)


@torch.inference_mode()
def generate(gpt, prompt, speaker, temperature=0.3, top_p=0.7, top_k=20, min_steps=8, max_steps=700, seed=0):
    """Sampling in ChatTTS's order without a repetition penalty. prompt: token ids; speaker: a row. -> codes [T, 4], hidden states [T, dim], ended by itself"""
    chance = torch.Generator().manual_seed(seed)
    caches = [[] for _ in gpt.layers]
    x, position, codes, hidden, ended = gpt.embed_text(torch.tensor([prompt]), torch.tensor([speaker])), 0, [], [], False
    for step in range(max_steps):
        h, _ = gpt.trunk(x, start=position, caches=caches)
        position += x.shape[1]
        h = h[:, -1]
        logits = gpt.logits(h)[0].float() / temperature
        if step < min_steps:
            logits[:, END_CODE] = MASKED
        logits = keep_top_p(logits, top_p)
        logits = logits.masked_fill(logits < logits.topk(max(top_k, 3), -1).values[:, -1:], MASKED)
        code = torch.multinomial(logits.softmax(-1), 1, generator=chance)[:, 0]
        if bool((code == END_CODE).any()):
            ended = True
            break
        codes.append(code)
        hidden.append(h[0])
        x = gpt.embed_codes(code[None, None])
    if not codes:
        return torch.zeros(0, NUM_VQ, dtype=torch.long), torch.zeros(0, gpt.sizes["hidden_size"]), ended
    return torch.stack(codes), torch.stack(hidden), ended
