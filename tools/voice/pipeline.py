# SPDX-License-Identifier: Apache-2.0
"""All stages of the voice's training in order, each resumed where it was. Run it as tools/voice/train, which makes the environment first.

  tools/voice/train                           go on from the shipped voice (models/nano) with new data
  tools/voice/train --from scratch            train everything from random numbers
  tools/voice/train --until 07:30             stop by then, learning rates fallen, whatever is reached
  tools/voice/train --export                  afterwards: models/nano, its manifest and the codes its tests compare with
  tools/voice/train --status                  how far everything is

Data and training alternate: the first hour of speech is enough to begin with, later rounds add more. There is no state but what the stages
leave in the training folder, so the same command goes on after any interruption; Ctrl-C saves first. A file PAUSE in the folder makes all of
it sleep. Everything runs at the lowest priority.
"""
import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from progress import duration
from schedule import clock_time
from workspace import HERE, NANO, ROOT, Workspace

CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class Reached:
    """What the training folder holds. Hours of audio; shares of each run's core-hours, 0 when it has not begun."""
    corpus: bool = False
    imported: bool = False  # checkpoints of all parts are there
    audio: float = 0.0
    codes: float = 0.0  # hours of audio that have codes of the present DVAE
    dvae: float = 0.0
    vocos: float = 0.0
    gpt: float = 0.0


@dataclass(frozen=True)
class Plan:
    scratch: bool
    audio: float  # hours of speech
    dvae: float  # core-hours; 0 = keep the DVAE
    vocos: float
    gpt: float
    rounds: int

    def targets(self):
        """(hours of audio, share of the GPT's run) of each round: audio grows to all of it by the round before the last."""
        first = min(1.0, self.audio)
        steps = max(1, self.rounds - 1)
        for n in range(1, self.rounds + 1):
            grown = first + (self.audio - first) * min(1.0, (n - 1) / max(1, steps - 1)) if self.rounds > 2 else (first if n == 1 < self.rounds else self.audio)
            yield round(grown, 3), n / self.rounds


SLACK = 0.02  # hours of audio by which synthesis may miss its target: workers stop between sentences


def next_stage(plan, reached):
    """The next thing to do as (stage, target), or None. Pure, so that resuming can be tested without training anything."""
    if not reached.corpus:
        return "corpus", None
    if not plan.scratch and not reached.imported:
        return "import", None
    for audio, share in plan.targets():
        if reached.gpt >= share - 1e-6:
            continue
        if reached.audio < audio - SLACK:
            return "synthesize", audio
        if plan.dvae > 0 and reached.dvae < 1:
            return "dvae", None
        if reached.codes < reached.audio - 1e-6:
            return "codes", None
        return "gpt", share
    if plan.vocos > 0 and reached.vocos < 1:
        return "vocos", None
    return None


def deadlines(plan, end, cores=CORES):
    """When data and GPT, and when Vocos have to be done: the last part of the time is Vocos's. {} without an end."""
    if end is None:
        return {}
    return {"gpt": end - plan.vocos * 3600 / cores, "vocos": end, "dvae": end - plan.vocos * 3600 / cores}


def share_done(found, hours, deadline=None, now=None):
    """Core-hours in a run's metadata over those planned; towards the same deadline the run's own share, which counts the clock too; all of it
    once the deadline has passed. The checkpoint of an imported part carries neither."""
    if hours <= 0:
        return 0.0
    share = float(found.get("core_hours", 0.0)) / hours
    if deadline is not None:
        if (time.time() if now is None else now) >= deadline:
            return 1.0
        if abs(float(found.get("deadline", 0)) - deadline) < 90:
            share = max(share, float(found.get("share", 0.0)))
    return 1.0 if share > 0.999 else share


def measure(work, plan, end=None):
    from checkpoints import metadata
    from extract_codes import known_codes
    from features import SAMPLE_RATE

    def found(name):
        return metadata(work.checkpoint(name)) if os.path.exists(work.checkpoint(name)) else {}
    rows = work.manifest()
    codes = known_codes(work.codes, int(found("dvae").get("step", 0)))
    return Reached(corpus=os.path.exists(work.corpus), imported=all(os.path.exists(work.checkpoint(p)) for p in ("gpt", "decoder", "dvae", "vocos")),
                   audio=sum(r["samples"] for r in rows) / SAMPLE_RATE / 3600,
                   codes=sum(r["samples"] for r in rows if f"{r['id']}/{r['voice']}" in codes) / SAMPLE_RATE / 3600,
                   **{name: share_done(found(name), getattr(plan, name), deadlines(plan, end).get(name)) for name in ("dvae", "vocos", "gpt")})


