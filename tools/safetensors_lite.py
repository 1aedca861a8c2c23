# SPDX-License-Identifier: Apache-2.0
"""Strict reader of safetensors headers and a plain writer, standard library only.

The reader trusts nothing in the file: a header that is too long, is not the promised JSON, has duplicate names, or describes data
that overlaps, leaves holes or ends past the file is refused, with every defect of the file in one message.
"""
import json
import os
import struct

ITEM_SIZE = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
MAX_HEADER = 100 * 1000 * 1000  # the format's own limit
MAX_DIMS = 8
MAX_ELEMENTS = 1 << 40


class FormatError(Exception):
    """The file is not a well-formed safetensors file; `problems` lists everything found."""

    def __init__(self, path, problems):
        self.path, self.problems = path, list(problems)
        super().__init__(f"{path}: " + "; ".join(self.problems))


class Tensor:
    """One entry of a header: dtype name, shape, and where its bytes lie in the file."""

    __slots__ = ("dtype", "shape", "begin", "end")

    def __init__(self, dtype, shape, begin, end):
        self.dtype, self.shape, self.begin, self.end = dtype, shape, begin, end

    @property
    def nbytes(self):
        return self.end - self.begin


def _unique(pairs):
    """json's default keeps the last of two equal keys silently; two readers could then see different tensors."""
    out = {}
    for k, v in pairs:
        if k in out:
            raise ValueError(f"name {k!r} occurs twice")
        out[k] = v
    return out


def _natural(x):
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


def read_header(path):
    """-> (tensors, metadata): name -> Tensor with offsets from the start of the file, and the free-form strings."""
    size = os.path.getsize(path)
    with open(path, "rb") as f:
        head = f.read(8)
        if len(head) < 8:
            raise FormatError(path, [f"only {size} bytes long, shorter than the header's length field"])
        n = struct.unpack("<Q", head)[0]
        if n > MAX_HEADER or n > size - 8:
            raise FormatError(path, [f"header claims {n} bytes, the file has {size}: truncated or not safetensors"])
        raw = f.read(n)
    if not raw.startswith(b"{"):
        raise FormatError(path, ["header does not start with '{': not safetensors"])
    try:
        header = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as e:
        raise FormatError(path, [f"header is not valid JSON: {e}"]) from None
    problems, tensors = [], {}
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or any(not isinstance(v, str) for v in metadata.values()):
        problems.append("__metadata__ is not an object of strings")
        metadata = {}
    base = 8 + n
    for name, entry in header.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            problems.append(f"{name!r}: entry must have exactly dtype, shape and data_offsets")
            continue
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in ITEM_SIZE:
            problems.append(f"{name!r}: unknown dtype {dtype!r}")
            continue
        if not isinstance(shape, list) or len(shape) > MAX_DIMS or not all(_natural(d) for d in shape):
            problems.append(f"{name!r}: shape {shape!r} is not a list of at most {MAX_DIMS} non-negative integers")
            continue
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(_natural(d) for d in offsets):
            problems.append(f"{name!r}: data_offsets {offsets!r} is not a pair of non-negative integers")
            continue
        begin, end = offsets
        count = 1
        for d in shape:
            count *= d
        if count > MAX_ELEMENTS:
            problems.append(f"{name!r}: shape {shape} is absurdly large")
            continue
        if begin > end or end > size - base:
            problems.append(f"{name!r}: data_offsets {begin}..{end} outside the {size - base} data bytes (file truncated?)")
            continue
        if end - begin != count * ITEM_SIZE[dtype]:
            problems.append(f"{name!r}: {end - begin} bytes for {dtype} {shape}, which needs {count * ITEM_SIZE[dtype]}")
            continue
        tensors[name] = Tensor(dtype, tuple(shape), base + begin, base + end)
    if not problems:  # offsets must tile the data exactly; pointless to report when entries are broken already
        at, last = base, None
        for name, t in sorted(tensors.items(), key=lambda kv: (kv[1].begin, kv[1].end)):
            if t.begin < at:
                problems.append(f"{name!r} overlaps {last!r}")
            elif t.begin > at:
                problems.append(f"{t.begin - at} unaccounted bytes before {name!r}")
            at, last = max(at, t.end), name
        if at != size:
            problems.append(f"{size - at} unaccounted bytes at the end")
    if problems:
        raise FormatError(path, problems)
    return tensors, metadata


def read_bytes(path, tensor):
    with open(path, "rb") as f:
        f.seek(tensor.begin)
        return f.read(tensor.nbytes)


def write(path, tensors, metadata=None):
    """tensors: iterable of (name, dtype, shape, data) where data is bytes-like, or a function that returns it when its turn comes
    (so that a large file never has to be in memory as a whole). Wider types go first: every tensor is then aligned to its size."""
    entries = sorted(tensors, key=lambda t: (-ITEM_SIZE[t[1]], t[0]))
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = dict(metadata)
    for name, dtype, shape, _ in entries:
        count = 1
        for d in shape:
            count *= d
        if name in header:
            raise ValueError(f"{name} given twice")
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + count * ITEM_SIZE[dtype]]}
        at += count * ITEM_SIZE[dtype]
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    tmp = f"{path}.tmp"
    with open(tmp, "wb") as f:
        f.write(struct.pack("<Q", len(raw)) + raw)
        for name, _, _, data in entries:
            data = memoryview(data() if callable(data) else data).cast("B")
            begin, end = header[name]["data_offsets"]
            if len(data) != end - begin:
                raise ValueError(f"{name}: {len(data)} bytes given, {end - begin} needed")
            f.write(data)
    os.replace(tmp, path)
    return os.path.getsize(path)
