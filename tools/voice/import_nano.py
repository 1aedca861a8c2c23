# SPDX-License-Identifier: Apache-2.0
"""Makes checkpoints of an exported model, so that training goes on from the shipped voice on a machine that has nothing else.

  python import_nano.py [--model ../../models/nano] [--parts gpt,decoder,dvae,vocos]

Existing checkpoints are kept unless --replace. Optimiser moments and the data are not in a model: training warms up again, the corpus is
read again.
"""
import argparse
import os
import sys

import workspace  # noqa: F401  (first: makes the other tools importable)
import checkpoints
from manifest_lib import read_manifest
from speech_models import exported_speakers, exported_states
from workspace import NANO, Workspace


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default=NANO)
    p.add_argument("--parts", default="gpt,decoder,dvae,vocos")
    p.add_argument("--replace", action="store_true")
    a = p.parse_args(argv)
    work, states = Workspace(), exported_states(a.model)
    steps = read_manifest(a.model).get("training", {})
    for part in a.parts.split(","):
        path = work.checkpoint(part)
        if os.path.exists(path) and not a.replace:
            print(f"{part}: kept the checkpoint that is there")
            continue
        more = {"speakers": " ".join(exported_speakers(a.model))} if part == "gpt" else {}
        checkpoints.save(path, states[part], step=steps.get(f"{part}_steps", 0), **more)
        state = path.replace(".safetensors", ".state.pt")
        if os.path.exists(state):
            os.remove(state)
        print(f"{part}: step {steps.get(f'{part}_steps', 0)} from {a.model}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
