# SPDX-License-Identifier: Apache-2.0
"""The header reader must refuse every file whose description does not match its bytes, and say why."""
import os
import struct
import tempfile
import unittest

import support
from safetensors_lite import FormatError, read_bytes, read_header, write


class HeaderTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "x.safetensors")

    def refused(self, header, data=b"\0" * 16):
        support.join_safetensors(self.path, header, data)
        with self.assertRaises(FormatError) as caught:
            read_header(self.path)
        return " | ".join(caught.exception.problems)

    def entry(self, begin=0, end=16, shape=(4,), dtype="F32"):
        return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}

    def test_written_file_is_read_back(self):
        write(self.path, [("half", "F16", (3,), b"abcdef"), ("full", "F32", (2, 1), lambda: b"01234567"), ("none", "F32", (0, 5), b"")], {"k": "v"})
        tensors, metadata = read_header(self.path)
        self.assertEqual(metadata, {"k": "v"})
        self.assertEqual(tensors["full"].shape, (2, 1))
        self.assertEqual(read_bytes(self.path, tensors["half"]), b"abcdef")
        self.assertEqual(read_bytes(self.path, tensors["full"]), b"01234567")
        self.assertEqual(tensors["full"].begin % 8, 0)

    def test_empty_and_short_files(self):
        for content in (b"", b"\x08", struct.pack("<Q", 100) + b"{}", struct.pack("<Q", 2 ** 63) + b"{}"):
            with open(self.path, "wb") as f:
                f.write(content)
            with self.assertRaises(FormatError):
                read_header(self.path)

    def test_header_that_is_not_json(self):
        self.assertIn("not safetensors", self.refused(b"PK\x03\x04 not json"))
        self.assertIn("not valid JSON", self.refused(b"{\"a\": "))
        self.assertIn("not valid JSON", self.refused(b"{\xff\xfe}"))

    def test_deep_nesting(self):
        self.assertIn("not valid JSON", self.refused(b'{"a":' + b"[" * 200000 + b"]" * 200000 + b"}"))

    def test_duplicate_names(self):
        one = b'{"dtype":"F32","shape":[4],"data_offsets":[0,16]}'
        self.assertIn("twice", self.refused(b'{"a":' + one + b',"a":' + one + b"}"))

    def test_overlap(self):
        self.assertIn("overlaps", self.refused({"a": self.entry(0, 16), "b": self.entry(8, 16, (2,))}))

    def test_hole_and_tail(self):
        self.assertIn("unaccounted", self.refused({"a": self.entry(4, 16, (3,))}))
        self.assertIn("unaccounted", self.refused({"a": self.entry(0, 8, (2,))}))

    def test_data_past_the_end(self):
        self.assertIn("outside", self.refused({"a": self.entry(0, 32, (8,))}))
        self.assertIn("outside", self.refused({"a": self.entry(16, 0)}))
        self.assertIn("outside", self.refused({"a": self.entry(2 ** 64, 2 ** 64 + 16)}))

    def test_size_that_does_not_fit_the_shape(self):
        self.assertIn("which needs", self.refused({"a": self.entry(shape=(3,))}))

    def test_shapes_that_are_not_natural_numbers(self):
        for shape in ([-4], [4.0], [True, 4], "4", [1] * 9 + [4], [None]):
            self.assertIn("shape", self.refused({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 16]}}), shape)
        self.assertIn("absurdly", self.refused({"a": {"dtype": "F32", "shape": [2 ** 40, 2 ** 40], "data_offsets": [0, 16]}}))

    def test_offsets_that_are_not_a_pair(self):
        for offsets in ([0], [0, 8, 16], [0, -16], [0, 16.0], "0", None):
            self.assertIn("data_offsets", self.refused({"a": {"dtype": "F32", "shape": [4], "data_offsets": offsets}}))

    def test_unknown_type_and_odd_entries(self):
        self.assertIn("dtype", self.refused({"a": self.entry(dtype="Q4")}))
        self.assertIn("dtype", self.refused({"a": {"dtype": ["F32"], "shape": [4], "data_offsets": [0, 16]}}))
        self.assertIn("exactly", self.refused({"a": [1, 2]}))
        self.assertIn("exactly", self.refused({"a": {**self.entry(), "more": 1}}))
        self.assertIn("__metadata__", self.refused({"__metadata__": {"k": 1}, "a": self.entry()}))

    def test_all_problems_are_named(self):
        text = self.refused({"a": self.entry(dtype="Q4"), "b": self.entry(shape=(3,))})
        self.assertIn("'a'", text)
        self.assertIn("'b'", text)

    def test_writer_refuses_wrong_sizes(self):
        with self.assertRaises(ValueError):
            write(self.path, [("a", "F32", (2,), b"1234")])
        self.assertFalse(os.path.exists(self.path))


if __name__ == "__main__":
    unittest.main()
