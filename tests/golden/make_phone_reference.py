#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/phone_reference.jsonl: sentences with the symbols that the voice's training code gives them.

  python3 tests/golden/make_phone_reference.py --voice-dir "$TTS_VOICE_DIR"

The voice understands exactly the symbols it was trained on, so the C++ front end is compared with this file. Needs the training folder
(tokens.py, texts/corpus.jsonl, data/flite_lex) and its packages pypinyin and jieba. Every fourth corpus sentence is taken, and
the spoken form of each evaluation sentence. Lines: {"id", "lang", "text", "symbols": "space separated"}.
"""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--voice-dir", default=os.environ.get("TTS_VOICE_DIR"), help="training folder (default: $TTS_VOICE_DIR)")
    p.add_argument("--every", type=int, default=4)
    p.add_argument("--out", default=os.path.join(HERE, "..", "data", "phone_reference.jsonl"))
    a = p.parse_args()
    if not a.voice_dir:
        p.error("give --voice-dir or set TTS_VOICE_DIR")
    sys.path.insert(0, a.voice_dir)
    import tokens
    with open(os.path.join(a.voice_dir, "texts", "corpus.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f][::a.every]
    with open(os.path.join(HERE, "..", "data", "sentences.jsonl"), encoding="utf-8") as f:
        rows += [{"id": r["id"], "lang": r["lang"], "text": r["spoken"]} for r in map(json.loads, f)]
    with open(a.out, "w", encoding="utf-8") as f:
        for r in rows:
            symbols = tokens.text_to_tokens(r["text"])
            unknown = [s for s in symbols if s not in tokens.ID]
            if unknown:
                return f"{r['id']}: symbols outside the inventory: {unknown}"
            f.write(json.dumps({"id": r["id"], "lang": r["lang"], "text": r["text"], "symbols": " ".join(symbols)}, ensure_ascii=False) + "\n")
    print(f"{a.out}: {len(rows)} sentences, {os.path.getsize(a.out) / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
