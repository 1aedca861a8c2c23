#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a checkpoint of random numbers in the official ChatTTS layout: for load tests and benchmarks at full size, without any licence.

  python3 tools/make_random_checkpoint.py /tmp/random --size official        # 1.1 GB in float32
  python3 tools/import_chattts.py /tmp/random --out models/random --name random --title "Random numbers" --license none \
      --allow-unknown-hashes --speaker-stat /tmp/random/speaker_stat.txt

It speaks noise of the right length. The scale of the weights keeps activations, logits and loudness in the range of a trained model, so that
timing, memory and numeric range are realistic. The tokenizer's vocabulary is synthetic, in the format and size of the real one, with the 50
control tokens at the end. Same seed, same bytes. Needs numpy.
"""
import argparse
import json
import os
import sys
import zlib

import numpy as np

from import_chattts import FILES, base16384_encode
from safetensors_lite import write

SIZES = {
    "official": {
        "hidden": 768, "inner": 3072, "layers": 20, "heads": 12, "positions": 4096, "n_text": 21178, "n_audio": 626, "num_vq": 4,
        "decoder": {"idim": 384, "odim": 384, "hidden": 512, "n_layer": 12, "bn_dim": 128},
        "dvae_encoder": {"idim": 512, "odim": 1024, "hidden": 256, "n_layer": 12, "bn_dim": 128},
        "dvae_decoder": {"idim": 512, "odim": 512, "hidden": 256, "n_layer": 12, "bn_dim": 128},
        "vocos": {"dim": 512, "inner": 1536, "layers": 8}},
    "small": {
        "hidden": 128, "inner": 384, "layers": 4, "heads": 4, "positions": 4096, "n_text": 562, "n_audio": 626, "num_vq": 4,
        "decoder": {"idim": 64, "odim": 64, "hidden": 64, "n_layer": 3, "bn_dim": 32},
        "dvae_encoder": {"idim": 64, "odim": 128, "hidden": 48, "n_layer": 2, "bn_dim": 32},
        "dvae_decoder": {"idim": 64, "odim": 64, "hidden": 48, "n_layer": 2, "bn_dim": 32},
        "vocos": {"dim": 64, "inner": 192, "layers": 3}},
}
N_MELS, N_FFT, SAMPLE_RATE, GROUPS, DIGITS = 100, 1024, 24000, 2, 4
CONTROL = (["[Sasr]", "[Pasr]", "[Easr]", "[Stts]", "[Ptts]", "[Etts]", "[Sbreak]", "[Pbreak]", "[Ebreak]", "[uv_break]", "[v_break]", "[lbreak]",
            "[llbreak]", "[undefine]", "[laugh]", "[spk_emb]", "[empty_spk]", "[music]", "[pure]"]
           + [f"[break_{i}]" for i in range(8)] + [f"[laugh_{i}]" for i in range(3)] + [f"[oral_{i}]" for i in range(10)] + [f"[speed_{i}]" for i in range(10)])
FREQUENT = ("的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还"
            "进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制"
            "身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做")


# ------------------------------------------------------------------ what tensors there are
def pair(prefix, weight, bias):
    return {f"{prefix}.weight": weight, f"{prefix}.bias": bias}


def conv_stack(prefix, s):
    h, out = s["hidden"], {}
    out.update(pair(f"{prefix}.conv_in.0", [s["bn_dim"], s["idim"], 3], [s["bn_dim"]]))
    out.update(pair(f"{prefix}.conv_in.2", [h, s["bn_dim"], 3], [h]))
    for i in range(s["n_layer"]):
        b = f"{prefix}.decoder_block.{i}"
        out[f"{b}.weight"] = [h]
        out.update(pair(f"{b}.dwconv", [h, 1, 7], [h]))
        out.update(pair(f"{b}.norm", [h], [h]))
        out.update(pair(f"{b}.pwconv1", [4 * h, h], [4 * h]))
        out.update(pair(f"{b}.pwconv2", [h, 4 * h], [h]))
    out[f"{prefix}.conv_out.weight"] = [s["odim"], h, 1]
    return out


def mel_buffers(prefix):
    return {f"{prefix}.mel_spec.spectrogram.window": [N_FFT], f"{prefix}.mel_spec.mel_scale.fb": [N_FFT // 2 + 1, N_MELS]}


def tensor_shapes(size):
    """role -> {tensor name: shape}, in the official naming."""
    h, inner = size["hidden"], size["inner"]
    gpt = {"norm.weight": [h]}
    for i in range(size["layers"]):
        p = f"layers.{i}"
        gpt.update({f"{p}.self_attn.{n}_proj.weight": [h, h] for n in "qkvo"})
        gpt.update({f"{p}.mlp.gate_proj.weight": [inner, h], f"{p}.mlp.up_proj.weight": [inner, h], f"{p}.mlp.down_proj.weight": [h, inner],
                    f"{p}.input_layernorm.weight": [h], f"{p}.post_attention_layernorm.weight": [h]})
    embed = {"emb_text.weight": [size["n_text"], h]}
    embed.update({f"emb_code.{q}.weight": [size["n_audio"], h] for q in range(size["num_vq"])})
    for head, rows in [("head_text", size["n_text"])] + [(f"head_code.{q}", size["n_audio"]) for q in range(size["num_vq"])]:
        embed.update({f"{head}.parametrizations.weight.original0": [rows, 1], f"{head}.parametrizations.weight.original1": [rows, h]})
    decoder = {"coef": [1, N_MELS, 1], "out_conv.weight": [N_MELS, size["decoder"]["odim"], 3], **conv_stack("decoder", size["decoder"])}
    enc, dec = size["dvae_encoder"], size["dvae_decoder"]
    dvae = {"coef": [1, N_MELS, 1], "out_conv.weight": [N_MELS, dec["odim"], 3], **conv_stack("encoder", enc), **conv_stack("decoder", dec),
            **mel_buffers("preprocessor_mel"), **pair("downsample_conv.0", [enc["idim"], N_MELS, 3], [enc["idim"]]),
            **pair("downsample_conv.2", [enc["idim"], enc["idim"], 4], [enc["idim"]])}
    part = enc["odim"] // GROUPS
    for g in range(GROUPS):
        dvae.update(pair(f"vq_layer.quantizer.rvqs.{g}.project_in", [DIGITS, part], [DIGITS]))
        dvae.update(pair(f"vq_layer.quantizer.rvqs.{g}.project_out", [part, DIGITS], [part]))
    v = size["vocos"]
    vocos = {"head.istft.window": [N_FFT], **mel_buffers("feature_extractor"), **pair("backbone.embed", [v["dim"], N_MELS, 7], [v["dim"]]),
             **pair("backbone.norm", [v["dim"]], [v["dim"]]), **pair("backbone.final_layer_norm", [v["dim"]], [v["dim"]]),
             **pair("head.out", [N_FFT + 2, v["dim"]], [N_FFT + 2])}
    for i in range(v["layers"]):
        b = f"backbone.convnext.{i}"
        vocos.update({f"{b}.gamma": [v["dim"]], **pair(f"{b}.dwconv", [v["dim"], 1, 7], [v["dim"]]), **pair(f"{b}.norm", [v["dim"]], [v["dim"]]),
                      **pair(f"{b}.pwconv1", [v["inner"], v["dim"]], [v["inner"]]), **pair(f"{b}.pwconv2", [v["dim"], v["inner"]], [v["dim"]])})
    return {"gpt": gpt, "embed": embed, "decoder": decoder, "dvae": dvae, "vocos": vocos}


# ------------------------------------------------------------------ what is in them
def mel_bank():
    top = 2595.0 * np.log10(1 + SAMPLE_RATE / 2 / 700.0)
    points = 700.0 * (10 ** (np.linspace(0.0, top, N_MELS + 2) / 2595.0) - 1)
    f, width = np.linspace(0, SAMPLE_RATE / 2, N_FFT // 2 + 1), np.diff(points)
    return np.maximum(0, np.minimum((f[:, None] - points[None, :-2]) / width[None, :-1], (points[None, 2:] - f[:, None]) / width[None, 1:]))


def values(role, name, shape, size, seed, never_end):
    """Every tensor has a generator of its own, so its numbers depend on its name and the seed only."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{role}/{name}".encode())])

    def normal(scale, mean=0.0):
        x = rng.standard_normal(shape, np.float32)
        x *= scale
        x += mean
        return x

    leaf = name.rsplit(".", 1)[-1]
    if leaf == "window":
        return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)
    if leaf == "fb":
        return mel_bank()
    if leaf == "coef":
        return rng.uniform(0.75, 1.25, shape)
    if leaf == "bias":
        return normal(0.01)
    if leaf == "original0":  # length of a head's row = spread of its logit, the hidden state having length sqrt(hidden)
        x = rng.uniform(0.6, 0.7, shape)
        if never_end and name.startswith("head_code."):
            x[-1] = 0.0  # the end code's logit is then exactly 0: never among the 20 best of 626
        return x
    if "norm" in name:
        return normal(0.05, 1.0)
    if leaf == "gamma" or len(shape) == 1:  # layer scale of a ConvNeXt block
        return normal(0.05, 0.1)
    if name.startswith("emb_"):
        return normal(0.25)
    fan_in = int(np.prod(shape[1:]))
    gain = 1.0
    if name.endswith(("o_proj.weight", "down_proj.weight")):  # the residual stream must not grow with depth
        gain = 1.0 / np.sqrt(2 * size["layers"])
    return normal(gain / np.sqrt(fan_in))


