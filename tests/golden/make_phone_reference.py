#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/phone_reference.jsonl: sentences with the symbols that the voice's training code gives them.

  "$TTS_VOICE_DIR/venv/bin/python" tests/golden/make_phone_reference.py

The voice understands exactly the symbols it was trained on, so the C++ front end is compared with this file. Needs the packages pypinyin
and jieba of tools/voice/requirements.txt, and libflite. The texts stay those of the present file, so a change of the rules shows as a
change of symbols. Lines: {"id", "lang", "text", "symbols": "space separated"}.
"""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "voice"))
from phones import text_to_symbols  # noqa: E402
from symbols import ID  # noqa: E402


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default=os.path.join(HERE, "..", "data", "phone_reference.jsonl"))
    a = p.parse_args()
    with open(os.path.join(HERE, "..", "data", "phone_reference.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    with open(a.out, "w", encoding="utf-8") as f:
        for r in rows:
            symbols = text_to_symbols(r["text"])
            unknown = [s for s in symbols if s not in ID]
            if unknown:
                return f"{r['id']}: symbols outside the inventory: {unknown}"
            f.write(json.dumps({"id": r["id"], "lang": r["lang"], "text": r["text"], "symbols": " ".join(symbols)}, ensure_ascii=False) + "\n")
    print(f"{a.out}: {len(rows)} sentences, {os.path.getsize(a.out) / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
