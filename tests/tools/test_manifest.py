# SPDX-License-Identifier: Apache-2.0
"""update_manifest, and that the committed models match their manifests."""
import json
import os
import shutil
import tempfile
import unittest

import support
import update_manifest

NANO = os.path.join(support.ROOT, "models", "nano")


class UpdateManifestTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        with open(os.path.join(self.folder, "manifest.json"), "w", encoding="utf-8") as f:
            json.dump({"format": 1, "name": "x", "files": {"a": {"path": "a.bin", "sha256": "", "bytes": 0}}}, f)
        self.write("a.bin", b"abc")

    def write(self, name, content):
        with open(os.path.join(self.folder, name), "wb") as f:
            f.write(content)

    def files(self):
        with open(os.path.join(self.folder, "manifest.json"), encoding="utf-8") as f:
            return json.load(f)["files"]

    def test_refresh_add_remove(self):
        self.assertEqual(support.run(update_manifest.main, self.folder, "--check")[0], 1)
        self.assertEqual(support.run(update_manifest.main, self.folder)[0], 0)
        self.assertEqual(self.files()["a"], {"path": "a.bin", "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "bytes": 3})
        self.assertEqual(support.run(update_manifest.main, self.folder, "--check")[0], 0)
        self.write("b.bin", b"")
        self.assertEqual(support.run(update_manifest.main, self.folder, "--add", "b=b.bin")[0], 0)
        self.assertEqual(sorted(self.files()), ["a", "b"])
        self.assertEqual(support.run(update_manifest.main, self.folder, "--remove", "b")[0], 0)
        self.assertEqual(sorted(self.files()), ["a"])

    def test_refusals(self):
        for bad in ("b=missing.bin", "b=../a.bin", "b=/etc/hostname", "b"):
            self.assertEqual(support.run(update_manifest.main, self.folder, "--add", bad)[0], 1, bad)
        shutil.rmtree(os.path.join(self.folder))
        os.makedirs(self.folder)
        self.assertEqual(support.run(update_manifest.main, self.folder)[0], 1)


class CommittedModelsTest(unittest.TestCase):
    def test_files_match(self):
        for folder in (NANO, os.path.join(support.GOLDEN, "model")):
            status, out, err = support.run(update_manifest.main, folder, "--check")
            self.assertEqual((status, out, err), (0, "", ""), folder)

    def test_nano_fits_the_repository(self):
        total = sum(os.path.getsize(os.path.join(NANO, n)) for n in os.listdir(NANO))
        self.assertLess(total, 40_000_000)

    def test_nano_symbols(self):
        with open(os.path.join(NANO, "symbols.json"), encoding="utf-8") as f:
            s = json.load(f)
        with open(os.path.join(NANO, "manifest.json"), encoding="utf-8") as f:
            m = json.load(f)
        self.assertEqual((len(s["symbols"]), s["padded_to"]), (305, m["architecture"]["gpt"]["num_text_tokens"]))
        self.assertEqual(len(set(s["symbols"])), 305)
        for table in ("function_words", "letters"):
            for word, phones in s[table].items():
                self.assertFalse([p for p in phones if p not in s["symbols"]], word)
        self.assertIn(m["default_voice"], [v["id"] for v in m["voices"]])

    def test_greedy_record_belongs_to_the_committed_weights(self):
        with open(os.path.join(support.GOLDEN, "nano_greedy.json"), encoding="utf-8") as f:
            record = json.load(f)
        with open(os.path.join(NANO, "manifest.json"), encoding="utf-8") as f:
            m = json.load(f)
        for role, digest in record["model_files"].items():
            self.assertEqual(m["files"][role]["sha256"], digest, f"{role}: run tests/golden/make_nano_greedy.py after exporting a new voice")


if __name__ == "__main__":
    unittest.main()
