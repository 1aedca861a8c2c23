# SPDX-License-Identifier: Apache-2.0
"""English words to ARPAbet symbols: a table of function words, spelled capitals, flite's CMU lexicon with its letter-to-sound rules.

flite is the Debian package libflite1, which the server links too; src/text/english.cpp does the same.
"""
import ctypes
import functools
import re

from symbols import FUNCTION_WORDS, LETTERS, VOWELS


@functools.lru_cache(maxsize=1)
def _flite():
    """-> (library, lexicon)"""
    lib = ctypes.CDLL("libflite.so.1", mode=ctypes.RTLD_GLOBAL)
    for name in ("libflite_usenglish.so.1", "libflite_cmulex.so.1"):
        lex = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    lex.cmu_lex_init.restype = ctypes.c_void_p
    lib.lex_lookup.restype = lib.val_car.restype = lib.val_cdr.restype = ctypes.c_void_p
    lib.lex_lookup.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
    lib.val_string.restype = ctypes.c_char_p
    for f in (lib.val_car, lib.val_cdr, lib.val_string, lib.delete_val):
        f.argtypes = [ctypes.c_void_p]
    lib.flite_init()
    return lib, lex.cmu_lex_init()


@functools.lru_cache(maxsize=None)
def lexicon(word):
    """A lower-case word -> phones with stress digits on vowels."""
    lib, lex = _flite()
    head = node = lib.lex_lookup(lex, word.encode("ascii"), None, None)
    phones = []
    while node:
        phones.append(lib.val_string(lib.val_car(node)).decode("ascii").upper())
        node = lib.val_cdr(node)
    if head:
        lib.delete_val(head)
    phones = ["AH" + (p[2:] or "0") if p.startswith("AX") else p for p in phones]
    return tuple(p + "0" if p in VOWELS else p for p in phones)


def flap(phones):
    """T between a vowel (or R) and an unstressed vowel is a flap."""
    out = list(phones)
    for k in range(1, len(phones) - 1):
        before, after = phones[k - 1], phones[k + 1]
        if phones[k] == "T" and (before[-1].isdigit() or before == "R") and after[-1] == "0":
            out[k] = "DX"
    return out


def spell(letters):
    return [phone for letter in letters for phone in LETTERS[letter]]


def is_spelled(raw):
    """ABC, USB, single letters; four capitals with a vowel (NASA) are read as a word."""
    letters = re.sub("['’]", "", raw)
    return (raw.isupper() and 1 < len(raw) <= 5 and len(raw) != 4) or len(letters) == 1 or (raw.isupper() and not re.search("[AEIOUY]", raw))


def english_symbols(raw):
    """One word as it is written -> phones."""
    word = raw.lower().replace("’", "'")
    if word in FUNCTION_WORDS:
        return list(FUNCTION_WORDS[word])
    letters = word.replace("'", "")
    if is_spelled(raw):
        return spell(letters)
    if word.endswith("'s") and len(word) > 3:
        stem = lexicon(word[:-2])
        last = stem[-1] if stem else "AH0"
        ending = ["IH0", "Z"] if last in ("S", "Z", "SH", "ZH", "CH", "JH") else ["S"] if last in ("P", "T", "K", "F", "TH") else ["Z"]
        return flap(stem) + ending
    phones = lexicon(word if re.fullmatch(r"[a-z]+('[a-z]+)?", word) else letters)
    return flap(phones) if phones else spell(letters)
