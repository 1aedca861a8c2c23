# SPDX-License-Identifier: Apache-2.0
"""The speakers that the voice learns, and the sizes of its networks.

A speaker's place in SPEAKERS is its row of the embedding table: append, never reorder. `teacher` names the Kokoro voice, `pace` its speed
setting (zf_xiaobei reads slowly), `reads` which kinds of sentence it is given, `share` how often among the speakers that read that kind.
What a recogniser understands of the candidates is in the README (check_teachers.py).
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Speaker:
    teacher: str
    id: str
    title: str
    gender: str
    languages: tuple
    reads: tuple
    pace: float = 1.0
    share: float = 1.0


SPEAKERS = [
    Speaker("zf_xiaobei", "xiaobei", "Xiaobei", "female", ("zh", "en"), ("zh", "en", "mix"), pace=1.15, share=2.0),
    Speaker("af_heart", "heart", "Heart", "female", ("en",), ("en",)),
    Speaker("zm_yunjian", "yunjian", "Yunjian", "male", ("zh",), ("zh",), pace=1.1),
    Speaker("am_michael", "michael", "Michael", "male", ("en",), ("en",)),
]
ROW = {s.teacher: i for i, s in enumerate(SPEAKERS)}

SIZES = {
    "gpt": dict(hidden_size=256, intermediate_size=768, num_attention_heads=4, num_hidden_layers=8, num_text_tokens=320, rms_norm_eps=1e-6, rope_theta=10000.0),
    "decoder": dict(dim=192, decoder=dict(idim=128, odim=192, hidden=192, n_layer=6, bn_dim=64)),
    "dvae": dict(dim=192, encoder=dict(idim=192, odim=256, hidden=160, n_layer=6, bn_dim=64), decoder=dict(idim=128, odim=192, hidden=160, n_layer=6, bn_dim=64),
                 vq=dict(dim=256, levels=[5, 5, 5, 5], G=2, R=2)),
    "vocos": dict(dim=256, intermediate_dim=768, num_layers=6),
}
