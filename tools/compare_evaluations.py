#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is one voice, number format or version understood as well as another? Compares two sets of eval_voice.py results, seed by seed.

  for seed in $(seq 0 19); do tools/eval_voice.py ... --seed $seed --out a/$seed.json; done     # the same for b
  tools/compare_evaluations.py a b

Per group and measure: both means over the seeds, and the mean of the differences (b less a) with its standard error. One seed differs from the
next by several points, so a difference smaller than twice its error shows nothing.
"""
import argparse
import json
import math
import statistics
import sys
from pathlib import Path

from eval_voice import GROUPS, LABELS


def load(folder: Path) -> dict[int, dict]:
    """seed -> the groups of that run."""
    runs = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        if result["failures"]:
            raise SystemExit(f"{path}: {len(result['failures'])} sentences failed there; run that seed again")
        if result["seed"] in runs:
            raise SystemExit(f"{path}: seed {result['seed']} is in {folder} twice")
        runs[result["seed"]] = result["groups"]
    return runs


def compare(a: dict[int, dict], b: dict[int, dict]) -> list[dict]:
    """A row for each group and measure that every run has; rates in percent."""
    seeds = sorted(a.keys() & b.keys())
    rows = []
    for group in GROUPS:
        for measure in LABELS:
            pairs = [tuple(100 * runs[seed].get(group, {}).get(measure, {}).get("rate", math.nan) for runs in (a, b)) for seed in seeds]
            if len(pairs) < 2 or any(math.isnan(rate) for pair in pairs for rate in pair):
                continue
            differences = [second - first for first, second in pairs]
            rows.append({"group": group, "measure": LABELS[measure], "seeds": len(pairs), "a": statistics.mean(first for first, _ in pairs),
                         "b": statistics.mean(second for _, second in pairs), "difference": statistics.mean(differences),
                         "error": statistics.stdev(differences) / math.sqrt(len(pairs))})
    return rows


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", type=Path, help="folder of results")
    parser.add_argument("b", type=Path, help="folder of results with the same seeds")
    arguments = parser.parse_args(argv)
    rows = compare(load(arguments.a), load(arguments.b))
    if not rows:
        return f"{arguments.a} and {arguments.b} share no two seeds with the same groups"
    print("| | seeds | a | b | b less a |\n|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['group']}, {row['measure']} | {row['seeds']} | {row['a']:.1f} % | {row['b']:.1f} % | {row['difference']:+.2f} ± {row['error']:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
