#!/usr/bin/env python3
"""The server against the Python reference: same checkpoint, same text, same forced length, same machine, taking turns.

Prepare once (the second line writes 1.1 GB of random weights in the official layout):
  python3 -m venv /tmp/reference && /tmp/reference/bin/pip install -r bench/reference/requirements.txt
  .venv/bin/python3 tools/make_random_checkpoint.py /tmp/full --size official
  python3 tools/import_chattts.py /tmp/full --allow-unknown-hashes --out /tmp/full-model
Then:
  bench/reference/compare_reference.py --reference /tmp/reference/bin/python3 --checkpoint /tmp/full --model /tmp/full-model --output bench/results/NAME.json

Three questions, each as a ratio of medians with the spread of the paired runs:
  first audio   one request, streaming: seconds to the first samples
  one request   seconds of audio per second, one at a time (how the reference is usually served)
  N requests    the same with N at once: our server's batching against the reference one at a time, and against its static batch
"""
import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/load"), str(ROOT / "tests/integration")]
from server_process import ServerProcess  # noqa: E402
from speak_load import level, machine, speak  # noqa: E402

TEXT = "今天天气真不错我们一起去公园散步吧然后再去那家新开的咖啡馆坐一会儿聊聊最近发生的事情"
STEPS_PER_SECOND = 24000 / 512


class Reference:
    def __init__(self, python: str, checkpoint: str, threads: int):
        worker = Path(__file__).with_name("reference_worker.py")
        self.process = subprocess.Popen([python, str(worker), checkpoint, TEXT, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})

    def run(self, mode: str, batch: int, steps: int) -> dict:
        print(json.dumps({"mode": mode, "batch": batch, "steps": steps}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the reference ended; run bench/reference/reference_worker.py by hand to see why")
        return json.loads(line)


def spread(values: list[float]) -> dict:
    return {"median": round(statistics.median(values), 3), "min": round(min(values), 3), "max": round(max(values), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", required=True, help="Python interpreter that has the reference installed")
    parser.add_argument("--checkpoint", required=True, help="folder with asset/ for the reference")
    parser.add_argument("--model", required=True, help="the same checkpoint as imported for the server")
    parser.add_argument("--steps", type=int, default=96)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--concurrency", default="4,8")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    body = {"text": TEXT, "format": "pcm", "min_steps": arguments.steps, "max_steps": arguments.steps, "split": False}
    audio = arguments.steps / STEPS_PER_SECOND

    print(f"machine: {machine()}; {arguments.threads} threads; {arguments.steps} steps = {audio:.2f} s of audio", flush=True)
    reference = Reference(arguments.reference, arguments.checkpoint, arguments.threads)
    reference.run("offline", 1, 8)
    with ServerProcess("--compute-threads", str(arguments.threads), model=arguments.model) as server:
        asyncio.run(speak("127.0.0.1", server.port, {**body, "min_steps": 8, "max_steps": 8}))
        rows: dict[str, list[tuple[float, float]]] = {}

        def note(name: str, ours: float, theirs: float):
            rows.setdefault(name, []).append((ours, theirs))
            print(f"  {name}: ours {ours:.3f}, reference {theirs:.3f}", flush=True)

        for repeat in range(arguments.repeats):
            print(f"round {repeat + 1} of {arguments.repeats}", flush=True)
            theirs = reference.run("stream", 1, arguments.steps)
            ours = asyncio.run(speak("127.0.0.1", server.port, body))
            note("first audio, s", ours["first_byte"], theirs["first_s"])
            theirs = reference.run("offline", 1, arguments.steps)
            ours = asyncio.run(speak("127.0.0.1", server.port, body))
            serial = audio / theirs["total_s"]
            note("1 at once, audio s per s", audio / ours["total"], serial)
            for n in map(int, arguments.concurrency.split(",")):
                ours_rate = asyncio.run(level("127.0.0.1", server.port, n, n, [TEXT], {k: v for k, v in body.items() if k != "text"}))["audio_s_per_s"]
                note(f"{n} at once against one at a time, audio s per s", ours_rate, serial)
                theirs = reference.run("offline", n, arguments.steps)
                note(f"{n} at once against a static batch, audio s per s", ours_rate, n * audio / theirs["total_s"])
        memory = {"ours_mb": server.resident_bytes() >> 20, "reference_peak_mb": theirs["peak_rss_mb"]}

    report = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "threads": arguments.threads, "steps": arguments.steps, "memory": memory, "rows": {}}
    print(f"\n{'':46} {'ours':>8} {'reference':>10}   ratio median [min, max]")
    for name, pairs in rows.items():
        better_is_less = name.startswith("first")
        ratios = [t / o if better_is_less else o / t for o, t in pairs]
        report["rows"][name] = {"ours": spread([o for o, _ in pairs]), "reference": spread([t for _, t in pairs]), "times_better": spread(ratios)}
        r = report["rows"][name]
        print(f"{name:46} {r['ours']['median']:>8.2f} {r['reference']['median']:>10.2f}   {r['times_better']['median']:.2f}x [{r['times_better']['min']:.2f}, {r['times_better']['max']:.2f}]")
    print(f"resident memory: ours {memory['ours_mb']} MB, reference {memory['reference_peak_mb']} MB")
    if arguments.output:
        arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
