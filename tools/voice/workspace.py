# SPDX-License-Identifier: Apache-2.0
"""The training folder: where everything that training makes lies, and how its processes make room for others.

The folder is named by the environment variable TTS_VOICE_DIR. Nothing in it is precious: `train` makes all of it again.
"""
import glob
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.path.dirname(HERE)
ROOT = os.path.dirname(TOOLS)
NANO = os.path.join(ROOT, "models", "nano")
VARIABLE = "TTS_VOICE_DIR"

if TOOLS not in sys.path:  # safetensors_lite, speech_scoring, ... are shared with the other tools
    sys.path.insert(0, TOOLS)


class Workspace:
    """Paths inside the training folder. Folders are made when something is first written to them."""

    def __init__(self, root=None):
        root = root or os.environ.get(VARIABLE)
        if not root:
            raise SystemExit(f"error: set {VARIABLE} to a folder outside the repository with about 3 GB of room, e.g. export {VARIABLE}=$HOME/tts-voice")
        self.root = os.path.abspath(root)

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def made(self, *parts):
        """Like path(), and the folder that holds it exists afterwards."""
        path = self.path(*parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    @property
    def corpus(self):
        return self.path("corpus.jsonl")

    @property
    def codes(self):
        return self.path("codes.npz")

    def audio(self, row):
        """The recording of one manifest row."""
        return self.path("audio", row["voice"], row["id"] + ".flac")

    def checkpoint(self, name):
        return self.path("checkpoints", name + ".safetensors")

    def manifest(self):
        """Every utterance that was synthesised, ordered by id and voice. A line that a killed worker left half written is skipped."""
        rows = {}
        for path in glob.glob(self.path("manifest", "*.jsonl")):
            for row in read_jsonl(path):
                rows[row["id"], row["voice"]] = row
        return [rows[key] for key in sorted(rows)]

    def paused(self):
        return os.path.exists(self.path("PAUSE"))

    def wait_while_paused(self):
        """Blocks while a file PAUSE lies in the folder: touch it before a benchmark, remove it afterwards."""
        while self.paused():
            time.sleep(2)


def read_jsonl(path):
    """Rows of a JSON-lines file; lines that are not JSON (a write cut short) are left out."""
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows


def write_jsonl(path, rows):
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    os.replace(path + ".tmp", path)


def append_jsonl(path, row):
    with open(path, "a", encoding="utf-8") as f:
        f.write(json.dumps(row, ensure_ascii=False) + "\n")


def is_held_out(row):
    """Every 50th sentence of the corpus is never trained on, whichever voice reads it."""
    return int(row["id"][1:]) % 50 == 7


def lowest_priority():
    """Everything else on the machine goes first, unless TTS_VOICE_PRIORITY is "normal". Where the kernel groups processes by session, nice
    alone does nothing against other sessions."""
    if os.environ.get("TTS_VOICE_PRIORITY") == "normal":
        return
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("19")
    except OSError:
        pass
    os.nice(19)
