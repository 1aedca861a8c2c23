# SPDX-License-Identifier: Apache-2.0
"""Reading what was synthesised: recordings, codes, and utterances as the GPT sees them."""
import os
import random

import numpy as np
import torch

from features import HOP, STEP, Mel
from symbols import prompt, SYMBOLS
from voices import ROW
from workspace import is_held_out

HELD_OUT_SCORED = 48  # recordings that validation looks at: enough for two digits


def read_audio(work, row):
    import soundfile  # here: the rest is useful without it
    return soundfile.read(work.audio(row), dtype="int16")[0]


def split(rows):
    """-> rows to train on, rows held out"""
    return [r for r in rows if not is_held_out(r)], [r for r in rows if is_held_out(r)][:HELD_OUT_SCORED]


def crops(waves, count, frames, chance):
    """`count` random pieces that give exactly `frames` mel frames each -> float32 [count, samples]"""
    need = (frames - 1) * HOP
    out = np.zeros((count, need), np.float32)
    for row in out:
        wave = waves[chance.randrange(len(waves))]
        if len(wave) > need:
            at = chance.randrange(len(wave) - need)
            row[:] = wave[at:at + need]
        else:
            at = chance.randrange(need - len(wave) + 1)
            row[at:at + len(wave)] = wave
    return torch.from_numpy(out / 32768.0)


def spoken_symbol(starts, steps, count):
    """The symbol being spoken in the middle of each code step. starts: first sample of each symbol, then the end of the last."""
    middle = (np.arange(steps) + 0.5) * STEP
    return np.clip(np.searchsorted(np.asarray(starts), middle, "right") - 1, 0, count - 1)


def utterances(work, progress=None):
    """-> (training, held out): dicts with text ids, codes [T, 4], mel [100, 2T] in half precision, and the text position spoken at each step"""
    with np.load(work.codes) as z:
        place = {name: i for i, name in enumerate(z["names"].tolist())}
        codes, offsets = z["codes"], z["offsets"]
    mel, train, held = Mel(), [], []
    rows = [r for r in work.manifest() if f"{r['id']}/{r['voice']}" in place]
    with torch.no_grad():
        for row in rows:
            work.wait_while_paused()
            at = place[f"{row['id']}/{row['voice']}"]
            c = codes[offsets[at]:offsets[at + 1]].astype(np.int64)
            text = prompt([SYMBOLS[i] for i in row["symbols"]], row.get("speed"))
            before = len(text) - 1 - len(row["symbols"])  # prompt tokens in front of the first symbol
            item = dict(text=text, codes=torch.from_numpy(c), steps=len(c), length=len(text), speaker=ROW[row["voice"]],
                        mel=mel.of_recording(read_audio(work, row)).to(torch.float16),
                        spoken=torch.from_numpy(spoken_symbol(row["starts"], len(c), len(row["symbols"])) + before))
            (held if is_held_out(row) else train).append(item)
    return train, held[:HELD_OUT_SCORED]


def batches(items, budget, chance=None):
    """Index lists of similar length with at most `budget` padded positions. With `chance` lengths are jittered and the order is random."""
    size = [it["steps"] + it["length"] for it in items]
    key = [s + (chance.uniform(-12, 12) if chance else 0) for s in size]
    out, batch, longest = [], [], 0
    for i in sorted(range(len(items)), key=key.__getitem__):
        if batch and max(longest, size[i]) * (len(batch) + 1) > budget:
            out.append(batch)
            batch, longest = [], 0
        batch.append(i)
        longest = max(longest, size[i])
    if batch:
        out.append(batch)
    if chance:
        chance.shuffle(out)
    return out


def epochs(items, budget, seed):
    """Batches for ever."""
    chance = random.Random(seed)
    while True:
        for batch in batches(items, budget, chance):
            yield [items[i] for i in batch]


def have_audio(work, rows):
    return [r for r in rows if os.path.exists(work.audio(r))]
