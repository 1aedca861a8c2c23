#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How intelligible is a voice? Synthesise test sentences, let Whisper write them down, count the errors.

  pip install -r tools/eval_requirements.txt                        # and see tools/README.md for the Whisper model
  python3 tools/eval_voice.py --whisper-dir DIR --url http://127.0.0.1:8080/synthesize --voice xiaobei
  python3 tools/eval_voice.py --whisper-dir DIR --say build/release/bin/chattts-server --voice heart --groups en
  python3 tools/eval_voice.py --wav-dir DIR2 --whisper-dir DIR      # recordings made elsewhere: DIR2/<id>.wav

Groups: zh and en (plain sentences), mixed (Mandarin with English words), numbers (dates, prices, phone numbers: tests the text normaliser too).
Printed per group: CER and toneless syllable error for Mandarin, WER for English, mixed error rate (characters and words) for mixed. The
recogniser errs too: real recordings score a few percent, and homophones count as character errors, which the syllable rate forgives.
"""
import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import wave

from speech_scoring import compare

HERE = os.path.dirname(os.path.abspath(__file__))
GROUPS = ("zh", "en", "mixed", "numbers")
LABELS = {"cer": "CER", "syllable_error": "syllable error", "wer": "WER", "mer": "mixed error"}


def group_of(sentence):
    if "-num-" in sentence["id"]:
        return "numbers"
    return "mixed" if "-mix-" in sentence["id"] else sentence["lang"]


def load_sentences(path, groups, limit, ids):
    out, count = [], dict.fromkeys(GROUPS, 0)
    with open(path, encoding="utf-8") as f:
        for s in map(json.loads, f):
            g = group_of(s)
            if g not in groups or (ids and s["id"] not in ids) or (limit and count[g] >= limit):
                continue
            count[g] += 1
            out.append(s)
    return out


def from_server(a, text):
    body = json.dumps({"text": text, "voice": a.voice, "format": "wav", "seed": a.seed}).encode()
    request = urllib.request.Request(a.url, body, {"Content-Type": "application/json", **({"Authorization": f"Bearer {a.api_key}"} if a.api_key else {})})
    try:
        with urllib.request.urlopen(request, timeout=a.timeout) as reply:
            return reply.read()
    except urllib.error.HTTPError as e:
        raise RuntimeError(f"HTTP {e.code}: {e.read(400).decode('utf-8', 'replace')}") from None
    except (urllib.error.URLError, OSError) as e:
        raise RuntimeError(f"{a.url}: {getattr(e, 'reason', e)}") from None


def from_program(a, text):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "x.wav")
        command = [a.say, "say", text, "-o", path, "--voice", a.voice, "--seed", str(a.seed), *a.say_args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=a.timeout, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{a.say} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
        with open(path, "rb") as f:
            return f.read()


def from_folder(a, sentence_id):
    with open(os.path.join(a.wav_dir, sentence_id + ".wav"), "rb") as f:
        return f.read()


def wav_seconds(data):
    """Length by the bytes that are there: a streamed WAV's header may claim an unknown length."""
    try:
        with wave.open(io.BytesIO(data)) as w:
            width, rate = w.getsampwidth() * w.getnchannels(), w.getframerate()
            return min(w.getnframes() * width, len(data)) / width / rate
    except (wave.Error, EOFError) as e:
        raise RuntimeError(f"not a WAV file: {e}") from None


class Recogniser:
    PROMPT = {"zh": "以下是普通话的句子。"}  # makes Whisper write simplified characters and punctuation

    def __init__(self, folder, threads):
        from faster_whisper import WhisperModel, decode_audio
        self.decode_audio = decode_audio
        self.model = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True)

    def __call__(self, wav, lang):
        audio = self.decode_audio(io.BytesIO(wav), sampling_rate=16000)
        segments, _ = self.model.transcribe(audio, language=lang, beam_size=3, condition_on_previous_text=False, without_timestamps=True,
                                            temperature=0.0, initial_prompt=self.PROMPT.get(lang))
        return "".join(s.text for s in segments).strip()


