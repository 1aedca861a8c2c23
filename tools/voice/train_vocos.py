# SPDX-License-Identifier: Apache-2.0
"""Vocos on random pieces of the recordings: L1 of the log mel plus spectral distances at three resolutions; critics in the last part of the run.

The critics (--critics-from, a share of the run) remove what the distances cannot see: buzz and smeared transients. A share of the input
spectrograms is blurred a little, because the GPT's Decoder gives smoother ones than recordings have.
"""
import argparse
import random

import torch
from torch import nn
from torch.nn import functional as F

from dataset import crops, read_audio, split
from features import Mel
from schedule import Schedule, clock_time
from speech_models import spectral_distance
from training import Run, adamw
from vocos import Critics, Vocos
from voices import SIZES
from workspace import Workspace, lowest_priority

FRAMES = 64
RESOLUTIONS = ((512, 128), (1024, 256), (2048, 512))


class SpectralLoss(nn.Module):
    """Relative error of the magnitudes and L1 of their logarithms, averaged over RESOLUTIONS."""

    def forward(self, x, y):
        total = 0.0
        for size, hop in RESOLUTIONS:
            window = torch.hann_window(size)
            a, b = (torch.stft(w, size, hop, window=window, return_complex=True) for w in (x, y))
            a, b = ((s.real.square() + s.imag.square() + 1e-7).sqrt() for s in (a, b))
            total = total + torch.norm(b - a) / torch.norm(b).clamp(min=1e-3) + F.l1_loss(torch.log(a + 1e-4), torch.log(b + 1e-4))
        return total / len(RESOLUTIONS)


def blurred(mel, share, chance):
    """A share of the spectrograms smoothed over three frames."""
    if share <= 0:
        return mel
    soft = F.avg_pool1d(F.pad(mel, (1, 1), mode="replicate"), 3, 1)
    chosen = torch.rand(len(mel), 1, 1, generator=chance) < share
    return torch.where(chosen, 0.5 * (mel + soft), mel)


def critic_losses(critics, fake, real):
    """-> what the vocoder gets for fooling them, distance of their features"""
    judged, known = critics(fake), critics(real)
    fooled = sum(F.relu(1 - verdict.float()).mean() for verdict, _ in judged)
    alike = sum(F.l1_loss(a.float(), b.detach().float()) for (_, fa), (_, fb) in zip(judged, known) for a, b in zip(fa, fb))
    return fooled, alike


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hours", type=float, required=True, help="core-hours of the whole run")
    p.add_argument("--until", help="HH:MM, +90m or +2h")
    p.add_argument("--stop-share", type=float, default=1.0)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--rate", type=float, default=1e-3)
    p.add_argument("--blur", type=float, default=0.2, help="share of blurred input (default: %(default)s)")
    p.add_argument("--critics-from", type=float, default=0.6, help="share of the run without critics; 1 = never (default: %(default)s)")
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    lowest_priority()
    torch.set_num_threads(a.threads)
    work = Workspace()
    train, held = split(work.manifest())
    if not train:
        return "no recordings: run synthesize.py first"
    waves = [read_audio(work, r) for r in train]
    net, critics, mel, distance = Vocos(SIZES["vocos"]), Critics(), Mel(), SpectralLoss()
    run = Run(work, "vocos", {"vocos": net}, lambda m: adamw(m, 0.01, (0.8, 0.98)), Schedule(a.rate, a.hours, deadline=clock_time(a.until) if a.until else None),
              a.stop_share)
    judge = torch.optim.AdamW(critics.parameters(), lr=a.rate, betas=(0.8, 0.98), fused=True)
    if "critics" in run.extra:
        critics.load_state_dict(run.extra["critics"])
        judge.load_state_dict(run.extra["judge"])
    chance, noise = random.Random(run.step + 7), torch.Generator().manual_seed(run.step)
    for step in run:
        y = crops(waves, a.batch, FRAMES, chance)
        with torch.no_grad():
            m = blurred(mel(y), a.blur, noise)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = net(m)
        y = y[:, :x.shape[1]]
        near, far = F.l1_loss(mel(x), mel(y)), distance(x, y)
        loss, shown = near + far, {"mel": near.item(), "spectrum": far.item()}
        if run.share() >= a.critics_from:
            judge.param_groups[0]["lr"] = run.rate
            with torch.autocast("cpu", dtype=torch.bfloat16):
                verdicts = zip(critics(y), critics(x.detach()))
                judged = sum(F.relu(1 - r.float()).mean() + F.relu(1 + f.float()).mean() for (r, _), (f, _) in verdicts)
            judge.zero_grad(set_to_none=True)
            judged.backward()
            judge.step()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                fooled, alike = critic_losses(critics, x, y)
            loss = 5 * loss + 0.3 * fooled + 0.5 * alike
            shown.update(fooled=fooled.item(), alike=alike.item(), critics=judged.item())
            run.extra.update(critics=critics.state_dict(), judge=judge.state_dict())
        run.update(loss, shown, clip=10.0)
    net = run.average.module["vocos"]
    with torch.inference_mode():
        far = [spectral_distance(mel, w, net) for w in (read_audio(work, r) for r in held)]
    if far:
        print(f"vocos: log-spectral distance on held-out recordings {sum(far) / len(far):.2f} dB", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
