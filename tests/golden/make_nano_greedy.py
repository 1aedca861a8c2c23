#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/golden/data/nano_greedy.json and nano_audio.safetensors: what the bundled voice's training code computes.

  "$TTS_VOICE_DIR/venv/bin/python" tests/golden/make_nano_greedy.py [--model models/nano]

The weights are the exported ones (float16 in the files, widened to float32, heads folded in float32), so an engine that loads the same files
must reach the same codes. Greedy: argmax of the raw logits of each codebook, no penalty, the end code forbidden for the first
`min_steps` steps, an utterance ends when any codebook gives the end code, at most `max_steps` steps. `min_gap` is the smallest distance
between the best and the second logit met on the way; sentences in which it is below --gap are replaced by later candidates, because
there rounding alone could change a code. Needs the packages of tools/voice/requirements.txt (tools/voice/train makes that environment).
"""
import argparse
import json
import os
import sys

import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "voice"))
from gpt import END_CODE  # noqa: E402
from phones import text_to_symbols  # noqa: E402
from speech_models import Voice  # noqa: E402
from symbols import prompt  # noqa: E402
from voices import ROW  # noqa: E402

MIN_STEPS, MAX_STEPS, AUDIO_STEPS = 8, 120, 50
PROBE_STEPS, PROBE_DIMS = (0, 1, 2, 7, 15, 31, 47), 8
# id of tests/data/sentences.jsonl, or a text of its own; voice
WANTED = [("zh-talk-01", "zf_xiaobei"), ("en-talk-01", "zf_xiaobei"), ("en-talk-01", "af_heart"), ("zh-ask-01", "zf_xiaobei"),
          ("你好。", "zf_xiaobei"), ("Yes.", "af_heart"), ("今天天气怎么样？", "zf_xiaobei"), ("zh-mix-01", "zf_xiaobei"),
          ("zh-news-01", "zf_xiaobei"), ("en-news-01", "af_heart"), ("zh-name-01", "zf_xiaobei"), ("en-ask-01", "zf_xiaobei"),
          ("The train leaves in five minutes.", "af_heart"), ("我们明天早上八点出发。", "zf_xiaobei"), ("en-name-01", "zf_xiaobei"), ("zh-num-01", "zf_xiaobei"),
          ("Good morning.", "zf_xiaobei"), ("谢谢你的帮助。", "zf_xiaobei"), ("zh-talk-03", "zf_xiaobei"), ("en-story-01", "af_heart")]


def greedy(gpt, ids, speaker):
    """-> codes [T][4], hidden states [T, hidden], smallest gap, whether it ended by itself."""
    caches = [[] for _ in gpt.layers]
    x = gpt.embed_text(torch.tensor([ids]), torch.tensor([speaker]))
    position, codes, hidden, gap = 0, [], [], 1e9
    for step in range(MAX_STEPS):
        h, _ = gpt.trunk(x, start=position, caches=caches)
        position += x.shape[1]
        h = h[:, -1]
        logits = gpt.logits(h)[0]
        if step < MIN_STEPS:
            logits[:, END_CODE] = float("-inf")
        best = logits.topk(2, -1)
        gap = min(gap, float((best.values[:, 0] - best.values[:, 1]).min()))
        code = best.indices[:, 0]
        if bool((code == END_CODE).any()):
            return codes, torch.stack(hidden), gap, True
        codes.append(code.tolist())
        hidden.append(h[0])
        x = gpt.embed_codes(code[None, None])
    return codes, torch.stack(hidden), gap, False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default=os.path.join(HERE, "..", "..", "models", "nano"))
    p.add_argument("--out", default=os.path.join(HERE, "data"))
    p.add_argument("--count", type=int, default=10)
    p.add_argument("--gap", type=float, default=5e-4, help="replace sentences with a smaller gap (default: %(default)s)")
    a = p.parse_args()
    torch.set_num_threads(1)
    with open(os.path.join(HERE, "..", "data", "sentences.jsonl"), encoding="utf-8") as f:
        sentences = {r["id"]: r["spoken"] for r in map(json.loads, f)}
    with open(os.path.join(a.model, "manifest.json"), encoding="utf-8") as f:
        manifest = json.load(f)
    voice_of = {v["speaker"]["value"]: v["id"] for v in manifest["voices"]}
    models = Voice(os.path.abspath(a.model)).models
    gpt, decoder, dvae, vocos = (models[n] for n in ("gpt", "decoder", "dvae", "vocos"))
    out, audio = [], None
    with torch.inference_mode():
        for key, speaker in WANTED:
            if len(out) == a.count:
                break
            if key not in sentences and key[0].isascii() and key[0].islower():
                return f"{key}: no such sentence"
            text = sentences.get(key, key)
            symbols = text_to_symbols(text)
            ids = prompt(symbols)
            codes, hidden, gap, ended = greedy(gpt, ids, ROW[speaker])
            print(f"{key} {speaker}: {len(codes)} steps, gap {gap:.2e}{'' if gap >= a.gap else ' (left out)'}", flush=True)
            if gap < a.gap:
                continue
            row = {"text": text, "voice": voice_of[speaker], "symbols": " ".join(symbols), "token_ids": ids, "ended": ended, "min_gap": round(gap, 6), "codes": codes}
            if audio is None and len(codes) >= AUDIO_STEPS:
                row["hidden_probe"] = {str(s): [round(x, 6) for x in hidden[s, :PROBE_DIMS].tolist()] for s in PROBE_STEPS}
                row["audio"] = "nano_audio.safetensors"
                h = hidden[:AUDIO_STEPS]
                mel = decoder(h.T[None])[0]
                code = torch.tensor(codes[:AUDIO_STEPS])
                wave = vocos(mel[None])[0]
                row["audio_rms"], row["audio_peak"] = round(float(wave.square().mean().sqrt()), 6), round(float(wave.abs().max()), 6)
                audio = {"hidden": h, "codes": code.to(torch.int32), "mel": mel, "wave": wave, "dvae_mel": dvae.decode(dvae.vq_layer.embed(code.T[None]))[0]}
            out.append(row)
    if len(out) < a.count or audio is None:
        return f"only {len(out)} sentences have a gap of at least {a.gap}"
    path = os.path.join(a.out, "nano_greedy.json")
    head = {"model_files": {k: manifest["files"][k]["sha256"] for k in ("gpt", "embed", "decoder", "dvae", "vocos", "speakers")},
            "min_steps": MIN_STEPS, "max_steps": MAX_STEPS, "end_code": END_CODE}
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps(head)[:-1] + ', "sentences": [\n' + ",\n".join(json.dumps(r, ensure_ascii=False) for r in out) + "\n]}\n")
    wav = os.path.join(a.out, "nano_audio.safetensors")
    save_file({k: v.contiguous().clone() for k, v in audio.items()}, wav)
    print(f"{path}: {len(out)} sentences, {os.path.getsize(path) // 1000} kB; {wav}: {os.path.getsize(wav) // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