class Stages:
    """Runs stages as processes of their own: memory is returned, and a stage can be run by hand the same way."""

    def __init__(self, plan, end, more):
        self.plan, self.end, self.more = plan, end, more
        self.stopping = False
        self.children = []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, *_):
        self.stopping = True
        for child in self.children:
            if child.poll() is None:
                child.terminate()

    def run(self, *commands):
        """Scripts side by side; False when one failed."""
        environment = {**os.environ, "OMP_NUM_THREADS": str(max(1, CORES // len(commands)))}
        self.children = [subprocess.Popen([sys.executable, os.path.join(HERE, c[0]), *map(str, c[1:])], env=environment, start_new_session=True) for c in commands]
        try:
            results = [child.wait() for child in self.children]
        finally:
            self._children_gone()
        return not any(results)

    def _children_gone(self):
        for child in self.children:
            if child.poll() is None:
                child.terminate()
                child.wait()

    def until(self, run):
        end = deadlines(self.plan, self.end).get(run)
        return [] if end is None else ["--until", f"+{max(0.0, end - time.time()) / 60:.2f}m"]

    def perform(self, stage, target):
        plan, threads = self.plan, ["--threads", CORES]
        if stage == "corpus":
            return self.run(["corpus.py"])
        if stage == "import":
            return self.run(["import_nano.py"])
        if stage == "synthesize":
            return self.run(*[["synthesize.py", "--worker", w, "--workers", CORES, "--hours", target, *self.until("gpt")] for w in range(CORES)])
        if stage == "dvae":
            return self.run(["train_dvae.py", "--hours", plan.dvae, *threads, *self.until("dvae")])
        if stage == "codes":
            return self.run(["extract_codes.py"])
        if stage == "vocos":
            return self.run(["train_vocos.py", "--hours", plan.vocos, *threads, *self.until("vocos")])
        return self.run(["train_gpt.py", "--hours", plan.gpt, "--stop-share", target, *threads, *self.until("gpt"), *self.more])


    def finish(self):
        """What a finished training is looked at with."""
        looks = [["evaluate.py", "--speaker", s, "--seeds", 3, "--tones"] for s in ("xiaobei", "heart")] + [["evaluate.py", "--of", "teacher"], ["plots.py"], ["listening_page.py"]]
        return all(self.run(look) for look in looks)


def export(work, model):
    """Writes the model; for the committed one also the codes that tests compare its weights with."""
    commands = [[os.path.join(HERE, "export_nano.py"), "--out", model]]
    if os.path.realpath(model) == os.path.realpath(NANO):
        commands.append([os.path.join(ROOT, "tests", "golden", "make_nano_greedy.py")])
    for command in commands:
        if subprocess.run([sys.executable, *command], check=False).returncode:
            return "export failed; its message is above"
    print(f"exported {work.root} to {model}")
    return 0


def arguments(argv):
    p = argparse.ArgumentParser(prog="tools/voice/train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--from", dest="source", choices=("nano", "scratch"), default="nano", help="where an empty training folder starts (default: %(default)s)")
    p.add_argument("--audio-hours", type=float, default=8.0, help="hours of speech (default: %(default)s)")
    p.add_argument("--gpt-hours", type=float, default=8.0, help="core-hours (default: %(default)s)")
    p.add_argument("--vocos-hours", type=float, default=3.0, help="core-hours (default: %(default)s)")
    p.add_argument("--dvae-hours", type=float, help="core-hours (default: 1 from scratch; else 0, the codes then keep their meaning)")
    p.add_argument("--rounds", type=int, default=4, help="how often data and training alternate (default: %(default)s)")
    p.add_argument("--until", help="stop by then: HH:MM, +90m, +2h; the last --vocos-hours / cores hours of the time are Vocos's")
    p.add_argument("--export", nargs="?", const=NANO, metavar="FOLDER", help="write the model when nothing is left to do (default folder: models/nano)")
    p.add_argument("--no-evaluation", action="store_true", help="leave out the evaluation at the end (half an hour)")
    p.add_argument("--status", action="store_true")
    p.add_argument("--gpt-options", default="", help="further arguments for train_gpt.py in one string")
    return p.parse_args(argv)


def main(argv=None):
    a = arguments(argv)
    scratch = a.source == "scratch"
    plan = Plan(scratch, a.audio_hours, (1.0 if scratch else 0.0) if a.dvae_hours is None else a.dvae_hours, a.vocos_hours, a.gpt_hours, max(1, a.rounds))
    work, started = Workspace(), time.time()
    end = clock_time(a.until) if a.until else None
    if a.status:
        print(plan, measure(work, plan), next_stage(plan, measure(work, plan)), sep="\n")
        return 0
    if end and deadlines(plan, end)["gpt"] <= time.time():
        print("train: all of the time until then is Vocos's; give less of it with --vocos-hours", file=sys.stderr)
    stages = Stages(plan, end, a.gpt_options.split())
    found = None
    while not stages.stopping and (end is None or time.time() < end):
        reached = measure(work, plan, end)
        found = next_stage(plan, reached)
        print(f"train: {reached.audio:.2f} of {plan.audio:g} h of speech, gpt {100 * reached.gpt:.0f} %, vocos {100 * reached.vocos:.0f} %"
              + (f"; next: {found[0]}" if found else "; nothing left to do") + f" ({duration(time.time() - started)})", flush=True)
        if found is None:
            break
        if not stages.perform(*found) and not stages.stopping:
            return f"stage {found[0]} failed; its message is above. Run the same command again to go on."
        if found[0] != "synthesize" and not stages.stopping and measure(work, plan, end) == reached:
            return f"stage {found[0]} made no progress: this is a mistake in tools/voice/pipeline.py"
    if stages.stopping:
        return 0
    if found is None and not a.no_evaluation and not stages.finish():
        return "evaluation failed; its message is above"
    return export(work, a.export) if a.export else 0


if __name__ == "__main__":
    raise SystemExit(main())
