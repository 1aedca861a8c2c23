# SPDX-License-Identifier: Apache-2.0
"""bench/tables.py: tables from results, and that bench/README.md says what bench/results says."""
import copy
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

from support import ROOT, run

sys.path.insert(0, os.path.join(ROOT, "bench"))
import tables  # noqa: E402

TIMES = {"count": 50, "mean": 0.05, "p50": 0.030, "p95": 0.060, "p99": 0.070, "max": 0.080}
LEVEL = {"name": "closed 1", "kind": "closed", "clients": 1, "passed": True, "completed": 50, "refused": 0, "first_byte_s": TIMES,
         "first_audio_s": {**TIMES, "p50": 0.081}, "rtf": {**TIMES, "p50": 0.25, "p99": 0.5}, "underruns": {"count": 0}, "audio_s_per_s": 24.2, "client_cores": 0.01,
         "engine": {"decode_share": 0.1, "generate_share": 0.3, "step_s": 0.002}}
NANO = {"version": "1.0", "commit": "abc", "build": "Release", "date": "today", "levels": [LEVEL],
        "machine": {"processor": "P", "cores": 2, "instructions": "avx2", "memory_gib": 23.5, "system": "Linux"}}


def reference(factor):
    spread = {"median": factor, "min": factor - 1, "max": factor + 1}
    way = {"audio_s_per_s": spread, "times_one_at_a_time": spread, "times_static_batch": spread, "decode_share": {"median": 0.2}, "step_s": {"median": 0.007}}
    row = {"streams": {**way, "audio_s_per_s": {"median": 8}}, "whole": way}
    first = {"s": {"median": 0.12}, "times_sooner": spread}
    return {"machine": "P", "threads": 2, "rounds": 3, "date": "today", "prompt_tokens": 200, "steps": 400, "mean_context": 400, "memory_mib": {"int8_1": 400},
            "reference": {"one_at_a_time": spread, "static_batch": {"4": spread}, "first_audio_s": {"median": 5.0}},
            "ours": {"int8": {"streams": {"1": row, "4": {**row, "roof": {"audio_s_per_s": 3.2, "limited_by": "memory", "step_s": 0.005}}},
                              "first_audio": {"exact": first}}}}


class TablesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def results(self, **files):
        for name, content in files.items():
            (self.folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        return tables.Results(self.folder)

    def test_levels(self):
        text = tables.nano(self.results(nano=NANO))
        self.assertIn("| closed 1 | 50 | 30 / 60 / 70 | 81 / 60 / 70 | 0.25 / 0.50 | 24.2 | 0 | 0 | 25% | 0.01 | yes |", text)

    def test_a_level_in_which_nothing_was_completed(self):
        empty = {**copy.deepcopy(LEVEL), "completed": 0, "first_byte_s": None, "first_audio_s": None, "rtf": None, "engine": None, "passed": False}
        text = tables.nano(self.results(nano={**NANO, "levels": [empty]}))
        self.assertIn("| closed 1 | 0 | – | – | – |", text)

    def test_goals_compare_with_what_was_asked(self):
        good = tables.goals(self.results(nano=NANO, full_size_against_reference=reference(30)))
        self.assertIn("| int8, 4 at once, against the reference one at a time | 22 times | 30.0 times; as streams 30.0 | yes |", good)
        self.assertIn("| int8, 4 at once: mean step, prompts included, over the machine's roof | 1.5 | 1.40 | yes |", good)
        self.assertIn("| bundled voice, Opus, one stream: first audio p50 | 40 ms | 30 ms; to the first sample above -40 dBFS 81 ms | yes |", good)
        bad = tables.goals(self.results(full_size_against_reference=reference(5)))
        self.assertIn("| 22 times | 5.0 times; as streams 5.0 | no |", bad)

    def test_the_reference_table_names_batches_and_roofs(self):
        text = tables.reference(self.results(full_size_against_reference=reference(9)))
        self.assertIn("| int8 | 4 | 8.00 | 9.00 | 9.00 | 9.0 [8.0, 10.0] | 9.0 [8.0, 10.0] | 9.0 [8.0, 10.0] | 3.2 (memory) | 7.00 (5.00) | 20% |", text)
        self.assertIn("| int8, exact | 120 | 5000 |", text)

    def test_only_what_is_between_the_marks_changes(self):
        page = "before\n<!-- table: nano -->\nold\n<!-- end -->\nafter\n<!-- table: growth -->\n<!-- end -->\n"
        text = tables.rewritten(page, self.results(nano=NANO))
        self.assertTrue(text.startswith("before\n<!-- table: nano -->\n\n| load |"), text)
        self.assertNotIn("old", text)
        self.assertIn("<!-- end -->\nafter\n", text)
        self.assertIn("`bench/run_all --only growth`", text)
        self.assertEqual(tables.rewritten(text, tables.Results(self.folder)), text)

    def test_the_page_says_what_the_results_say(self):
        status, _, err = run(tables.main, "--check")
        self.assertEqual(status, 0, err)


if __name__ == "__main__":
    unittest.main()