def to_bytes(x, dtype):
    x = np.ascontiguousarray(x, np.float32)
    if dtype == "F16":
        return x.astype(np.float16)
    if dtype == "BF16":
        bits = x.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)  # round to nearest even
    return x


# ------------------------------------------------------------------ tokenizer
def base_vocabulary(n):
    """n entries in the layout of a Chinese BERT vocabulary: [PAD] first, [UNK] and its like from 100 on, ASCII, punctuation, words, pieces, ideographs."""
    v = ["[PAD]"] + [f"[unused{i}]" for i in range(1, 100)] + ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    v += list("!\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~")
    v += list("，。、！？：；（）“”‘’《》【】—…·")
    v += [f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz0123456789"]
    v += ["the", "of", "and", "to", "in", "is", "you", "that", "it", "was", "for", "are", "with", "this", "have", "hello", "world", "today", "weather", "speech",
          "##ing", "##ed", "##er", "##est", "##ly", "##tion", "##al", "##en"]
    seen = set(v)
    for c in list(FREQUENT) + [chr(p) for p in range(0x4E00, 0xA000)]:
        if len(v) >= n:
            break
        if c not in seen:
            seen.add(c)
            v.append(c)
    v += [f"##filler{i}" for i in range(n - len(v))]
    return v[:n]


def special(content, **more):
    return {"content": content, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, **more}


def tokenizer_files(n_text):
    vocab = {t: i for i, t in enumerate(base_vocabulary(n_text - len(CONTROL)))}
    names = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]"}
    ids = {t: vocab[t] for t in names.values()}
    ids.update({t: len(vocab) + i for i, t in enumerate(CONTROL)})
    added = [{"id": i, **special(t, special=True)} for t, i in sorted(ids.items(), key=lambda kv: kv[1])]
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocab}}
    config = {"added_tokens_decoder": {str(i): special(t, special=True) for t, i in sorted(ids.items(), key=lambda kv: kv[1])},
              "additional_special_tokens": CONTROL, "clean_up_tokenization_spaces": True, "do_lower_case": True, "strip_accents": None,
              "tokenize_chinese_chars": True, "tokenizer_class": "BertTokenizer", **names}
    return {"tokenizer": tokenizer, "tokenizer_config": config, "special_tokens_map": {"additional_special_tokens": [special(t) for t in CONTROL], **names}}


