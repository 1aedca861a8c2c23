#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn a downloaded ChatTTS checkpoint into a model folder for the server.

FOLDER is what you downloaded yourself: it holds asset/Embed.safetensors, asset/gpt/model.safetensors and so on. Nothing is fetched.
The weights are licensed CC BY-NC 4.0 (no commercial use) by their authors; this tool changes none of them.

  python3 tools/import_chattts.py ~/ChatTTS                                  # -> models/chattts, hard links where possible
  python3 tools/import_chattts.py ~/ChatTTS --speaker-stat stat.txt          # adds random speakers, named by seed
  python3 tools/import_chattts.py ~/my-finetune --allow-unknown-hashes       # a retrained or random checkpoint
  python3 tools/import_chattts.py folder --out folder                        # in place: only the manifest is written

What is checked, before anything is written: all nine files are there and have the published SHA-256; every tensor has the expected name,
shape and place; the sizes agree between the files and with gpt/config.json; the tokenizer has the control tokens. All problems are
reported together. Standard library only.
"""
import argparse
import json
import os
import re
import shutil
import struct
import sys

from manifest_lib import FORMAT, file_entry, sha256_of, write_manifest
from safetensors_lite import FormatError, read_header

# role in the manifest -> (path in the official layout, SHA-256 published with release 0.2.5)
FILES = {
    "gpt": ("asset/gpt/model.safetensors", "cd0806fd971f52f6a22c923ec64982b305e817bcc41ca83417fcf9141b984a0f"),
    "embed": ("asset/Embed.safetensors", "2ff0be7134934155741b643b74e32fb6bf3eec41257984459b2ed60cdb4c48b0"),
    "decoder": ("asset/Decoder.safetensors", "77aa55e0a977949c4733df3c6f876fa85860d3298cba63295a7bc6901729d4e0"),
    "dvae": ("asset/DVAE.safetensors", "1d0b044a8368c0513100a2eca98456b289e6be6a18b7a63be1bcaa315ea874d9"),
    "vocos": ("asset/Vocos.safetensors", "07e5561491cce41f7f90cfdb94b2ff263ff5742c3d89339db99b17ad82cc3f44"),
    "gpt_config": ("asset/gpt/config.json", "0aaa1ecd96c49ad4f473459eb1982fa7ad79fa5de08cde2781bf6ad1f9a0c236"),
    "tokenizer": ("asset/tokenizer/tokenizer.json", "843838a64e121e23e774cc75874c6fe862198d9f7dd43747914633a8fd89c20e"),
    "tokenizer_config": ("asset/tokenizer/tokenizer_config.json", "43e9d658b554fa5ee8d8e1d763349323bfef1ed7a89c0794220ab8861387d421"),
    "special_tokens_map": ("asset/tokenizer/special_tokens_map.json", "bd0ac9d9bb1657996b5c5fbcaa7d80f8de530d01a283da97f89deae5b1b8d011"),
}
WEIGHTS = ("gpt", "embed", "decoder", "dvae", "vocos")
FLOATS = ("F32", "F16", "BF16")
# Fixed by the model family: no tensor's shape shows them.
SAMPLE_RATE, HOP, LEVEL, CODEBOOKS = 24000, 256, 5, 4
NEEDED_TOKENS = ("[Stts]", "[Ptts]", "[spk_emb]", "[empty_spk]", "[Sbreak]", "[Pbreak]", "[Ebreak]", "[break_0]")
MAX_JSON = 64 << 20


class Problems:
    """Collects everything wrong, so that the user repairs a download once and not file by file."""

    def __init__(self):
        self.items = []

    def add(self, where, text):
        self.items.append(f"{where}: {text}")

    def __bool__(self):
        return bool(self.items)


class Shapes:
    """Tensors of one file while they are being accounted for: what is asked for is ticked off, what is left over is a problem."""

    def __init__(self, where, tensors, problems):
        self.where, self.tensors, self.problems, self.seen = where, tensors, problems, set()

    def get(self, name, dims):
        """Shape of a tensor from which sizes are derived, or None (reported)."""
        t = self.tensors.get(name)
        self.seen.add(name)
        if t is None:
            self.problems.add(self.where, f"tensor {name} is missing")
        elif len(t.shape) != dims or 0 in t.shape:
            self.problems.add(self.where, f"tensor {name} has shape {list(t.shape)}, expected {dims} non-zero dimensions")
        elif t.dtype not in FLOATS:
            self.problems.add(self.where, f"tensor {name} has type {t.dtype}, expected one of {', '.join(FLOATS)}")
        else:
            return t.shape
        return None

    def expect(self, name, shape):
        self.seen.add(name)
        t = self.tensors.get(name)
        if t is None:
            self.problems.add(self.where, f"tensor {name} is missing")
        elif t.dtype not in FLOATS:
            self.problems.add(self.where, f"tensor {name} has type {t.dtype}, expected one of {', '.join(FLOATS)}")
        elif list(t.shape) != list(shape):
            self.problems.add(self.where, f"tensor {name} has shape {list(t.shape)}, expected {list(shape)}")

    def pair(self, prefix, weight, bias):
        self.expect(f"{prefix}.weight", weight)
        self.expect(f"{prefix}.bias", bias)

    def count(self, pattern):
        """How many consecutive indices from 0 match the pattern's group."""
        found = {int(m.group(1)) for name in self.tensors if (m := re.fullmatch(pattern, name))}
        if not found or found != set(range(len(found))):
            self.problems.add(self.where, f"indices of {pattern} are {sorted(found)[:40]}, expected 0, 1, 2, ... without gaps")
            return None
        return len(found)

    def finish(self):
        for name in sorted(set(self.tensors) - self.seen):
            self.problems.add(self.where, f"unexpected tensor {name}")


