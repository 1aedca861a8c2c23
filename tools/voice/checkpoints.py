# SPDX-License-Identifier: Apache-2.0
"""Weights as safetensors files with the number of steps in their metadata. Writes are atomic: a killed run leaves the previous file."""
import os

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file


def save(path, state, **metadata):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    save_file({k: v.detach().float().contiguous().clone() for k, v in state.items()}, path + ".tmp", {k: str(v) for k, v in metadata.items()})
    os.replace(path + ".tmp", path)


def metadata(path):
    with safe_open(path, "pt") as f:
        return f.metadata() or {}


def fitted(state, model):
    """A table with fewer rows than the model's (a speaker was added since) takes the first rows; the new rows keep their fresh values."""
    own = model.state_dict()
    out = {}
    for name, value in state.items():
        want = own.get(name)
        if want is not None and value.dim() == want.dim() == 2 and value.shape[1:] == want.shape[1:] and len(value) < len(want):
            value = torch.cat([value.to(want), want[len(value):]])
        out[name] = value
    return out


def load(path, model):
    """Fills the model and returns the metadata, or None when the file does not exist."""
    if not os.path.exists(path):
        return None
    model.load_state_dict(fitted(load_file(path), model))
    return metadata(path)
