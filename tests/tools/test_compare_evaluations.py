# SPDX-License-Identifier: Apache-2.0
"""compare_evaluations: means, the difference of pairs with its standard error, and results that must not be compared."""
import json
import tempfile
import unittest
from pathlib import Path

import support
import compare_evaluations


def result(seed, failures=(), **rates):
    groups = {group: {measure: {"rate": rate} for measure, rate in measures.items()} for group, measures in rates.items()}
    return {"seed": seed, "failures": list(failures), "groups": groups}


class CompareEvaluations(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, *results):
        folder = Path(self.folder.name, name)
        folder.mkdir()
        for n, one in enumerate(results):
            (folder / f"{n}.json").write_text(json.dumps(one), encoding="utf-8")
        return folder

    def test_pairs_are_formed_by_seed(self):
        a = self.write("a", result(1, en={"wer": 0.10}), result(2, en={"wer": 0.20}), result(3, en={"wer": 0.30}))
        b = self.write("b", result(3, en={"wer": 0.33}), result(1, en={"wer": 0.11}), result(2, en={"wer": 0.22}))
        (row,) = compare_evaluations.compare(compare_evaluations.load(a), compare_evaluations.load(b))
        self.assertEqual((row["group"], row["measure"], row["seeds"]), ("en", "WER", 3))
        self.assertAlmostEqual(row["a"], 20.0)
        self.assertAlmostEqual(row["b"], 22.0)
        self.assertAlmostEqual(row["difference"], 2.0)
        self.assertAlmostEqual(row["error"], 1 / 3 ** 0.5)

    def test_the_table_is_printed(self):
        a = self.write("a", *(result(seed, zh={"cer": 0.3, "syllable_error": 0.2}) for seed in range(2)))
        status, out, _ = support.run(compare_evaluations.main, a, a)
        self.assertEqual(status, 0)
        self.assertIn("| zh, CER | 2 | 30.0 % | 30.0 % | +0.00 ± 0.00 |", out)
        self.assertIn("| zh, syllable error | 2 | 20.0 %", out)

    def test_a_run_with_failures_is_refused(self):
        a = self.write("a", result(0, failures=[{"id": "x", "error": "boom"}], en={"wer": 0.1}))
        status, _, err = support.run(compare_evaluations.main, a, a)
        self.assertEqual(status, 1)
        self.assertIn("run that seed again", err)

    def test_one_seed_is_not_a_comparison(self):
        a = self.write("a", result(0, en={"wer": 0.1}))
        status, _, err = support.run(compare_evaluations.main, a, a)
        self.assertEqual(status, 1)
        self.assertIn("share no two seeds", err)

    def test_the_same_seed_twice_is_refused(self):
        a = self.write("a", result(0, en={"wer": 0.1}), result(0, en={"wer": 0.1}))
        status, _, err = support.run(compare_evaluations.main, a, a)
        self.assertEqual(status, 1)
        self.assertIn("twice", err)


if __name__ == "__main__":
    unittest.main()