def conv_stack(s, prefix):
    """Sizes of one ConvNeXt stack, with every tensor of it checked against them; None when they cannot be derived."""
    first, last = s.get(f"{prefix}.conv_in.0.weight", 3), s.get(f"{prefix}.conv_out.weight", 3)
    layers = s.count(re.escape(prefix) + r"\.decoder_block\.(\d{1,4})\.weight")
    if first is None or last is None or layers is None:
        return None
    bn, idim, _ = first
    odim, hidden, _ = last
    s.pair(f"{prefix}.conv_in.0", [bn, idim, 3], [bn])
    s.pair(f"{prefix}.conv_in.2", [hidden, bn, 3], [hidden])
    s.expect(f"{prefix}.conv_out.weight", [odim, hidden, 1])
    for i in range(layers):
        b = f"{prefix}.decoder_block.{i}"
        s.expect(f"{b}.weight", [hidden])
        s.pair(f"{b}.dwconv", [hidden, 1, 7], [hidden])
        s.pair(f"{b}.norm", [hidden], [hidden])
        s.pair(f"{b}.pwconv1", [4 * hidden, hidden], [4 * hidden])
        s.pair(f"{b}.pwconv2", [hidden, 4 * hidden], [hidden])
    return {"idim": idim, "odim": odim, "hidden": hidden, "n_layer": layers, "bn_dim": bn}


