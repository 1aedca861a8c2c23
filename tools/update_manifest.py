#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recompute sizes and SHA-256 sums of every file that a model's manifest lists; add or drop files.

  python3 tools/update_manifest.py models/nano
  python3 tools/update_manifest.py models/nano --add zh_lexicon=zh_lexicon.bin
  python3 tools/update_manifest.py models/nano --check          # change nothing; exit 1 when something differs
"""
import argparse
import os
import sys

from manifest_lib import file_entry, read_manifest, write_manifest


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", help="model folder that holds manifest.json")
    p.add_argument("--add", metavar="KEY=PATH", action="append", default=[], help="list one more file, path relative to the folder")
    p.add_argument("--remove", metavar="KEY", action="append", default=[], help="stop listing a file")
    p.add_argument("--check", action="store_true", help="only compare")
    a = p.parse_args(argv)
    try:
        manifest = read_manifest(a.folder)
    except (OSError, ValueError) as e:
        return f"error: {e}"
    wanted = {key: entry["path"] for key, entry in manifest["files"].items() if key not in a.remove}
    for pair in a.add:
        key, eq, path = pair.partition("=")
        if not (eq and key and path):
            return f"error: --add {pair}: expected KEY=PATH"
        wanted[key] = path
    files, problems = {}, []
    for key, path in wanted.items():
        try:
            files[key] = file_entry(a.folder, path)
        except (OSError, ValueError) as e:
            problems.append(f"{key}: {e}")
    if problems:
        return "error: " + "\n       ".join(problems)
    changed = [k for k in sorted(set(files) | set(manifest["files"])) if files.get(k) != manifest["files"].get(k)]
    if a.check:
        for key in changed:
            print(f"differs: {key}")
        return 1 if changed else 0
    manifest["files"] = files
    write_manifest(a.folder, manifest)
    total = sum(f["bytes"] for f in files.values())
    print(f"{os.path.join(a.folder, 'manifest.json')}: {len(files)} files, {total / 1e6:.1f} MB, changed: {', '.join(changed) or 'nothing'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
