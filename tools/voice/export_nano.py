#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the trained nano voice as a model folder for the server: float16 safetensors under ChatTTS's tensor names, and a manifest.

  python export_nano.py [--checkpoints DIR] [--out models/nano]

Needs numpy and safetensors. The output does not depend on time or machine: the same checkpoints give the same bytes.
Files that other tools put into the folder (the Mandarin lexicon) stay listed in the manifest.
"""
import argparse
import os
import shutil
import sys

import numpy as np
from safetensors import safe_open

import workspace  # noqa: F401  (first: makes the other tools importable)
from features import HOP, N_FFT, N_MELS, SAMPLE_RATE, hann, mel_bank
from manifest_lib import FORMAT, file_entry, read_manifest, write_manifest
from safetensors_lite import write
from voices import SIZES, SPEAKERS
from workspace import NANO, Workspace

NUM_VQ, LEVELS, GROUPS, ROUNDS = 4, SIZES["dvae"]["vq"]["levels"], SIZES["dvae"]["vq"]["G"], SIZES["dvae"]["vq"]["R"]
# Not visible in any tensor's shape: fixed by the training code.
HEADS, RMS_EPS, ROPE_THETA, MAX_POSITIONS = SIZES["gpt"]["num_attention_heads"], SIZES["gpt"]["rms_norm_eps"], SIZES["gpt"]["rope_theta"], 2048
PARTS = ("gpt", "decoder", "dvae", "vocos")


def load(path):
    with safe_open(path, "np") as f:
        return {k: f.get_tensor(k) for k in f.keys()}, (f.metadata() or {})


def manifest_voice(speaker):
    return {"id": speaker.id, "title": speaker.title, "languages": list(speaker.languages), "gender": speaker.gender, "speaker": {"kind": "tensor", "value": speaker.teacher}}


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
    p.add_argument("--checkpoints", help="folder with gpt, decoder, dvae and vocos as .safetensors (default: the training folder's)")
    p.add_argument("--out", default=NANO, help="model folder (default: models/nano)")
    p.add_argument("--title", default="Nano: a small Mandarin and English voice")
    a = p.parse_args(argv)
    folder = a.checkpoints or Workspace().path("checkpoints")
    missing = [f"{n}.safetensors" for n in PARTS if not os.path.isfile(os.path.join(folder, n + ".safetensors"))]
    if missing:
        p.error(f"{folder} lacks {', '.join(missing)}")
    os.makedirs(a.out, exist_ok=True)
    loaded = {n: load(os.path.join(folder, n + ".safetensors")) for n in PARTS}
    gpt, decoder, dvae, vocos = (loaded[n][0] for n in PARTS)
    trained = loaded["gpt"][1].get("speakers", "zf_xiaobei af_heart").split()
    speakers = [s for s in SPEAKERS if s.teacher in trained]

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
    put(a.out, "speakers.safetensors", {s.teacher: gpt["emb_spk.weight"][i] for i, s in enumerate(SPEAKERS) if s in speakers})
    if not os.path.exists(os.path.join(a.out, "symbols.json")):  # training read its alphabet from models/nano
        shutil.copyfile(os.path.join(NANO, "symbols.json"), os.path.join(a.out, "symbols.json"))

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
        "files": {}, "voices": [manifest_voice(s) for s in speakers], "default_voice": speakers[0].id,
        "sampling": {"temperature": 0.3, "top_p": 0.7, "top_k": 20, "repetition_penalty": 1.0, "min_steps": 8, "max_steps": 700},
        "limits": {"max_prompt_tokens": 400},
        "training": {f"{n}_steps": int(loaded[n][1].get("step", 0)) for n in PARTS}}
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
