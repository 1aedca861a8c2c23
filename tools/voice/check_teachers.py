# SPDX-License-Identifier: Apache-2.0
"""Which teacher voices are worth learning? Each reads a few sentences, Whisper writes them down. -> teachers.jsonl, best first on the screen

  python check_teachers.py zm_yunyang zm_yunxi am_michael --lang zh,en --count 10
"""
import argparse
import time

import numpy as np

import workspace  # noqa: F401  (first: makes the other tools importable)
from eval_voice import Recogniser, group_of
from evaluate import sentences, wav_bytes
from features import SAMPLE_RATE
from phones import text_to_symbols
from recordings import loudness, trim
from speech_scoring import compare
from symbols import teacher_spelling
from teacher import Teacher
from tones import by_recogniser
from workspace import Workspace, append_jsonl, lowest_priority


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("voices", nargs="+")
    p.add_argument("--lang", default="zh,en")
    p.add_argument("--count", type=int, default=10)
    p.add_argument("--pace", type=float, default=1.0)
    a = p.parse_args()
    lowest_priority()
    work = Workspace()
    teacher, hear, results = Teacher(work), Recogniser(work.path("whisper-base"), 1), []
    for voice in a.voices:
        for lang in a.lang.split(","):
            wanted = sentences([lang], 0)
            wanted = [s for s in wanted if 6 <= len(text_to_symbols(s["spoken"])) <= 80 and group_of(s) == lang]
            sums, levels, seconds, symbols = np.zeros(4, int), [], 0.0, 0
            for s in wanted[::max(1, len(wanted) // a.count)][:a.count]:
                work.wait_while_paused()
                said = text_to_symbols(s["spoken"])
                wave, _ = trim(*teacher(teacher_spelling(said), voice, a.pace))
                heard = hear(wav_bytes(wave), lang)
                scores = compare(lang, lang, s["spoken"], heard)
                sums += [*scores["syllable_error" if lang == "zh" else "wer"], *(by_recogniser(s["spoken"], heard) if lang == "zh" else (0, 0))]
                levels.append(loudness(wave))
                seconds += len(wave) / SAMPLE_RATE
                symbols += len(said)
            row = {"time": time.strftime("%Y-%m-%dT%H:%M:%S"), "voice": voice, "lang": lang, "sentences": len(levels), "pace": a.pace, "error": round(float(sums[0] / max(1, sums[1])), 4),
                   "tones": round(float(sums[2] / max(1, sums[3])), 4), "lufs": round(float(np.mean(levels)), 1), "seconds_per_symbol": round(seconds / symbols, 4)}
            results.append(row)
            append_jsonl(work.made("teachers.jsonl"), row)
            print(row, flush=True)
    for row in sorted(results, key=lambda r: (r["lang"], r["error"])):
        print(f"{row['lang']} {row['voice']:14} {100 * row['error']:5.1f} % tones {100 * row['tones']:4.1f} % {row['lufs']:6.1f} LUFS {row['seconds_per_symbol'] * 1000:5.1f} ms a symbol")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
