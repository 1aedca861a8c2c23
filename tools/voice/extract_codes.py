# SPDX-License-Identifier: Apache-2.0
"""The DVAE's codes of every recording -> codes.npz (names, codes [steps, 4], offsets, dvae_step). Only new recordings are encoded."""
import os

import numpy as np
import torch

import checkpoints
from dataset import read_audio
from dvae import Dvae
from features import Mel
from progress import Progress
from voices import SIZES
from workspace import Workspace, lowest_priority


def known_codes(path, step):
    """{name: codes} of an earlier call with the same DVAE"""
    if not os.path.exists(path):
        return {}
    with np.load(path) as z:
        if int(z["dvae_step"]) != step:
            return {}
        codes, offsets = z["codes"], z["offsets"]
        return {name: codes[offsets[i]:offsets[i + 1]] for i, name in enumerate(z["names"].tolist())}


def write_codes(path, codes, step):
    """codes: {name: [steps, 4]}"""
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in codes.values()])])
    with open(path + ".tmp", "wb") as f:
        np.savez(f, names=np.array(list(codes)), codes=np.concatenate(list(codes.values())).astype(np.uint16), offsets=offsets, dvae_step=step)
    os.replace(path + ".tmp", path)


def usage(codes):
    """Entropy in nats of each code, and how many of its 625 values occur."""
    out = []
    for column in np.concatenate(list(codes.values())).T:
        share = np.bincount(column, minlength=625) / len(column)
        share = share[share > 0]
        out.append((round(float(-(share * np.log(share)).sum()), 2), len(share)))
    return out


def main():
    lowest_priority()
    torch.set_num_threads(1)
    work = Workspace()
    net = Dvae(SIZES["dvae"]).eval()
    found = checkpoints.load(work.checkpoint("dvae"), net)
    if found is None:
        return "no DVAE yet: run train_dvae.py, or import_nano.py for the shipped one"
    step = int(found["step"])
    rows, known, codes, mel, progress = work.manifest(), known_codes(work.codes, step), {}, Mel(), Progress("codes")
    with torch.inference_mode():
        for number, row in enumerate(rows):
            name = f"{row['id']}/{row['voice']}"
            if name in known:
                codes[name] = known[name]
                continue
            work.wait_while_paused()
            m = mel.of_recording(read_audio(work, row))[None]
            y, c = net(m)
            codes[name] = c[0].T.numpy().astype(np.uint16)
            progress.add(number, (number + 1) / len(rows), {"mel": float((y - m).abs().mean())})
    if not codes:
        return "no recordings: run synthesize.py first"
    write_codes(work.codes, codes, step)
    print(f"codes: {len(codes)} recordings, {sum(map(len, codes.values()))} steps; entropy and values in use of each code {usage(codes)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
