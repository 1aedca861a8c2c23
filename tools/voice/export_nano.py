#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the trained nano voice as a model folder for the server: float16 safetensors under ChatTTS's tensor names, and a manifest.

  python3 tools/voice/export_nano.py --voice-dir "$TTS_VOICE_DIR" --ckpt ckpt --out models/nano

Needs numpy and safetensors. The output does not depend on time or machine: the same checkpoints give the same bytes.
Files that other tools put into the folder (the Mandarin lexicon) stay listed in the manifest.
"""
import argparse
import importlib.util
import json
import os
import sys

import numpy as np
from safetensors import safe_open

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from manifest_lib import FORMAT, file_entry, read_manifest, write_manifest  # noqa: E402
from safetensors_lite import write  # noqa: E402

SAMPLE_RATE, N_FFT, HOP, N_MELS = 24000, 1024, 256, 100
NUM_VQ, LEVELS, GROUPS, ROUNDS = 4, [5, 5, 5, 5], 2, 2
# Not visible in any tensor's shape: fixed by the training code.
HEADS, RMS_EPS, ROPE_THETA, MAX_POSITIONS = 4, 1e-6, 10000.0, 2048
SPEAKERS = ["zf_xiaobei", "af_heart"]
VOICES = [
    {"id": "xiaobei", "title": "Xiaobei", "languages": ["zh", "en"], "gender": "female", "speaker": {"kind": "tensor", "value": "zf_xiaobei"}},
    {"id": "heart", "title": "Heart", "languages": ["en"], "gender": "female", "speaker": {"kind": "tensor", "value": "af_heart"}},
]


def load(path):
    with safe_open(path, "np") as f:
        return {k: f.get_tensor(k) for k in f.keys()}, (f.metadata() or {})


def load_tables(voice_dir):
    """The symbol inventory lives in the training code's tokens.py; loaded by path because its name collides with a standard module's relatives."""
    spec = importlib.util.spec_from_file_location("voice_tokens", os.path.join(voice_dir, "tokens.py"))
    tokens = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tokens)
    return {"symbols": tokens.VOCAB, "padded_to": tokens.N_VOCAB, "function_words": tokens.FUNC, "letters": tokens._LETTER}


def hann():
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)).astype(np.float32)


def mel_bank():
    """HTK triangles from 0 to 12 kHz without area normalisation, [513, 100]: what the models were trained on."""
    top = 2595.0 * np.log10(1 + SAMPLE_RATE / 2 / 700.0)
    points = 700.0 * (10 ** (np.linspace(0.0, top, N_MELS + 2) / 2595.0) - 1)
    f = np.linspace(0, SAMPLE_RATE / 2, N_FFT // 2 + 1)
    width = np.diff(points)
    up = (f[:, None] - points[None, :-2]) / width[None, :-1]
    down = (points[None, 2:] - f[:, None]) / width[None, 1:]
    return np.maximum(0, np.minimum(up, down)).astype(np.float32)


def mel_buffers(prefix):
    return {f"{prefix}.mel_spec.spectrogram.window": hann(), f"{prefix}.mel_spec.mel_scale.fb": mel_bank()}


def put(folder, name, weights, buffers=None):
    """Weights as float16, buffers (windows, filter banks, mel scale) as float32: they are small and their rounding would be audible in sums."""
    entries = []
    for key, w in weights.items():
        h = np.ascontiguousarray(w, np.float32).astype(np.float16)
        if not np.isfinite(h).all():
            raise ValueError(f"{name}: {key} has values that float16 cannot hold")
        entries.append((key, "F16", h.shape, h.tobytes()))
    for key, w in (buffers or {}).items():
        w = np.ascontiguousarray(w, np.float32)
        entries.append((key, "F32", w.shape, w.tobytes()))
    size = write(os.path.join(folder, name), entries, {"format": "pt"})
    print(f"{name}: {len(entries)} tensors, {size / 1e6:.2f} MB")


def stack_sizes(w, prefix):
    """Sizes of one ConvNeXt stack, read from its tensors."""
    bn_dim, idim, _ = w[f"{prefix}.conv_in.0.weight"].shape
    odim, hidden, _ = w[f"{prefix}.conv_out.weight"].shape
    layers = {k.split(".")[2] for k in w if k.startswith(f"{prefix}.decoder_block.")}
    return {"idim": idim, "odim": odim, "hidden": hidden, "n_layer": len(layers), "bn_dim": bn_dim}


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--voice-dir", default=os.environ.get("TTS_VOICE_DIR"), help="training folder with tokens.py (default: $TTS_VOICE_DIR)")
    p.add_argument("--ckpt", default="ckpt", help="checkpoint folder, relative to the training folder")
    p.add_argument("--out", default="models/nano")
    p.add_argument("--title", default="Nano: a small Mandarin and English voice")
    a = p.parse_args(argv)
    if not a.voice_dir:
        p.error("give --voice-dir or set TTS_VOICE_DIR")
    ckpt = os.path.join(a.voice_dir, a.ckpt)
    missing = [n for n in ("gpt", "decoder", "dvae", "vocos") if not os.path.isfile(os.path.join(ckpt, n + ".safetensors"))]
    if missing:
        p.error(f"{ckpt} lacks {', '.join(n + '.safetensors' for n in missing)}")
    os.makedirs(a.out, exist_ok=True)
    (gpt, meta), (decoder, _), (dvae, _), (vocos, _) = (load(os.path.join(ckpt, n + ".safetensors")) for n in ("gpt", "decoder", "dvae", "vocos"))

    put(a.out, "gpt.safetensors", {k: v for k, v in gpt.items() if k.startswith(("layers.", "norm."))})
    embed = {k: v for k, v in gpt.items() if k.startswith(("emb_text", "emb_code"))}
    for i in range(NUM_VQ):
        head = gpt[f"head_code.{i}.weight"]
        embed[f"head_code.{i}.parametrizations.weight.original0"] = np.linalg.norm(head, axis=1, keepdims=True)
        embed[f"head_code.{i}.parametrizations.weight.original1"] = head
    put(a.out, "embed.safetensors", embed)  # no head_text: this voice has no text-refinement pass
    for name, w, more in (("decoder", decoder, {}), ("dvae", dvae, mel_buffers("preprocessor_mel"))):
        put(a.out, f"{name}.safetensors", {k: v for k, v in w.items() if k != "coef"}, {"coef": w["coef"], **more})
    put(a.out, "vocos.safetensors", vocos, {"head.istft.window": hann(), **mel_buffers("feature_extractor")})
    put(a.out, "speakers.safetensors", {n: gpt["emb_spk.weight"][i] for i, n in enumerate(SPEAKERS)})
    with open(os.path.join(a.out, "symbols.json"), "w", encoding="utf-8") as f:
        json.dump(load_tables(a.voice_dir), f, ensure_ascii=False, indent=0)
        f.write("\n")

    layers = len({k.split(".")[1] for k in gpt if k.startswith("layers.")})
    inter, hidden = gpt["layers.0.mlp.gate_proj.weight"].shape
    v_inter, v_dim = vocos["backbone.convnext.0.pwconv1.weight"].shape
    vq_dim = dvae["vq_layer.quantizer.rvqs.0.project_out.weight"].shape[0] * GROUPS
    manifest = {
        "format": FORMAT, "name": "nano", "title": a.title, "license": "Apache-2.0", "family": "chattts",
        "text": {"front_end": "phones"}, "speaker_precision": "float32",
        "architecture": {
            "sample_rate": SAMPLE_RATE, "n_fft": N_FFT, "hop": HOP, "n_mels": N_MELS,
            "gpt": {"hidden_size": hidden, "intermediate_size": inter, "num_hidden_layers": layers, "num_attention_heads": HEADS,
                    "num_key_value_heads": HEADS, "rms_norm_eps": RMS_EPS, "rope_theta": ROPE_THETA, "max_position_embeddings": MAX_POSITIONS,
                    "num_text_tokens": gpt["emb_text.weight"].shape[0], "num_audio_tokens": gpt["emb_code.0.weight"].shape[0], "num_vq": NUM_VQ},
            "decoder": stack_sizes(decoder, "decoder"),
            "dvae": {"encoder": stack_sizes(dvae, "encoder"), "decoder": stack_sizes(dvae, "decoder"),
                     "vq": {"dim": vq_dim, "levels": LEVELS, "G": GROUPS, "R": ROUNDS}},
            "vocos": {"dim": v_dim, "intermediate_dim": v_inter,
                      "num_layers": len({k.split(".")[2] for k in vocos if k.startswith("backbone.convnext.")})}},
        "files": {}, "voices": VOICES, "default_voice": "xiaobei",
        "sampling": {"temperature": 0.3, "top_p": 0.7, "top_k": 20, "repetition_penalty": 1.0, "min_steps": 8, "max_steps": 700},
        "limits": {"max_prompt_tokens": 400},
        "training": {"gpt_steps": int(meta.get("step", 0))}}
    listed = {k: f"{k}.safetensors" for k in ("gpt", "embed", "decoder", "dvae", "vocos", "speakers")}
    listed["symbols"] = "symbols.json"
    try:
        for key, entry in read_manifest(a.out)["files"].items():
            if key not in listed and os.path.isfile(os.path.join(a.out, entry["path"])):
                listed[key] = entry["path"]
    except (OSError, ValueError):
        pass  # first export into this folder
    manifest["files"] = {key: file_entry(a.out, path) for key, path in listed.items()}
    write_manifest(a.out, manifest)
    print(f"manifest: {len(listed)} files, {sum(f['bytes'] for f in manifest['files'].values()) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
