# SPDX-License-Identifier: Apache-2.0
"""The teacher reads the corpus. Resumable; several workers share the corpus by line number.

  python synthesize.py --worker 0 --workers 2 [--hours 4] [--until 02:30]

Writes audio/<voice>/<id>.flac and one row of manifest/<worker>.jsonl for each: {"id", "voice", "lang", "kind", "text", "symbols": [ids],
"starts": [first sample of each symbol, end of the last], "samples", "speed": symbol or absent}.
"""
import argparse
import os
import time

import numpy as np
import soundfile

from features import SAMPLE_RATE
from phones import text_to_symbols
from progress import Progress
from recordings import lengthen_pauses, level, trim
from schedule import clock_time
from symbols import PAUSES, SPEEDS, ids, teacher_spelling
from teacher import Teacher
from voices import SPEAKERS
from workspace import Workspace, append_jsonl, lowest_priority, read_jsonl

SHORTEST, LONGEST = 0.3, 16.0  # seconds
SYMBOLS_AT_MOST = 300
PACE = {s.teacher: s.pace for s in SPEAKERS}


def read_aloud(teacher, row):
    """-> (samples, symbols, starts), or None when the sentence cannot be used"""
    symbols = text_to_symbols(row["text"])
    if not 2 <= len(symbols) <= SYMBOLS_AT_MOST:
        return None
    pace = PACE[row["voice"]] * SPEEDS.get(row.get("speed"), 1.0)
    wave, starts = trim(*teacher(teacher_spelling(symbols), row["voice"], pace))
    if wave is None:
        return None
    wave, starts = lengthen_pauses(wave, starts, {i: PAUSES[s] for i, s in enumerate(symbols) if s in PAUSES})
    if not SHORTEST <= len(wave) / SAMPLE_RATE <= LONGEST:
        return None
    return level(wave), symbols, starts


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--worker", type=int, default=0)
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--hours", type=float, default=24.0, help="stop when so much audio is there, all workers together (default: %(default)s)")
    p.add_argument("--until", help="HH:MM, +90m or +2h")
    a = p.parse_args()
    lowest_priority()
    work = Workspace()
    end = clock_time(a.until) if a.until else None
    done, seconds = set(), 0.0
    for row in work.manifest():
        done.add((row["id"], row["voice"]))
        seconds += row["samples"] / SAMPLE_RATE
    if seconds >= a.hours * 3600:
        return 0
    # The others make as much as this one meanwhile.
    mine, wanted = 0.0, (a.hours * 3600 - seconds) / a.workers
    teacher, progress = Teacher(work), Progress(f"synthesis {a.worker}")
    manifest = work.made("manifest", f"{a.worker}.jsonl")
    for number, row in enumerate(read_jsonl(work.corpus)):
        if number % a.workers != a.worker or (row["id"], row["voice"]) in done:
            continue
        if mine >= wanted or (end and time.time() >= end):
            break
        work.wait_while_paused()
        spoken = read_aloud(teacher, row)
        if spoken is None:
            continue
        wave, symbols, starts = spoken
        path = work.audio(row)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        soundfile.write(path, np.clip(wave, -1, 1), SAMPLE_RATE, subtype="PCM_16")
        append_jsonl(manifest, {**row, "symbols": ids(symbols), "starts": [int(s) for s in starts], "samples": len(wave)})
        mine += len(wave) / SAMPLE_RATE
        progress.add(number, min(1.0, mine / wanted), {}, hours=(seconds + mine * a.workers) / 3600)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
