#!/usr/bin/env python3
"""The server against the Python reference: same full-size checkpoint, same text, same forced length, same machine, taking turns.

  bench/reference/compare_reference.py --output bench/results/full_size_against_reference.json

Makes what it needs first, where that is missing (prepare.py: 2.6 GB and a few minutes, once). Then, in every round and in alternating order:

  reference   one request at a time (how it is usually served), a static batch of each size, and its stream mode
  server      for each number format: one stream, then so many at once, and the same texts as whole replies, which is how the reference makes them;
              the first audio of one stream in exact and in low-latency mode

The context is about 400 positions on average (prompt and half the steps), the end token is suppressed on both sides. Ratios are taken within a
round, between neighbours in time; printed are the medians over the rounds with the least and the most. The roof beside each figure is what
this machine's memory and arithmetic, probed in the same run, allow for the language model alone.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/integration")]
from prepare import prepare  # noqa: E402
from roof import Roof  # noqa: E402
from server_process import ServerProcess  # noqa: E402
from stream_client import speak_at_once  # noqa: E402

SENTENCE = "今天天气真不错我们一起去公园散步吧然后再去那家新开的咖啡馆坐一会儿聊聊最近发生的事情"
PROMPT_CHARACTERS = 195  # and the control tokens make about 200 positions
STEPS_PER_SECOND = 24000 / 512
FORMATS = {"float32": ("float32", "float32", "float32"), "bfloat16": ("bfloat16", "bfloat16", "bfloat16"), "int8": ("int8", "int8", "bfloat16")}
LATENCIES = ["exact", "low"]
DELIVERIES = {"streams": "/synthesize_stream", "whole": "/synthesize"}


class Reference:
    def __init__(self, python: Path, checkpoint: Path, text: str, threads: int):
        worker = Path(__file__).with_name("reference_worker.py")
        self.process = subprocess.Popen([str(python), str(worker), str(checkpoint), text, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})

    def run(self, mode: str, batch: int, steps: int) -> dict:
        print(json.dumps({"mode": mode, "batch": batch, "steps": steps}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the reference ended; run bench/reference/reference_worker.py by hand to see why")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours(ServerProcess):
    """The server with one number format and one way to deliver the first audio."""

    START_SECONDS = 300  # a large model on a slow disk

    def __init__(self, name: str, latency: str, model: Path, threads: int, slots: int):
        weights, kv, sound = FORMATS[name]
        super().__init__("--compute-threads", str(threads), "--max-batch", str(slots), "--max-wait-ms", "0", "--weights", weights, "--kv", kv, "--sound", sound,
                         "--latency", latency, model=model)
        self.name, self.latency = name, latency

    def run(self, bodies: list[dict], path: str = DELIVERIES["streams"]) -> dict:
        before = self.engine_times()
        total, answers = speak_at_once("127.0.0.1", self.port, path, bodies)
        if (made := {answer["bytes"] for answer in answers}) != {2 * (2 * bodies[0]["max_steps"] - 1) * 256}:
            raise SystemExit(f"the server sent {made} bytes, not what {bodies[0]['max_steps']} steps are")
        steps, stepping, decoding = (after - b for after, b in zip(self.engine_times(), before))
        return {"total": total, "first": statistics.median(answer["first_byte"] for answer in answers), "step": stepping / steps,
                "decode_share": decoding / (stepping + decoding)}

    def engine_times(self) -> list[float]:
        return [self.metric(name) for name in ("tts_step_seconds_count", "tts_step_seconds_sum", "tts_decode_seconds_sum")]


def spread(values: list[float]) -> dict:
    return {"median": round(statistics.median(values), 4), "min": round(min(values), 4), "max": round(max(values), 4)}


def machine() -> str:
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="ascii") if line.startswith("model name")), "?")
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


class Progress:
    """Says what runs and, from the second round on, when it will be over."""

    def __init__(self, rounds: int):
        self.rounds, self.began, self.round = rounds, time.monotonic(), 0

    def begin_round(self):
        left = ""
        if self.round:
            left = f", about {(time.monotonic() - self.began) / self.round * (self.rounds - self.round) / 60:.0f} minutes left"
        self.round += 1
        print(f"round {self.round} of {self.rounds}{left}", flush=True)

    @staticmethod
    def say(text: str):
        print("  " + text, flush=True)


class Comparison:
    def __init__(self, arguments, reference: Reference, servers: list[Ours], text: str):
        self.arguments, self.reference, self.servers = arguments, reference, servers
        self.body = {"text": text, "format": "pcm", "split": False}
        self.audio = (2 * arguments.steps - 1) * 256 / 24000  # s that so many steps become
        self.figures: dict[str, list[float]] = {}  # by name, one a round
        self.memory: dict[str, int] = {}

    def note(self, name: str, value: float, unit: str):
        self.figures.setdefault(name, []).append(value)
        Progress.say(f"{name}: {value:.3f} {unit}")

    def forced(self, steps: int, seed: int, **fields) -> dict:
        return {**self.body, "min_steps": steps, "max_steps": steps, "seed": seed, **fields}

    def warm_up(self):
        self.reference.run("offline", 1, 8)
        for server in self.servers:
            before = server.metric("tts_prefill_tokens_total")
            server.run([self.forced(8, 0)])
            self.prompt_tokens = int(server.metric("tts_prefill_tokens_total") - before)

    def reference_alone(self):
        self.note("reference, one at a time", self.audio / self.reference.run("offline", 1, self.arguments.steps)["total_s"], "audio s per s")

    def reference_batch(self, streams: int):
        answer = self.reference.run("offline", streams, self.arguments.steps)
        self.note(f"reference, static batch of {streams}", streams * self.audio / answer["total_s"], "audio s per s")
        self.memory[f"reference_peak_{streams}"] = answer["peak_rss_mb"]

    def reference_stream(self):
        self.note("reference, first audio", self.reference.run("stream", 1, self.arguments.stream_steps)["first_s"], "s")

    def ours(self, server: Ours, streams: int, round_index: int):
        bodies = [self.forced(self.arguments.steps, 100 * round_index + i) for i in range(streams)]
        for delivery, path in DELIVERIES.items():
            answer = server.run(bodies, path)
            self.note(f"{server.name}, {streams} {delivery}", streams * self.audio / answer["total"], "audio s per s")
            for detail in ("decode_share", "step"):
                self.figures.setdefault(f"{server.name}, {streams} {delivery}, {detail}", []).append(answer[detail])
        self.memory[f"{server.name}_{streams}"] = server.resident_bytes() >> 20

    def ours_first_audio(self, server: Ours):
        times = [server.run([self.forced(self.arguments.stream_steps, i)])["first"] for i in range(self.arguments.first_audio_repeats)]
        self.note(f"{server.name}, first audio, {server.latency}", statistics.median(times), "s")

    def one_round(self, index: int):
        blocks = [lambda: (self.reference_alone(), self.reference_stream())]
        exact = [server for server in self.servers if server.latency == "exact"]
        blocks += [lambda s=server: self.ours(s, 1, index) for server in exact]
        blocks += [lambda s=server: self.ours_first_audio(s) for server in self.servers]
        for streams in self.arguments.streams:
            if streams == 1:
                continue
            blocks.append(lambda n=streams: self.reference_batch(n))
            blocks += [lambda s=server, n=streams: self.ours(s, n, index) for server in exact]
        if index % 2:  # the other way round, so that neither side always has the warmer machine
            blocks.reverse()
        for block in blocks:
            block()
            time.sleep(self.arguments.pause)


def ratios(above: list[float], below: list[float]) -> dict:
    return spread([a / b for a, b in zip(above, below)])


def report_of(comparison: Comparison, roof: Roof | None, arguments) -> dict:
    figures = comparison.figures
    serial = figures["reference, one at a time"]
    context = comparison.prompt_tokens + arguments.steps / 2
    report = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "threads": arguments.threads, "rounds": arguments.rounds, "steps": arguments.steps,
              "prompt_tokens": comparison.prompt_tokens, "mean_context": round(context), "roof": roof.as_json() if roof else None,
              "reference": {"one_at_a_time": spread(serial), "first_audio_s": spread(figures["reference, first audio"]), "static_batch": {}},
              "ours": {}, "memory_mib": comparison.memory}
    for streams in arguments.streams:
        if streams > 1:
            report["reference"]["static_batch"][str(streams)] = spread(figures[f"reference, static batch of {streams}"])
    for name in arguments.formats:
        rows = {}
        for streams in arguments.streams:
            static = figures[f"reference, static batch of {streams}"] if streams > 1 else serial
            row = {}
            for delivery in DELIVERIES:
                key = f"{name}, {streams} {delivery}"
                rate = figures[key]
                row[delivery] = {"audio_s_per_s": spread(rate), "times_one_at_a_time": ratios(rate, serial), "times_static_batch": ratios(rate, static),
                                 "decode_share": spread(figures[f"{key}, decode_share"]), "step_s": spread(figures[f"{key}, step"])}
            if roof:
                row["roof"] = {"audio_s_per_s": round(roof.audio_rate(name, streams, context), 2), "limited_by": roof.limit(name, streams, context),
                               "step_s": round(roof.step_seconds(name, streams, context), 6)}
            rows[str(streams)] = row
        first = {latency: {"s": spread(figures[f"{name}, first audio, {latency}"]),
                           "times_sooner": ratios(figures["reference, first audio"], figures[f"{name}, first audio, {latency}"])} for latency in LATENCIES}
        report["ours"][name] = {"streams": rows, "first_audio": first}
    return report


def print_report(report: dict):
    reference = report["reference"]
    print(f"\n{report['machine']}; {report['threads']} threads; {report['rounds']} rounds; prompt {report['prompt_tokens']}, {report['steps']} steps, "
          f"mean context {report['mean_context']}")
    if report["roof"]:
        print(f"roof: {json.dumps(report['roof'])}")
    def times(ratio):
        return f"{ratio['median']:.2f} [{ratio['min']:.2f}, {ratio['max']:.2f}]"

    print(f"\n{'audio s per s':28} {'ours':>7} {'reference':>10} {'times one at a time':>24} {'times its static batch':>24} {'roof':>8} {'step, ms':>9} {'roof':>7} {'decode':>7}")
    for name, ours in report["ours"].items():
        for streams, row in ours["streams"].items():
            theirs = reference["one_at_a_time"] if streams == "1" else reference["static_batch"][streams]
            for delivery in DELIVERIES:
                r, roof = row[delivery], row.get("roof")
                print(f"{name + ', ' + streams + ' ' + delivery:28} {r['audio_s_per_s']['median']:>7.2f} {theirs['median']:>10.2f} "
                      f"{times(r['times_one_at_a_time']):>24} {times(r['times_static_batch']):>24} {roof['audio_s_per_s'] if roof else 0:>8.2f} "
                      f"{r['step_s']['median'] * 1e3:>9.2f} {roof['step_s'] * 1e3 if roof else 0:>7.2f} {r['decode_share']['median']:>7.0%}")
    print(f"\nfirst audio, s (reference {reference['first_audio_s']['median']:.2f})")
    for name, ours in report["ours"].items():
        for latency, row in ours["first_audio"].items():
            print(f"{name + ', ' + latency:34} {row['s']['median']:>7.3f}  {row['times_sooner']['median']:.1f} times sooner")
    print("\nresident memory, MiB: " + ", ".join(f"{key} {value}" for key, value in report["memory_mib"].items()))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    names = lambda text: [part for part in text.split(",") if part in FORMATS or parser.error(f"{part} is none of {', '.join(FORMATS)}")]  # noqa: E731
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache/chattts-server/reference",
                        help="folder with environment, checkpoint and model; what is missing is made there [%(default)s]")
    parser.add_argument("--streams", type=numbers, default=[1, 4, 8, 16], help="[1,4,8,16]; 1 must be among them")
    parser.add_argument("--formats", type=names, default=list(FORMATS), help="[float32,bfloat16,int8]")
    parser.add_argument("--steps", type=int, default=384, help="length of each speech; 47 are a second [%(default)s]")
    parser.add_argument("--stream-steps", type=int, default=96, help="the same where only the first audio is looked at [%(default)s]")
    parser.add_argument("--first-audio-repeats", type=int, default=5, help="[%(default)s]")
    parser.add_argument("--rounds", type=int, default=2, help="every second one runs backwards [%(default)s]")
    parser.add_argument("--pause", type=float, default=0.5, help="s between two measurements [%(default)s]")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="[one per core]")
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    if 1 not in arguments.streams:
        parser.error("--streams must hold 1")
    return arguments


def main():
    arguments = parse_arguments()
    python, checkpoint, model = prepare(arguments.work)
    text = (SENTENCE * (PROMPT_CHARACTERS // len(SENTENCE) + 1))[:PROMPT_CHARACTERS]
    print(f"{machine()}; {arguments.threads} threads; {len(arguments.formats)} number formats, {arguments.rounds} rounds", flush=True)
    roof = Roof.probe(arguments.threads)
    reference = Reference(python, checkpoint, text, arguments.threads)
    servers = [Ours(name, latency, model, arguments.threads, max(arguments.streams)) for name in arguments.formats for latency in LATENCIES]
    try:
        for server in servers:
            Progress.say(f"starting the server with {server.name}, {server.latency}")
            server.__enter__()
        comparison = Comparison(arguments, reference, servers, text)
        comparison.warm_up()
        progress = Progress(arguments.rounds)
        for index in range(arguments.rounds):
            progress.begin_round()
            comparison.one_round(index)
            roof = roof and roof.raised_to(Roof.probe(arguments.threads))
    finally:
        for server in servers:
            if server.process:
                server.__exit__()
        reference.close()
    report = report_of(comparison, roof, arguments)
    print_report(report)
    if arguments.output:
        arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
