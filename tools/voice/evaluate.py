# SPDX-License-Identifier: Apache-2.0
"""How well is the voice understood? Sentences are synthesised, Whisper writes them down, errors are counted; beside it the teacher, same script.

  python evaluate.py --of checkpoints --seeds 5            the averaged weights of the training folder
  python evaluate.py --of ../../models/nano --seeds 5      an exported model
  python evaluate.py --of teacher | vocos | codes          the teacher; its spectrograms through Vocos; its sound through the DVAE's codes

Counted: toneless-syllable error, characters, words, mixed sentences and numbers apart; tones by the recogniser and (--tones) by pitch contour
against the teacher; utterances that did not end, lost or repeated half of their text; loudness and its spread; log-spectral distance.
Sentences: tests/data/sentences.jsonl and texts/evaluation.jsonl, spoken form. Each utterance is one line of evaluation/<name>.jsonl: a run that
was stopped goes on where it was.
"""
import argparse
import io
import os
import time

import numpy as np
import soundfile
import torch

import workspace  # noqa: F401  (first: makes the other tools importable)
from eval_voice import GROUPS, Recogniser, Totals, group_of
from features import SAMPLE_RATE, Mel
from phones import text_to_symbols
from progress import Progress
from recordings import loudness, trim
from speech_models import Voice, distance_db
from speech_scoring import compare
from symbols import teacher_spelling
from teacher import Teacher
from tones import by_contour, by_recogniser
from voices import SPEAKERS
from workspace import HERE, ROOT, Workspace, append_jsonl, lowest_priority, read_jsonl

REPORTED = {"cer": "characters", "syllable_error": "syllables", "wer": "words", "mer": "mixed", "tone": "tones", "contour": "contours"}


def sentences(groups, limit):
    rows = read_jsonl(os.path.join(ROOT, "tests", "data", "sentences.jsonl")) + read_jsonl(os.path.join(HERE, "texts", "evaluation.jsonl"))
    out, count = [], dict.fromkeys(GROUPS, 0)
    for row in rows:
        group = group_of(row)
        if group in groups and (not limit or count[group] < limit):
            count[group] += 1
            out.append(row)
    return out


class TeacherReads:
    """The teacher's reading of a text, trimmed as for training; kept for the sentence that comes next."""

    def __init__(self, work):
        self.teacher, self.last = Teacher(work), (None, None)

    def __call__(self, text, speaker):
        if self.last[0] != (text, speaker.teacher):
            symbols = text_to_symbols(text)
            wave, starts = trim(*self.teacher(teacher_spelling(symbols), speaker.teacher, speaker.pace))
            self.last = (text, speaker.teacher), (wave, symbols, starts)
        return self.last[1]


def wav_bytes(wave):
    out = io.BytesIO()
    soundfile.write(out, np.clip(wave, -1, 1), SAMPLE_RATE, format="WAV", subtype="PCM_16")
    return out.getvalue()


def went_wrong(errors, length, heard, ended):
    """'' or what is wrong with an utterance beyond single errors."""
    if not ended:
        return "endless"
    if length >= 4 and errors >= length and heard > 1.5 * length:
        return "looped"
    return "lost" if length >= 4 and heard < 0.5 * length else ""


def summary(rows):
    """-> {group: rates...} and counts over everything"""
    totals = Totals()
    for row in rows:
        totals.add(row["group"], row["scores"], row["seconds"])
    out = {"groups": totals.summary(), "utterances": len(rows)}
    for kind in ("endless", "looped", "lost"):
        out[kind] = sum(row["wrong"] == kind for row in rows)
    levels = [row["lufs"] for row in rows if row["lufs"] is not None]
    if levels:
        out["lufs"], out["lufs_spread"] = round(float(np.mean(levels)), 2), round(float(np.std(levels)), 2)
    distances = [row["distance_db"] for row in rows if row.get("distance_db") is not None]
    if distances:
        out["distance_db"] = round(float(np.mean(distances)), 2)
    return out


