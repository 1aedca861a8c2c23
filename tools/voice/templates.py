# SPDX-License-Identifier: Apache-2.0
"""Sentence templates of texts/*.toml and what their places are filled with."""
import os
import re
import tomllib

import workspace  # noqa: F401  (first: makes the other tools importable)
from speech_scoring import en_number, en_spoken, zh_number
from workspace import HERE

TEXTS = os.path.join(HERE, "texts")
_DIGITS_ZH, _DIGITS_EN = "零一二三四五六七八九", [en_number(n)[0] for n in range(10)]
_MONTHS = "January February March April May June July August September October November December".split()
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def read_toml(name):
    with open(os.path.join(TEXTS, name), "rb") as f:
        return tomllib.load(f)


def read_lines(name):
    with open(os.path.join(TEXTS, name), encoding="utf-8") as f:
        return [line for line in f.read().splitlines() if line and not line.startswith("#")]


def any_number(chance):
    """Small numbers are commoner than large ones."""
    return chance.randint(*chance.choice([(1, 20), (1, 99), (1, 99), (100, 999), (1000, 99999)]))


def one_of(words):
    return lambda chance: chance.choice(words)


def mandarin_places(words):
    def digits(chance):
        return "".join(chance.choice(_DIGITS_ZH) for _ in range(chance.randint(3, 11)))
    return {**{name: one_of(items) for name, items in words.items()},
            "number": lambda chance: zh_number(any_number(chance)), "digit": one_of(_DIGITS_ZH), "digits": digits,
            "hour": lambda chance: zh_number(chance.randint(1, 12)), "month": lambda chance: zh_number(chance.randint(1, 12)),
            "day": lambda chance: zh_number(chance.randint(1, 31)), "weekday": one_of("一二三四五六日"), "letter": one_of(_LETTERS),
            "year": lambda chance: chance.choice(["一九", "二零"]) + "".join(chance.choice(_DIGITS_ZH) for _ in range(2))}


def english_places(words, common):
    def digits(chance):
        return " ".join(chance.choice(_DIGITS_EN) for _ in range(chance.randint(3, 8)))

    def year(chance):
        n = chance.randint(11, 20), chance.randint(10, 99)
        return " ".join(en_number(n[0]) + en_number(n[1]))
    return {**{name: one_of(items) for name, items in words.items()},
            "number": lambda chance: " ".join(en_number(any_number(chance))), "digit": one_of(_DIGITS_EN), "digits": digits,
            "hour": lambda chance: " ".join(en_number(chance.randint(1, 12))), "minute": lambda chance: " ".join(en_number(chance.choice([5, *range(10, 60, 5), 27, 41]))),
            "cents": lambda chance: " ".join(en_number(chance.randint(2, 99))), "year": year, "month": one_of(_MONTHS),
            "ordinal": lambda chance: en_spoken(f"{chance.randint(1, 31)}th").strip(), "letter": one_of(_LETTERS),
            "letters": lambda chance: " ".join(chance.choice(_LETTERS) for _ in range(chance.randint(2, 6))), "word": one_of(common)}


def fill(template, places, chance):
    return re.sub(r"\{(\w+)\}", lambda m: places[m[1]](chance), template)
