#!/usr/bin/env python3
"""The checker must find what it is for: each rule is broken once in a made-up tree."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from check_include_order import check_tree  # noqa: E402


class CheckerTest(unittest.TestCase):
    def problems(self, files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check_tree(Path(folder).resolve())[1]

    def test_allows_modules_above(self):
        self.assertEqual(self.problems({"src/net/a.cpp": '#include "tts/api/x.h"\n#include "tts/base/y.h"\n#include "own.h"\n'}), [])

    def test_finds_upward_include(self):
        self.assertEqual(len(self.problems({"include/tts/base/a.h": '#include "tts/net/x.h"\n'})), 1)

    def test_finds_sideways_include(self):
        self.assertEqual(len(self.problems({"src/audio/a.cpp": '#include "tts/text/x.h"\n'})), 1)

    def test_finds_reach_into_another_folder(self):
        self.assertEqual(len(self.problems({"src/api/a.cpp": '#include "../audio/private.h"\n'})), 1)

    def test_finds_torch_outside_model(self):
        self.assertEqual(len(self.problems({"src/scheduling/a.cpp": "#include <ATen/core/Tensor.h>\n"})), 1)

    def test_finds_torch_in_public_header(self):
        self.assertTrue(self.problems({"include/tts/model/a.h": "#include <torch/torch.h>\n"}))

    def test_finds_unknown_folder(self):
        self.assertEqual(len(self.problems({"src/misc/a.cpp": "\n"})), 1)


if __name__ == "__main__":
    unittest.main()