def gpt_config(size):
    return {"architectures": ["LlamaModel"], "attention_bias": False, "hidden_act": "silu", "hidden_size": size["hidden"], "intermediate_size": size["inner"],
            "max_position_embeddings": size["positions"], "mlp_bias": False, "model_type": "llama", "num_attention_heads": size["heads"],
            "num_audio_tokens": size["n_audio"], "num_hidden_layers": size["layers"], "num_key_value_heads": size["heads"], "num_text_tokens": size["n_text"],
            "num_vq": size["num_vq"], "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 10000.0, "use_cache": False}


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", help="folder to write; asset/ is made inside")
    p.add_argument("--size", choices=sorted(SIZES), default="official")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--dtype", choices=("F32", "F16", "BF16"), default="F32", help="type of the stored weights (default: %(default)s)")
    p.add_argument("--never-end", action="store_true", help="the end code is never drawn: every utterance has the maximal length")
    a = p.parse_args(argv)
    size = SIZES[a.size]

    def target(role):
        path = os.path.join(a.folder, FILES[role][0])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    for role, shapes in tensor_shapes(size).items():
        buffers = ("window", "fb", "coef")  # stay float32: they are constants, not weights
        entries = []
        for name, shape in shapes.items():
            dtype = "F32" if name.endswith(buffers) else a.dtype
            entries.append((name, dtype, shape, lambda n=name, s=shape, r=role, d=dtype: to_bytes(values(r, n, s, size, a.seed, a.never_end), d)))
        written = write(target(role), entries, {"format": "pt"})
        print(f"{FILES[role][0]}: {len(entries)} tensors, {written / 1e6:.1f} MB", flush=True)
    for role, value in {"gpt_config": gpt_config(size), **tokenizer_files(size["n_text"])}.items():
        with open(target(role), "w", encoding="utf-8") as f:
            json.dump(value, f, ensure_ascii=False, indent=1)
            f.write("\n")
        print(FILES[role][0])
    rng = np.random.default_rng([a.seed, 1])
    stat = np.concatenate([rng.uniform(0.5, 1.5, size["hidden"]), rng.standard_normal(size["hidden"])]).astype("<f2")
    with open(os.path.join(a.folder, "speaker_stat.txt"), "w", encoding="utf-8") as f:
        f.write(base16384_encode(stat.tobytes()))
    print("speaker_stat.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
