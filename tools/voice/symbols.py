# SPDX-License-Identifier: Apache-2.0
"""The voice's alphabet, as committed in models/nano/symbols.json, and how the teacher spells each symbol.

The server reads the same file, so both agree on ids by construction. Symbols are only ever appended: a trained table keeps its rows.
"""
import json
import os

from workspace import NANO  # first: makes the other tools importable
from build_zh_lexicon import FINALS, INITIALS

with open(os.path.join(NANO, "symbols.json"), encoding="utf-8") as _f:
    _TABLES = json.load(_f)
SYMBOLS = _TABLES["symbols"]
ROWS = _TABLES["padded_to"]  # rows of the embedding table: there is room for more symbols
FUNCTION_WORDS = {word: phones for word, phones in _TABLES["function_words"].items()}
LETTERS = _TABLES["letters"]
ID = {symbol: i for i, symbol in enumerate(SYMBOLS)}
PAD, START, SPEAKER, END = (ID[s] for s in ("[pad]", "[Stts]", "[spk_emb]", "[Ptts]"))

SPACE = "_"
MARKS = list(",.?!;:…—")
SHORT_PAUSE, LONG_PAUSE = "[uv_break]", "[lbreak]"
PAUSES = {SHORT_PAUSE: 0.25, LONG_PAUSE: 0.7}  # seconds of silence
# Pace against the voice's own. An utterance without a speed symbol has the natural pace, so there is none for 1.0.
SPEEDS = {f"[speed_{i}]": pace for i, pace in enumerate((0.5, 0.6, 0.7, 0.8, 0.9, 1.15, 1.3, 1.5, 1.75, 2.0))}
CONSONANTS = "B CH D DH DX F G HH JH K L M N NG P R S SH T TH V W Y Z ZH".split()
VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW".split()

# ------------------------------------------------------------------ the teacher's alphabet (Kokoro v1.0)
_INITIAL = dict(zip(INITIALS, "p pʰ m f t tʰ n l k kʰ x ʨ ʨʰ ɕ ꭧ ꭧʰ ʂ ɻ ʦ ʦʰ s".split()))
# '0' marks where the tone arrow goes.
_FINAL = dict(zip(FINALS, ("a0 ai0 a0n a0ŋ au0 ɤ0 ei0 ə0n ə0ŋ ɚ0 i0 ja0 jɛ0n ja0ŋ jau0 je0 i0n i0ŋ jʊ0ŋ jou0 ɨ0 wo0 ʊ0ŋ ou0 "
                           "u0 wa0 wai0 wa0n wa0ŋ wei0 wə0n wə0ŋ wo0 y0 ɥɛ0n ɥe0 y0n").split()))
_TONE = {1: "→", 2: "↗", 3: "↓", 4: "↘", 5: ""}
_PHONE = dict(zip(CONSONANTS + VOWELS, ("b ʧ d ð ɾ f ɡ h ʤ k l m n ŋ p ɹ s ʃ t θ v w j z ʒ "
                                        "ɑ æ ʌ ɔ W I ɛ ɜɹ A ɪ i O Y ʊ u").split()))
_REDUCED = {"AH": "ə", "ER": "əɹ"}  # unstressed
_STRESS = ("", "ˈ", "ˌ")


def _spellings():
    out = {SPACE: " ", SHORT_PAUSE: ", ", LONG_PAUSE: ". "}
    out.update({mark: mark + " " for mark in MARKS})
    out.update(_INITIAL)
    out.update({f"{final}{tone}": _FINAL[final].replace("0", _TONE[tone]) for final in FINALS for tone in _TONE})
    out.update({c: _PHONE[c] for c in CONSONANTS})
    out.update({f"{v}{s}": _STRESS[s] + (_REDUCED.get(v, _PHONE[v]) if s == 0 else _PHONE[v]) for v in VOWELS for s in range(3)})
    return out


SPELLING = _spellings()


def teacher_spelling(symbols):
    """One string for each symbol; the teacher gets them joined. Nothing follows the last mark."""
    out = [SPELLING[s] for s in symbols]
    if out and symbols[-1] in MARKS:
        out[-1] = out[-1].strip()
    return out


def ids(symbols):
    return [ID[s] for s in symbols]


def prompt(symbols, speed=None):
    """Token ids of a whole prompt; `speed` is one of SPEEDS or None."""
    return [START, SPEAKER, *([ID[speed]] if speed else []), *ids(symbols), END]
