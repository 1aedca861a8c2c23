# SPDX-License-Identifier: Apache-2.0
"""Reading, hashing and writing model manifests (models/<name>/manifest.json). Standard library only."""
import hashlib
import json
import os

FORMAT = 1


def sha256_of(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()


def file_entry(folder, relative):
    """The manifest's record of one file. Paths stay inside the model's folder so that a manifest cannot make the server read others."""
    if os.path.isabs(relative) or ".." in relative.replace("\\", "/").split("/"):
        raise ValueError(f"{relative}: the path must lie inside the model's folder")
    full = os.path.join(folder, relative)
    return {"path": relative.replace(os.sep, "/"), "sha256": sha256_of(full), "bytes": os.path.getsize(full)}


def _dump(value, indent):
    """JSON with short objects on one line: the file is read by people too."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or len(flat) + indent <= 150:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        body = [f"{pad}{json.dumps(k, ensure_ascii=False)}: {_dump(v, indent + 2)}" for k, v in value.items()]
        return "{\n" + ",\n".join(body) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + _dump(v, indent + 2) for v in value) + "\n" + " " * indent + "]"


def write_manifest(folder, manifest):
    path = os.path.join(folder, "manifest.json")
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.write(_dump(manifest, 0) + "\n")
    os.replace(path + ".tmp", path)
    return path


def read_manifest(folder):
    path = os.path.join(folder, "manifest.json")
    with open(path, encoding="utf-8") as f:
        manifest = json.load(f)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or not isinstance(manifest.get("files"), dict):
        raise ValueError(f"{path}: not a format {FORMAT} manifest")
    return manifest
