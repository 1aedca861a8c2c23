# SPDX-License-Identifier: Apache-2.0
"""A page for the ear: teacher, its spectrogram made sound again, and the voice, side by side for twenty sentences, as small Opus files.

  python listening_page.py [--of checkpoints | FOLDER] [--out DIR]       default: samples/index.html in the training folder; needs opusenc
"""
import argparse
import html
import os
import subprocess

import numpy as np
import soundfile
import torch

import workspace  # noqa: F401  (first: makes the other tools importable)
from evaluate import TeacherReads, sentences
from eval_voice import GROUPS
from features import SAMPLE_RATE, Mel
from speech_models import Voice
from voices import SPEAKERS
from workspace import Workspace, lowest_priority

STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}td,th{padding:.3rem .6rem;text-align:left;vertical-align:top}audio{width:13rem}"


def opus(path, wave):
    scratch = path + ".wav"
    soundfile.write(scratch, np.clip(wave, -1, 1), SAMPLE_RATE, subtype="PCM_16")
    subprocess.run(["opusenc", "--quiet", "--bitrate", "32", scratch, path], check=True)
    os.remove(scratch)


def page(rows):
    """rows: [(speaker, text, [(column, file)])]"""
    columns = [c for c, _ in rows[0][2]]
    out = [f"<!doctype html><meta charset=utf-8><title>The nano voice</title><style>{STYLE}</style><h1>The nano voice beside its teacher</h1>",
           "<p>Teacher: Kokoro-82M. Resynthesis: the teacher's spectrogram through the voice's own vocoder. Model: text to sound by the voice.</p><table>",
           "<tr><th>speaker<th>text" + "".join(f"<th>{c}" for c in columns)]
    for speaker, said, files in rows:
        cells = "".join(f'<td><audio controls preload=none src="{html.escape(f)}"></audio>' for _, f in files)
        out.append(f"<tr><td>{speaker}<td>{html.escape(said)}{cells}")
    return "\n".join(out) + "\n</table>\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--of", default="checkpoints")
    p.add_argument("--out")
    p.add_argument("--count", type=int, default=20)
    a = p.parse_args()
    lowest_priority()
    torch.set_num_threads(1)
    work = Workspace()
    out = a.out or work.path("samples")
    os.makedirs(out, exist_ok=True)
    voice, reads, mel, rows = Voice(work if a.of == "checkpoints" else a.of), TeacherReads(work), Mel(), []
    chosen = sentences(GROUPS, 0)
    chosen = [chosen[i * len(chosen) // a.count] for i in range(min(a.count, len(chosen)))]
    for number, s in enumerate(chosen):
        able = [v for v in SPEAKERS if (s["lang"] if "-mix-" not in s["id"] else "mix") in v.reads and v.teacher in voice.known]
        speaker = able[number % len(able)]
        theirs = reads(s["spoken"], speaker)[0]
        made = {"teacher": theirs, "resynthesis": voice.copy(mel, (np.clip(theirs, -1, 1) * 32767).astype(np.int16)), "model": voice.say(s["spoken"], speaker.teacher)[0]}
        files = []
        for column, wave in made.items():
            name = f"{s['id']}_{column}.opus"
            opus(os.path.join(out, name), wave)
            files.append((column, name))
        rows.append((speaker.title, s["spoken"], files))
        print(f"{number + 1}/{len(chosen)} {s['id']}", flush=True)
    with open(os.path.join(out, "index.html"), "w", encoding="utf-8") as f:
        f.write(page(rows))
    print(os.path.join(out, "index.html"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
