# SPDX-License-Identifier: Apache-2.0
"""Pictures of a training: python plots.py  ->  plots/<run>.png (one curve below the other) and, for --spectrograms A.flac B.flac ..., plots/spectrograms.png

Every curve has its own panel, in the order that is printed; the horizontal axis is the step.
"""
import argparse
import glob
import os

import numpy as np
import soundfile
import torch

import png
from features import Mel
from workspace import Workspace, read_jsonl

KEYS_LEFT_OUT = ("time", "step", "rate")


def smoothed(values, width):
    kernel = np.ones(width) / width
    return np.convolve(np.pad(values, (width // 2, width - 1 - width // 2), mode="edge"), kernel, "valid")


def of_run(path):
    """-> picture, names of its panels"""
    rows = read_jsonl(path)
    names = sorted({k for row in rows for k in row if k not in KEYS_LEFT_OUT})
    panels = []
    for name in names:
        points = [(row["step"], row[name]) for row in rows if name in row]
        x, y = np.array(points, float).T
        panels.append(png.curves([(x, y), (x, smoothed(y, max(1, min(21, len(y) // 4))))], height=240))
    return png.stacked(panels) if panels else None, names


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--spectrograms", nargs="+", metavar="FILE", help="recordings to draw below each other")
    a = p.parse_args()
    work, mel = Workspace(), Mel()
    for path in sorted(glob.glob(work.path("curves", "*.jsonl"))):
        image, names = of_run(path)
        if image is not None:
            out = work.made("plots", os.path.basename(path).replace(".jsonl", ".png"))
            png.write(out, image)
            print(f"{out}: {', '.join(names)}")
    if a.spectrograms:
        images = [png.spectrogram(mel(torch.from_numpy(soundfile.read(f, dtype="float32")[0])[None])[0].numpy()) for f in a.spectrograms]
        png.write(work.made("plots", "spectrograms.png"), png.stacked(images))
        print(work.path("plots", "spectrograms.png"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