def mel_buffers(s, prefix, n_fft, n_mels):
    s.expect(f"{prefix}.mel_spec.spectrogram.window", [n_fft])
    s.expect(f"{prefix}.mel_spec.mel_scale.fb", [n_fft // 2 + 1, n_mels])


def check_gpt(s):
    layers = s.count(r"layers\.(\d{1,4})\.input_layernorm\.weight")
    q, k = s.get("layers.0.self_attn.q_proj.weight", 2), s.get("layers.0.self_attn.k_proj.weight", 2)
    gate = s.get("layers.0.mlp.gate_proj.weight", 2)
    if layers is None or q is None or k is None or gate is None:
        return None
    inner, hidden = gate
    for i in range(layers):
        p = f"layers.{i}"
        s.expect(f"{p}.self_attn.q_proj.weight", [q[0], hidden])
        s.expect(f"{p}.self_attn.k_proj.weight", [k[0], hidden])
        s.expect(f"{p}.self_attn.v_proj.weight", [k[0], hidden])
        s.expect(f"{p}.self_attn.o_proj.weight", [hidden, q[0]])
        s.expect(f"{p}.mlp.gate_proj.weight", [inner, hidden])
        s.expect(f"{p}.mlp.up_proj.weight", [inner, hidden])
        s.expect(f"{p}.mlp.down_proj.weight", [hidden, inner])
        s.expect(f"{p}.input_layernorm.weight", [hidden])
        s.expect(f"{p}.post_attention_layernorm.weight", [hidden])
    s.expect("norm.weight", [hidden])
    if "embed_tokens.weight" in s.tensors:  # present in some exports, never used by the model
        s.get("embed_tokens.weight", 2)
    s.finish()
    return {"hidden": hidden, "inner": inner, "layers": layers, "q_rows": q[0], "kv_rows": k[0]}


def check_embed(s):
    text, code = s.get("emb_text.weight", 2), s.get("emb_code.0.weight", 2)
    num_vq = s.count(r"emb_code\.(\d{1,4})\.weight")
    if text is None or code is None or num_vq is None:
        return None
    (n_text, hidden), n_audio = text, code[0]
    heads = [("head_text", n_text)] + [(f"head_code.{q}", n_audio) for q in range(num_vq)]
    for q in range(num_vq):
        s.expect(f"emb_code.{q}.weight", [n_audio, hidden])
    for name, rows in heads:
        s.expect(f"{name}.parametrizations.weight.original0", [rows, 1])
        s.expect(f"{name}.parametrizations.weight.original1", [rows, hidden])
    s.finish()
    return {"hidden": hidden, "n_text": n_text, "n_audio": n_audio, "num_vq": num_vq}


def check_decoder(s):
    stack, coef = conv_stack(s, "decoder"), s.get("coef", 3)
    if stack is None or coef is None:
        return None
    s.expect("coef", [1, coef[1], 1])
    s.expect("out_conv.weight", [coef[1], stack["odim"], 3])
    s.finish()
    return {"stack": stack, "n_mels": coef[1]}


def check_dvae(s):
    encoder, decoder, coef = conv_stack(s, "encoder"), conv_stack(s, "decoder"), s.get("coef", 3)
    window = s.get("preprocessor_mel.mel_spec.spectrogram.window", 1)
    groups = s.count(r"vq_layer\.quantizer\.rvqs\.(\d{1,4})\.project_in\.weight")
    p_in = s.get("vq_layer.quantizer.rvqs.0.project_in.weight", 2)
    if None in (encoder, decoder, coef, window, groups, p_in):
        return None
    n_mels, dim, (digits, part) = coef[1], encoder["idim"], p_in
    s.expect("coef", [1, n_mels, 1])
    s.pair("downsample_conv.0", [dim, n_mels, 3], [dim])
    s.pair("downsample_conv.2", [dim, dim, 4], [dim])
    s.expect("out_conv.weight", [n_mels, decoder["odim"], 3])
    mel_buffers(s, "preprocessor_mel", window[0], n_mels)
    for g in range(groups):
        s.pair(f"vq_layer.quantizer.rvqs.{g}.project_in", [digits, part], [digits])
        s.pair(f"vq_layer.quantizer.rvqs.{g}.project_out", [part, digits], [part])
    s.finish()
    return {"encoder": encoder, "decoder": decoder, "n_mels": n_mels, "n_fft": window[0], "groups": groups, "digits": digits, "vq_dim": part * groups}


def check_vocos(s):
    embed, inner = s.get("backbone.embed.weight", 3), s.get("backbone.convnext.0.pwconv1.weight", 2)
    layers, window = s.count(r"backbone\.convnext\.(\d{1,4})\.gamma"), s.get("head.istft.window", 1)
    if None in (embed, inner, layers, window):
        return None
    dim, n_mels, _ = embed
    mid, n_fft = inner[0], window[0]
    s.pair("backbone.embed", [dim, n_mels, 7], [dim])
    s.pair("backbone.norm", [dim], [dim])
    s.pair("backbone.final_layer_norm", [dim], [dim])
    for i in range(layers):
        b = f"backbone.convnext.{i}"
        s.expect(f"{b}.gamma", [dim])
        s.pair(f"{b}.dwconv", [dim, 1, 7], [dim])
        s.pair(f"{b}.norm", [dim], [dim])
        s.pair(f"{b}.pwconv1", [mid, dim], [mid])
        s.pair(f"{b}.pwconv2", [dim, mid], [dim])
    s.pair("head.out", [n_fft + 2, dim], [n_fft + 2])
    mel_buffers(s, "feature_extractor", n_fft, n_mels)
    s.finish()
    return {"dim": dim, "inner": mid, "layers": layers, "n_mels": n_mels, "n_fft": n_fft}


def read_json(path, where, problems):
    if os.path.getsize(path) > MAX_JSON:
        problems.add(where, f"larger than {MAX_JSON >> 20} MiB, not a configuration file")
        return None
    try:
        with open(path, encoding="utf-8") as f:
            value = json.load(f)
    except (ValueError, RecursionError) as e:
        problems.add(where, f"not valid JSON: {e}")
        return None
    if not isinstance(value, dict):
        problems.add(where, "not a JSON object")
        return None
    return value


def gpt_settings(config, problems, where):
    """The settings that shapes cannot show. Defaults are those of a Llama configuration, where the format defines one."""
    def number(key, default, kinds):
        v = config.get(key, default)
        if isinstance(v, bool) or not isinstance(v, kinds) or not v > 0:
            problems.add(where, f"{key} is {v!r}, expected a positive number" if v is not None else f"{key} is missing")
            return None
        return v

    out = {"heads": number("num_attention_heads", None, int), "eps": number("rms_norm_eps", 1e-6, (int, float)),
           "theta": number("rope_theta", 10000.0, (int, float)), "positions": number("max_position_embeddings", None, int)}
    kv = config.get("num_key_value_heads")
    out["kv_heads"] = number("num_key_value_heads", out["heads"], int) if kv is not None else out["heads"]
    for key, allowed, default in (("hidden_act", ("silu",), "silu"), ("attention_bias", (False,), False), ("mlp_bias", (False,), False),
                                  ("rope_scaling", (None,), None)):
        if config.get(key, default) not in allowed:
            problems.add(where, f"{key} is {config[key]!r}; this engine supports only {allowed[0]!r}")
    return out


def check_tokenizer(tokenizer, n_text, problems, where):
    model = tokenizer.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocab, dict) or model.get("type", "WordPiece") != "WordPiece":
        problems.add(where, "model is not a WordPiece vocabulary")
        return
    ids = {}
    added = tokenizer.get("added_tokens", [])
    for entry in [{"content": k, "id": v} for k, v in vocab.items()] + (added if isinstance(added, list) else []):
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or type(entry.get("id")) is not int:
            problems.add(where, f"entry {str(entry)[:80]} has no name and number")
            return
        ids[entry["content"]] = entry["id"]
    missing = [t for t in NEEDED_TOKENS if t not in ids]
    if missing:
        problems.add(where, f"control tokens missing: {' '.join(missing)}")
    if n_text is not None:
        outside = [t for t, i in ids.items() if not 0 <= i < n_text]
        if outside:
            problems.add(where, f"{len(outside)} tokens have numbers outside the embedding's {n_text} rows, e.g. {outside[0]}")


def same(problems, what, *values):
    """values: (description, number or None). Unknown ones were reported where they should have come from."""
    known = [v for v in values if v[1] is not None]
    if len({n for _, n in known}) > 1:
        problems.add(what, "do not agree: " + ", ".join(f"{d} {n}" for d, n in known))


def derive_architecture(headers, config, problems):
    checks = {"gpt": check_gpt, "embed": check_embed, "decoder": check_decoder, "dvae": check_dvae, "vocos": check_vocos}
    got = {}
    for role, check in checks.items():
        if role in headers:
            got[role] = check(Shapes(FILES[role][0], headers[role], problems))
    g, e, d, v, o = (got.get(r) or {} for r in ("gpt", "embed", "decoder", "dvae", "vocos"))
    where = FILES["gpt_config"][0]
    s = gpt_settings(config, problems, where) if config is not None else {}
    config = config or {}
    stack, v_dec = d.get("stack") or {}, v.get("decoder") or {}
    same(problems, "hidden sizes", ("gpt", g.get("hidden")), ("Embed", e.get("hidden")), ("gpt/config.json", config.get("hidden_size")),
         ("twice the Decoder's idim", 2 * stack["idim"] if stack else None))
    same(problems, "MLP sizes", ("gpt", g.get("inner")), ("gpt/config.json", config.get("intermediate_size")))
    same(problems, "layer counts", ("gpt", g.get("layers")), ("gpt/config.json", config.get("num_hidden_layers")))
    same(problems, "text vocabularies", ("Embed", e.get("n_text")), ("gpt/config.json", config.get("num_text_tokens")))
    same(problems, "audio vocabularies", ("Embed", e.get("n_audio")), ("gpt/config.json", config.get("num_audio_tokens")),
         ("DVAE's codes + 1", LEVEL ** v["digits"] + 1 if v else None))
    same(problems, "codebook counts", ("Embed", e.get("num_vq")), ("gpt/config.json", config.get("num_vq")))
    same(problems, "mel channels", ("Decoder", d.get("n_mels")), ("DVAE", v.get("n_mels")), ("Vocos", o.get("n_mels")))
    same(problems, "FFT sizes", ("DVAE", v.get("n_fft")), ("Vocos", o.get("n_fft")))
    same(problems, "quantiser widths", ("twice the DVAE decoder's idim", 2 * v_dec["idim"] if v_dec else None), ("DVAE vq", v.get("vq_dim")),
         ("DVAE encoder odim", v["encoder"]["odim"] if v else None))
    if g and s.get("heads") and s.get("kv_heads"):
        if g["q_rows"] % s["heads"] or s["heads"] % s["kv_heads"] or g["kv_rows"] * s["heads"] != g["q_rows"] * s["kv_heads"]:
            problems.add(where, f"{s['heads']} heads and {s['kv_heads']} key/value heads do not fit projections of {g['q_rows']} and {g['kv_rows']} rows")
        elif g["q_rows"] != g["hidden"] or g["q_rows"] // s["heads"] % 2:
            problems.add(where, f"heads of {g['q_rows'] / s['heads']:g} values: the engine needs hidden_size / heads to be even and whole")
    if v and e and e["num_vq"] % v["groups"]:
        problems.add(FILES["dvae"][0], f"{v['groups']} quantiser groups do not divide {e['num_vq']} codebooks")
    if e and e["num_vq"] != CODEBOOKS:
        problems.add(FILES["embed"][0], f"{e['num_vq']} codebooks; the engine is built for {CODEBOOKS}")
    if o and o["n_fft"] != 4 * HOP:
        problems.add(FILES["vocos"][0], f"window of {o['n_fft']} samples; the engine needs {4 * HOP}")
    if problems or not all((g, e, d, v, o, s)):
        return None
    return {
        "sample_rate": SAMPLE_RATE, "n_fft": o["n_fft"], "hop": HOP, "n_mels": o["n_mels"],
        "gpt": {"hidden_size": g["hidden"], "intermediate_size": g["inner"], "num_hidden_layers": g["layers"], "num_attention_heads": s["heads"],
                "num_key_value_heads": s["kv_heads"], "rms_norm_eps": s["eps"], "rope_theta": s["theta"], "max_position_embeddings": s["positions"],
                "num_text_tokens": e["n_text"], "num_audio_tokens": e["n_audio"], "num_vq": e["num_vq"]},
        "decoder": stack,
        "dvae": {"encoder": v["encoder"], "decoder": v_dec,
                 "vq": {"dim": v["vq_dim"], "levels": [LEVEL] * v["digits"], "G": v["groups"], "R": e["num_vq"] // v["groups"]}},
        "vocos": {"dim": o["dim"], "intermediate_dim": o["inner"], "num_layers": o["layers"]}}


# ------------------------------------------------------------------ files that only the user can supply
def base16384_decode(text):
    """14 bits a character from U+4E00 on; a last character U+3D00 + r says how many bytes (mod 7) the tail holds."""
    rest = 0
    if text and 0x3D01 <= ord(text[-1]) <= 0x3D06:
        rest, text = ord(text[-1]) - 0x3D00, text[:-1]
    bits = value = 0
    out = bytearray()
    for c in text:
        n = ord(c) - 0x4E00
        if not 0 <= n < 1 << 14:
            raise ValueError(f"character {c!r} does not belong to base16384")
        value, bits = (value << 14 | n) & ((1 << 28) - 1), bits + 14
        while bits >= 8:
            bits -= 8
            out.append(value >> bits & 255)
    tail_chars = -(-8 * rest // 14)
    whole = (len(text) - tail_chars) // 4 * 7
    if len(text) < tail_chars or (len(text) - tail_chars) % 4 or len(out) < whole + rest:
        raise ValueError(f"length of {len(text)} characters does not fit the end marker")
    return bytes(out[:whole + rest])


def base16384_encode(data):
    out, value, bits = [], 0, 0
    for b in data:
        value, bits = value << 8 | b, bits + 8
        if bits >= 14:
            bits -= 14
            out.append(chr(0x4E00 + (value >> bits)))
            value &= (1 << bits) - 1
    if bits:
        out.append(chr(0x4E00 + (value << 14 - bits)))
    if len(data) % 7:
        out.append(chr(0x3D00 + len(data) % 7))
    return "".join(out)


def read_speaker_stat(path, hidden):
    """-> the statistics in their usual text form. Accepted: that text, a JSON object with a member `spk_stat`, or the raw float16 bytes."""
    want = 4 * hidden  # standard deviation, then mean, two bytes a value
    with open(path, "rb") as f:
        raw = f.read(MAX_JSON)
    if len(raw) == want:
        data = raw
    else:
        try:
            text = raw.decode("utf-8-sig").strip()
            if text.startswith("{"):
                text = json.loads(text)["spk_stat"]
            data = base16384_decode(text.strip().strip("\"'"))
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as e:
            raise ValueError(f"neither {want} raw bytes nor a base16384 text nor JSON with spk_stat ({e})") from None
    if len(data) != want:
        raise ValueError(f"holds {len(data)} bytes, expected {want} (2 x {hidden} float16 values)")
    values = struct.unpack(f"<{2 * hidden}e", data)
    if not all(abs(x) < 65504 for x in values):  # also refuses NaN
        raise ValueError("contains values that are not finite")
    if any(x < 0 for x in values[:hidden]):
        raise ValueError("contains negative standard deviations")
    return base16384_encode(data)


def check_homophones(path, problems):
    table = read_json(path, path, problems)
    if table is not None:
        bad = [k for k, v in table.items() if len(k) != 1 or not isinstance(v, str) or len(v) != 1]
        if bad:
            problems.add(path, f"{len(bad)} entries are not single character -> single character, e.g. {bad[0]!r}")


def pair_of(text):
    name, eq, value = text.partition("=")
    if not eq or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise argparse.ArgumentTypeError(f"{text!r}: expected ID=VALUE, ID of letters, digits, - and _")
    return name, value


def build_voices(a, problems):
    both = {"languages": ["zh", "en"], "gender": "unknown"}
    voices = []
    for name, path in a.speaker_string:
        try:
            with open(path, encoding="utf-8-sig") as f:
                value = f.read(1 << 20).strip()
            base16384_decode(value)
            if not value:
                raise ValueError("is empty")
            voices.append({"id": name, "title": name, **both, "speaker": {"kind": "string", "value": value}})
        except (OSError, ValueError) as e:
            problems.add(path, f"not a speaker string: {e}")
    seeds = a.voice or ([(f"seed-{n}", str(n)) for n in (2, 11, 42, 1001)] if a.speaker_stat else [])
    for name, value in seeds:
        if not a.speaker_stat:
            problems.add(f"--voice {name}={value}", "random speakers need --speaker-stat")
        if not re.fullmatch(r"\d{1,15}", value):
            problems.add(f"--voice {name}={value}", "the seed must be a number of at most 15 digits")
            continue
        voices.append({"id": name, "title": f"Random speaker {value}", **both, "speaker": {"kind": "seed", "value": int(value)}})
    if not voices:
        voices.append({"id": "default", "title": "No speaker vector: the voice differs from sentence to sentence", **both, "speaker": {"kind": "none"}})
    names = [v["id"] for v in voices]
    for name in sorted({n for n in names if names.count(n) > 1}):
        problems.add(f"voice {name}", "given more than once")
    return voices


def place(source, target, copy):
    """Hard link (no disk space, works inside containers and archives, unlike symbolic links), or a copy where that is impossible."""
    source = os.path.realpath(source)
    if os.path.exists(target):
        if os.path.samefile(source, target):
            return "kept"
        os.remove(target)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not copy:
        try:
            os.link(source, target)
            return "linked"
        except OSError:
            pass
    shutil.copyfile(source, target + ".tmp")
    os.replace(target + ".tmp", target)
    return "copied"


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", help="downloaded checkpoint: the folder that contains asset/")
    p.add_argument("--out", default="models/chattts", help="model folder to write (default: %(default)s)")
    p.add_argument("--name", default="chattts", help="name of the model in the manifest (default: %(default)s)")
    how = p.add_mutually_exclusive_group()
    how.add_argument("--link", dest="copy", action="store_false", help="hard links, copies across file systems (default)")
    how.add_argument("--copy", dest="copy", action="store_true", help="always copy")
    p.add_argument("--speaker-stat", metavar="FILE",
                   help="speaker statistics (the string spk_stat of the upstream package's configuration, as text or JSON, or its raw bytes); enables voices by seed")
    p.add_argument("--homophones", metavar="FILE", help="homophone table (the upstream package's homophones_map.json)")
    p.add_argument("--voice", metavar="ID=SEED", type=pair_of, action="append", default=[], help="offer the random speaker of this seed; repeatable")
    p.add_argument("--speaker-string", metavar="ID=FILE", type=pair_of, action="append", default=[],
                   help="offer the voice of a speaker string kept in a text file; repeatable")
    p.add_argument("--allow-unknown-hashes", action="store_true", help="accept files other than the published ones (retrained checkpoints); everything else is still checked")
    p.add_argument("--license", default="CC-BY-NC-4.0 (weights), code AGPL-3.0-or-later upstream", help="licence text for the manifest (default: %(default)s)")
    p.add_argument("--title", default="ChatTTS", help="title for the manifest (default: %(default)s)")
    p.add_argument("--max-prompt-tokens", type=int, default=0, metavar="N", help="limit of the text part (default: 768, or less when the positions do not suffice)")
    p.set_defaults(copy=False)
    return p.parse_args(argv)


def main(argv=None):
    a = parse(argv)
    problems, headers, unknown = Problems(), {}, []
    root = a.folder
    if not os.path.isdir(root):
        print(f"error: {root} is not a folder", file=sys.stderr)
        return 1
    if not os.path.isdir(os.path.join(root, "asset")) and os.path.basename(os.path.abspath(root)) == "asset":
        root = os.path.dirname(os.path.abspath(root))  # the asset folder itself was given
    config = tokenizer = None
    for role, (relative, published) in FILES.items():
        path = os.path.join(root, *relative.split("/"))
        if not os.path.isfile(path):
            problems.add(relative, "missing")
            continue
        print(f"checking {relative} ({os.path.getsize(path) / 1e6:.1f} MB)", flush=True)
        actual = sha256_of(path)
        if actual != published:
            unknown.append(relative)
            if not a.allow_unknown_hashes:
                problems.add(relative, f"SHA-256 is {actual}, published is {published}: damaged or another version (--allow-unknown-hashes accepts it)")
        if role in WEIGHTS:
            try:
                headers[role] = read_header(path)[0]
            except FormatError as e:
                for text in e.problems:
                    problems.add(relative, text)
        else:
            value = read_json(path, relative, problems)
            config = value if role == "gpt_config" else config
            tokenizer = value if role == "tokenizer" else tokenizer
    structural = Problems()  # derive_architecture must not stop at a wrong hash
    architecture = derive_architecture(headers, config, structural)
    if tokenizer is not None:
        text_rows = headers.get("embed", {}).get("emb_text.weight")
        check_tokenizer(tokenizer, text_rows.shape[0] if text_rows and text_rows.shape else None, structural, FILES["tokenizer"][0])
    problems.items += structural.items
    speaker_stat = None
    for path in filter(None, (a.speaker_stat, a.homophones)):
        if not os.path.isfile(path):
            problems.add(path, "missing")
    if a.speaker_stat and os.path.isfile(a.speaker_stat) and architecture:
        try:
            speaker_stat = read_speaker_stat(a.speaker_stat, architecture["gpt"]["hidden_size"])
        except ValueError as e:
            problems.add(a.speaker_stat, str(e))
    if a.homophones and os.path.isfile(a.homophones):
        check_homophones(a.homophones, problems)
    voices = build_voices(a, problems)
    max_steps = 2048
    if architecture:
        room = architecture["gpt"]["max_position_embeddings"] - max_steps
        if room < 64:
            max_steps = architecture["gpt"]["max_position_embeddings"] // 2
            room = architecture["gpt"]["max_position_embeddings"] - max_steps
        max_prompt = a.max_prompt_tokens or min(768, room)
        if not 0 < max_prompt <= room:
            problems.add("--max-prompt-tokens", f"must be 1 to {room}: {max_steps} steps of audio need the other positions")
    if problems:
        print(f"\nerror: {len(problems.items)} problem{'s' if len(problems.items) > 1 else ''}, nothing was written:", file=sys.stderr)
        for item in problems.items:
            print(f"  {item}", file=sys.stderr)
        return 1

    os.makedirs(a.out, exist_ok=True)
    in_place = os.path.realpath(a.out) == os.path.realpath(root)
    listed = {}
    for role, (relative, _) in FILES.items():
        listed[role] = relative
        if not in_place:
            print(f"{place(os.path.join(root, relative), os.path.join(a.out, relative), a.copy)} {relative}")
    if a.homophones:
        listed["homophones"] = "homophones_map.json"
        place(a.homophones, os.path.join(a.out, "homophones_map.json"), a.copy)
    if speaker_stat:
        listed["speaker_stat"] = "speaker_stat.txt"
        with open(os.path.join(a.out, "speaker_stat.txt"), "w", encoding="utf-8") as f:
            f.write(speaker_stat)
    manifest = {
        "format": FORMAT, "name": a.name,
        "title": a.title + (" (unverified weights)" if unknown else ""), "license": a.license, "family": "chattts",
        "text": {"front_end": "chattts"}, "speaker_precision": "float16", "architecture": architecture,
        "files": {role: file_entry(a.out, path) for role, path in listed.items()},
        "voices": voices, "default_voice": voices[0]["id"],
        "sampling": {"temperature": 0.3, "top_p": 0.7, "top_k": 20, "repetition_penalty": 1.05, "min_steps": 0, "max_steps": max_steps},
        "limits": {"max_prompt_tokens": max_prompt}}
    path = write_manifest(a.out, manifest)
    g = architecture["gpt"]
    print(f"\nwrote {path}: {g['num_hidden_layers']} layers of {g['hidden_size']}, {g['num_text_tokens']} text tokens, {len(voices)} voice(s): {', '.join(v['id'] for v in voices)}")
    if unknown:
        print(f"note: {len(unknown)} of {len(FILES)} files are not the published ones")
    if not a.speaker_stat and not a.speaker_string:
        print("note: without --speaker-stat or --speaker-string there is one voice without a speaker vector; it differs from sentence to sentence")
    return 0


if __name__ == "__main__":
    sys.exit(main())
