# SPDX-License-Identifier: Apache-2.0
"""Everything that makes sound, loaded from the training folder or from an exported model, behind one call: text in, waveform out."""
import os

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import checkpoints
from dvae import Dvae
from features import HOP, N_FFT, padded
from gpt import Decoder, Gpt, generate
from phones import text_to_symbols
from symbols import prompt
from vocos import Vocos
from voices import ROW, SIZES, SPEAKERS

BUFFERS = ("preprocessor_mel.", "feature_extractor.", "head.istft.")


def exported_states(folder):
    """{part: state} of an exported model (models/nano): halves widened, the weight norm of the heads folded, speakers as the first rows of a table."""
    files = {n: {k: v.float() for k, v in load_file(os.path.join(folder, n + ".safetensors")).items()} for n in ("gpt", "embed", "decoder", "dvae", "vocos", "speakers")}
    gpt = dict(files["gpt"])
    for key, value in files["embed"].items():
        if key.endswith("original1"):
            scale = files["embed"][key[:-1] + "0"]
            gpt[key.replace("parametrizations.weight.original1", "weight")] = scale * value / value.norm(dim=1, keepdim=True)
        elif not key.endswith("original0"):
            gpt[key] = value
    gpt["emb_spk.weight"] = torch.stack([files["speakers"][name] for name in exported_speakers(folder)])
    out = {"gpt": gpt}
    for name in ("decoder", "dvae", "vocos"):
        out[name] = {k: v for k, v in files[name].items() if not k.startswith(BUFFERS)}
    return out


def exported_speakers(folder):
    """Names in the speakers file, those of SPEAKERS only and in their order."""
    with safe_open(os.path.join(folder, "speakers.safetensors"), "pt") as f:
        there = set(f.keys())
    return [s.teacher for s in SPEAKERS if s.teacher in there]


def new_models():
    return {"gpt": Gpt(SIZES["gpt"], len(SPEAKERS)), "decoder": Decoder(SIZES["decoder"]), "dvae": Dvae(SIZES["dvae"]), "vocos": Vocos(SIZES["vocos"])}


def spectral_distance(mel, wave, vocos):
    """Log-spectral distance in dB between a recording (int16) and its spectrogram made sound again; the server's analysis, power floor 1e-7."""
    a = padded(wave)
    b = vocos(mel(torch.from_numpy(a)[None]))[0]
    return distance_db(torch.from_numpy(a)[:len(b)], b)


def distance_db(a, b):
    n = min(len(a), len(b))
    window = torch.hann_window(N_FFT)
    a, b = (10 * torch.log10(torch.stft(x[:n].float(), N_FFT, HOP, window=window, return_complex=True).abs().square().clamp(min=1e-7)) for x in (a, b))
    return float((a - b).square().mean(0).sqrt().mean())


class Voice:
    """The trained voice in torch. `source`: a Workspace (moving averages of the checkpoints) or the folder of an exported model."""

    def __init__(self, source):
        self.models = new_models()
        self.steps = {}
        states = exported_states(source) if isinstance(source, str) else None
        self.known = set(exported_speakers(source)) if states else {s.teacher for s in SPEAKERS}
        for name, model in self.models.items():
            if states is not None:
                model.load_state_dict(checkpoints.fitted(states[name], model))
            else:
                found = checkpoints.load(source.checkpoint(name), model)
                if found is None:
                    raise SystemExit(f"error: no checkpoint of {name} yet")
                self.steps[name] = int(found.get("step", 0))
                if name == "gpt" and "speakers" in found:
                    self.known = set(found["speakers"].split())
            model.eval()

    @torch.inference_mode()
    def say(self, text, speaker, speed=None, **sampling):
        """-> float32 samples, number of code steps, whether it ended by itself"""
        codes, hidden, ended = generate(self.models["gpt"], prompt(text_to_symbols(text), speed), ROW[speaker], **sampling)
        if len(codes) < 2:
            return np.zeros(2 * HOP, np.float32), len(codes), ended
        return self.models["vocos"](self.models["decoder"](hidden.T[None]))[0].numpy(), len(codes), ended

    @torch.inference_mode()
    def copy(self, mel, wave, codes=False):
        """A recording through Vocos alone, or through the DVAE's codes and Vocos."""
        m = mel(torch.from_numpy(padded(wave))[None])
        return self.models["vocos"](self.models["dvae"](m)[0] if codes else m)[0].numpy()
