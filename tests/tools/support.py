# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of tools/: where things are, and running a tool's main() with its output captured."""
import contextlib
import io
import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TOOLS = os.path.join(ROOT, "tools")
GOLDEN = os.path.join(ROOT, "tests", "golden", "data")
if TOOLS not in sys.path:
    sys.path.insert(0, TOOLS)


def run(main, *arguments):
    """-> (exit status, standard output, standard error)"""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as e:
            status = e.code
    if isinstance(status, str):  # sys.exit(text) prints the text and exits with 1
        err.write(status)
        status = 1
    return status or 0, out.getvalue(), err.getvalue()


def split_safetensors(path):
    """-> (header as a dict, data bytes), for tests that build broken files."""
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8:8 + n]), raw[8 + n:]


def join_safetensors(path, header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
