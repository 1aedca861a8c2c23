# SPDX-License-Identifier: Apache-2.0
"""The random checkpoint has exactly the official tensors, and imports."""
import json
import os
import tempfile
import unittest

import support
import import_chattts
from manifest_lib import sha256_of

try:
    import make_random_checkpoint
except ImportError:  # numpy is not installed
    make_random_checkpoint = None


@unittest.skipIf(make_random_checkpoint is None, "needs numpy")
class RandomCheckpointTest(unittest.TestCase):
    def test_official_size_has_the_official_tensors(self):
        with open(os.path.join(support.GOLDEN, "tensors_official_size.json"), encoding="utf-8") as f:
            official = json.load(f)
        shapes = make_random_checkpoint.tensor_shapes(make_random_checkpoint.SIZES["official"])
        for role, key in (("gpt", "gpt/model"), ("embed", "Embed"), ("decoder", "Decoder"), ("dvae", "DVAE"), ("vocos", "Vocos")):
            expected = {name: shape for name, (_, shape) in official[key].items() if name != "embed_tokens.weight"}
            self.assertEqual(shapes[role], expected, role)

    def test_vocabulary_of_official_size(self):
        tokenizer = make_random_checkpoint.tokenizer_files(21178)["tokenizer"]
        ids = {t["content"]: t["id"] for t in tokenizer["added_tokens"]}
        self.assertEqual(len(tokenizer["model"]["vocab"]), 21128)
        self.assertEqual({t: ids[t] for t in ("[Sasr]", "[Stts]", "[Ptts]", "[Ebreak]", "[spk_emb]", "[break_0]", "[speed_9]")},
                         {"[Sasr]": 21128, "[Stts]": 21131, "[Ptts]": 21132, "[Ebreak]": 21136, "[spk_emb]": 21143, "[break_0]": 21147, "[speed_9]": 21177})

    def test_small_one_imports_and_is_reproducible(self):
        with tempfile.TemporaryDirectory() as scratch:
            made, again, out = (os.path.join(scratch, n) for n in ("made", "again", "out"))
            for folder in (made, again):
                self.assertEqual(support.run(make_random_checkpoint.main, folder, "--size", "small", "--dtype", "BF16")[0], 0)
            for relative, _ in import_chattts.FILES.values():
                self.assertEqual(sha256_of(os.path.join(made, relative)), sha256_of(os.path.join(again, relative)), relative)
            status, _, err = support.run(import_chattts.main, made, "--out", out, "--allow-unknown-hashes", "--speaker-stat", os.path.join(made, "speaker_stat.txt"))
            self.assertEqual((status, err), (0, ""))


if __name__ == "__main__":
    unittest.main()