def lines(result):
    for group, rates in result["groups"].items():
        found = ", ".join(f"{label} {100 * rates[m]['rate']:.1f} % ({rates[m]['errors']}/{rates[m]['reference']})" for m, label in REPORTED.items() if m in rates)
        yield f"{group:8} {rates['sentences']:4} utterances {rates['audio_seconds']:7.1f} s: {found}"
    yield ", ".join(f"{k} {result[k]}" for k in ("utterances", "endless", "looped", "lost", "lufs", "lufs_spread", "distance_db") if k in result)


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--of", default="checkpoints", help="checkpoints, teacher, vocos, codes, or the folder of an exported model (default: %(default)s)")
    p.add_argument("--name", help="name of the result (default: from --of, speaker, temperature and step)")
    p.add_argument("--speaker", default="xiaobei", help="id of a voice (default: %(default)s)")
    p.add_argument("--groups", default=",".join(GROUPS))
    p.add_argument("--limit", type=int, default=0, help="at most so many sentences a group")
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--temperature", type=float, default=0.3)
    p.add_argument("--tones", action="store_true", help="also compare pitch contours (the teacher reads everything too)")
    p.add_argument("--keep", action="store_true", help="keep the sound of seed 0 as samples/<name>/<id>.flac")
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


def main():
    a = parse()
    lowest_priority()
    torch.set_num_threads(a.threads)
    work = Workspace()
    speaker = next((s for s in SPEAKERS if s.id == a.speaker), None)
    if speaker is None:
        return f"no speaker {a.speaker}; there are {', '.join(s.id for s in SPEAKERS)}"
    made = a.of not in ("teacher", "vocos", "codes")
    voice = None if a.of == "teacher" else Voice(a.of if made and a.of != "checkpoints" else work)
    name = a.name or "_".join([os.path.basename(os.path.normpath(a.of)), a.speaker, *([f"t{a.temperature:g}"] if made else []), *([str(voice.steps["gpt"])] if voice and voice.steps else [])])
    reads = TeacherReads(work) if a.tones or not made else None
    mel = Mel()

    def rows_of(wave):
        return mel(torch.from_numpy(np.ascontiguousarray(wave, np.float32))[None])[0].T.numpy()
    path = work.made("evaluation", name + ".jsonl")
    done = {(r["id"], r["seed"]) for r in read_jsonl(path)} if os.path.exists(path) else set()
    able = [s for s in sentences(a.groups.split(","), a.limit) if s["lang"] in speaker.languages and (group_of(s) != "mixed" or "mix" in speaker.reads)]
    todo = [(s, seed) for s in able for seed in range(a.seeds if made else 1) if (s["id"], seed) not in done]
    hear, progress = Recogniser(work.path("whisper-base"), a.threads), Progress("evaluation", seconds=15)
    for number, (s, seed) in enumerate(todo):
        work.wait_while_paused()
        text, started, distance, ended = s["spoken"], time.process_time(), None, True
        theirs = reads(text, speaker) if reads and (not made or s["lang"] == "zh") else None
        if made:
            wave, _, ended = voice.say(text, speaker.teacher, temperature=a.temperature, seed=seed)
        else:
            wave = theirs[0]
            if voice:
                wave = voice.copy(mel, (np.clip(wave, -1, 1) * 32767).astype(np.int16), a.of == "codes")
                distance = round(distance_db(torch.from_numpy(theirs[0]), torch.from_numpy(wave)), 3)
        spent = time.process_time() - started
        heard = hear(wav_bytes(wave), s["lang"])
        group = group_of(s)
        scores = {m: list(v) for m, v in compare(s["lang"], group, text, heard).items()}
        if s["lang"] == "zh" and group != "mixed":
            scores["tone"] = list(by_recogniser(text, heard))
            if a.tones and made:
                scores["contour"] = list(by_contour(rows_of, wave, theirs[0], theirs[1], theirs[2]))
        errors, length = next(iter(scores.values()))
        level = loudness(wave)
        row = {"id": s["id"], "seed": seed, "group": group, "seconds": round(len(wave) / SAMPLE_RATE, 3), "spent": round(spent, 3), "scores": scores,
               "wrong": went_wrong(errors, length, len(heard) / max(1, len(text)) * length, ended), "lufs": round(level, 2) if np.isfinite(level) else None,
               "distance_db": distance, "text": text, "heard": heard}
        append_jsonl(path, row)
        if a.keep and seed == 0:
            soundfile.write(work.made("samples", name, s["id"] + ".flac"), np.clip(wave, -1, 1), SAMPLE_RATE)
        progress.add(number, (number + 1) / len(todo), {"error": errors / max(1, length)})
    result = summary(read_jsonl(path))
    print("\n".join(lines(result)), flush=True)
    append_jsonl(work.path("results.jsonl"), {"time": time.strftime("%Y-%m-%dT%H:%M:%S"), "name": name, "of": a.of, "speaker": a.speaker, "temperature": a.temperature,
                                              "steps": voice.steps if voice else {}, **result})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