class Totals:
    def __init__(self):
        self.sums, self.sentences, self.seconds = {}, {}, {}

    def add(self, group, scores, seconds):
        self.sentences[group] = self.sentences.get(group, 0) + 1
        self.seconds[group] = self.seconds.get(group, 0.0) + seconds
        for metric, (errors, length) in scores.items():
            e, n = self.sums.get((group, metric), (0, 0))
            self.sums[group, metric] = (e + errors, n + length)

    def summary(self):
        out = {}
        for group in (g for g in GROUPS if g in self.sentences):
            rates = {m: {"rate": round(e / max(1, n), 4), "errors": e, "reference": n} for (g, m), (e, n) in self.sums.items() if g == group}
            out[group] = {"sentences": self.sentences[group], "audio_seconds": round(self.seconds[group], 2), **rates}
        return out


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = p.add_mutually_exclusive_group(required=True)
    source.add_argument("--url", help="running server, e.g. http://127.0.0.1:8080/synthesize")
    source.add_argument("--say", metavar="PROGRAM", help="the server's binary, used as: PROGRAM say TEXT -o FILE --voice V --seed N")
    source.add_argument("--wav-dir", help="score recordings <id>.wav instead of synthesising")
    p.add_argument("--whisper-dir", default=os.environ.get("WHISPER_DIR"), help="faster-whisper model folder (default: $WHISPER_DIR)")
    p.add_argument("--voice", default="xiaobei")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--sentences", default=os.path.join(HERE, "..", "tests", "data", "sentences.jsonl"), help="JSON lines with id, lang, text, spoken")
    p.add_argument("--groups", default=",".join(GROUPS), help="default: %(default)s")
    p.add_argument("--ids", default="", help="only these sentences, separated by commas")
    p.add_argument("--limit", type=int, default=0, help="at most so many sentences a group")
    p.add_argument("--spoken", action="store_true", help="send the spelled-out form: leaves the text normaliser out of the result")
    p.add_argument("--keep", metavar="DIR", help="keep the audio as DIR/<id>.wav")
    p.add_argument("--out", default="eval.json", help="result file (default: %(default)s)")
    p.add_argument("--threads", type=int, default=1, help="threads of the recogniser (default: %(default)s)")
    p.add_argument("--timeout", type=float, default=120, help="seconds for one sentence (default: %(default)s)")
    p.add_argument("--api-key", default=os.environ.get("TTS_API_KEY"), help="bearer token for --url (default: $TTS_API_KEY)")
    p.add_argument("--say-args", nargs=argparse.REMAINDER, default=[], help="further arguments for --say, last on the line")
    a = p.parse_args(argv)
    a.groups = [g for g in a.groups.split(",") if g]
    a.ids = {i for i in a.ids.split(",") if i}
    unknown = [g for g in a.groups if g not in GROUPS]
    if unknown:
        p.error(f"unknown group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    if not a.whisper_dir or not os.path.isfile(os.path.join(a.whisper_dir, "model.bin")):
        p.error("--whisper-dir must name a folder with model.bin, config.json, tokenizer.json, vocabulary.txt (tools/README.md says where from)")
    return a


def main(argv=None):
    a = parse(argv)
    sentences = load_sentences(a.sentences, a.groups, a.limit, a.ids)
    if not sentences:
        return "no sentence matches"
    if a.keep:
        os.makedirs(a.keep, exist_ok=True)
    try:
        hear = Recogniser(a.whisper_dir, a.threads)
    except ImportError as e:
        return f"{e.name} is not installed: pip install -r tools/eval_requirements.txt"
    totals, rows, failures, spent = Totals(), [], [], 0.0
    for n, s in enumerate(sentences, 1):
        group, text = group_of(s), s["spoken"] if a.spoken else s["text"]
        started = time.monotonic()
        try:
            wav = from_server(a, text) if a.url else from_program(a, text) if a.say else from_folder(a, s["id"])
            elapsed = time.monotonic() - started
            seconds = wav_seconds(wav)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as e:
            failures.append({"id": s["id"], "error": str(e)})
            print(f"[{n}/{len(sentences)}] {s['id']}: failed: {e}", flush=True)
            if n == len(failures) == 3:
                print("the first three sentences failed: giving up", file=sys.stderr)
                break
            continue
        spent += elapsed
        if a.keep:
            with open(os.path.join(a.keep, s["id"] + ".wav"), "wb") as f:
                f.write(wav)
        transcript = hear(wav, s["lang"])
        scores = compare(s["lang"], group, s["spoken"], transcript)
        totals.add(group, scores, seconds)
        rows.append({"id": s["id"], "group": group, "text": text, "spoken": s["spoken"], "transcript": transcript, "audio_seconds": round(seconds, 3),
                     "synthesis_seconds": round(elapsed, 3), **{m: list(v) for m, v in scores.items()}})
        shown = " ".join(f"{LABELS[m]} {e}/{l}" for m, (e, l) in scores.items())
        print(f"[{n}/{len(sentences)}] {s['id']} {seconds:.1f} s  {shown}  {transcript}", flush=True)
    summary = totals.summary()
    audio = sum(g["audio_seconds"] for g in summary.values())
    result = {"voice": a.voice, "seed": a.seed, "source": "url" if a.url else "say" if a.say else "wav", "spoken_form": a.spoken, "time": time.strftime("%Y-%m-%dT%H:%M:%S"),
              "groups": summary, "audio_seconds": round(audio, 2), "synthesis_seconds": round(spent, 2), "failures": failures, "sentences": rows}
    with open(a.out, "w", encoding="utf-8") as f:
        json.dump(result, f, ensure_ascii=False, indent=1)
        f.write("\n")
    print()
    for group, g in summary.items():
        rates = ", ".join(f"{LABELS[m]} {100 * g[m]['rate']:.1f} %" for m in LABELS if m in g)
        print(f"{group:8} {g['sentences']:3} sentences, {g['audio_seconds']:6.1f} s of audio: {rates}")
    if a.url or a.say:
        print(f"synthesis took {spent:.1f} s for {audio:.1f} s of audio")
    print(f"{len(failures)} failures; details in {a.out}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
