# SPDX-License-Identifier: Apache-2.0
"""DVAE on random pieces of the recordings: L1 of the log mel, gradients straight through the rounding.

Training it further changes what the codes mean: codes.npz and the GPT are then made anew (extract_codes.py notices by itself).
"""
import argparse
import random

import torch
from torch.nn import functional as F

from dataset import crops, read_audio, split
from dvae import Dvae
from features import Mel
from schedule import Schedule, clock_time
from training import Run, adamw
from voices import SIZES
from workspace import Workspace, lowest_priority

FRAMES, MARGIN = 96, 2  # pieces of one second; the margin keeps the edge of the analysis out


def measure_bands(mel, waves):
    """Level of each band over the training data -> [1, 100, 1]"""
    m = mel(crops(waves, 256, FRAMES, random.Random(0)))
    return m.pow(2).mean((0, 2), keepdim=True).sqrt()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hours", type=float, required=True, help="core-hours of the whole run")
    p.add_argument("--until", help="HH:MM, +90m or +2h")
    p.add_argument("--stop-share", type=float, default=1.0)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--rate", type=float, default=1.2e-3)
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    lowest_priority()
    torch.set_num_threads(a.threads)
    work = Workspace()
    train, held = split(work.manifest())
    if not train:
        return "no recordings: run synthesize.py first"
    waves, tests = [read_audio(work, r) for r in train], [read_audio(work, r) for r in held]
    net, mel = Dvae(SIZES["dvae"]), Mel()
    net.coef.copy_(measure_bands(mel, waves))  # replaced by the checkpoint's when there is one
    run = Run(work, "dvae", {"dvae": net}, lambda m: adamw(m, 0.01), Schedule(a.rate, a.hours, deadline=clock_time(a.until) if a.until else None), a.stop_share)
    chance = random.Random(run.step + 1)
    for _ in run:
        with torch.no_grad():
            m = mel(crops(waves, a.batch, FRAMES + 2 * MARGIN, chance))[:, :, MARGIN:-MARGIN]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y, _ = net(m)
        loss = F.l1_loss(y.float(), m)
        run.update(loss, {"mel": loss.item()})
    net = run.average.module["dvae"]
    with torch.inference_mode():
        errors = [float((net(m)[0] - m).abs().mean()) for m in (mel.of_recording(w)[None] for w in tests)]
    if errors:
        print(f"dvae: mel L1 on held-out recordings {sum(errors) / len(errors):.4f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
