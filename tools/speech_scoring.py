# SPDX-License-Identifier: Apache-2.0
"""Comparing a transcript with what should have been said: character, syllable and word error rates. Standard library, pypinyin for syllables.

A recogniser writes numbers as digits, so both sides are brought to spoken words first; where a reading is ambiguous the usual one is taken.
"""
import re

_DIGITS = "零一二三四五六七八九"
_ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen").split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth", "twelve": "twelfth"}


# ------------------------------------------------------------------ Mandarin
def zh_number(n, inner=False):
    if n < 10:
        return _DIGITS[n]
    for base, name in ((100000000, "亿"), (10000, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if n >= base:
            q, r = divmod(n, base)
            head = "" if base == 10 and q == 1 and not inner else zh_number(q)  # 12 is 十二, but 112 is 一百一十二
            return head + name + (("零" if r < base // 10 else "") + zh_number(r, True) if r else "")
    return ""


def _zh_digits(text):
    return "".join(_DIGITS[int(c)] for c in text if c in "0123456789")


def _zh_decimal(text):
    whole, _, part = text.partition(".")
    head = zh_number(int(whole)) if len(whole) < 9 else _zh_digits(whole)
    return head + ("点" + _zh_digits(part) if part else "")


def zh_spoken(t):
    """Digits and signs of a Mandarin sentence as characters."""
    t = t.translate({0xFF10 + i: 48 + i for i in range(10)}).replace(",", "，") if not re.search(r"\d,\d{3}", t) else re.sub(r"(?<=\d),(?=\d{3})", "", t)
    t = re.sub(r"[¥￥](\d+(?:\.\d+)?)元?", r"\1元", t).replace("℃", "摄氏度").replace("°C", "摄氏度")
    t = re.sub(r"(\d{2,4})年", lambda m: _zh_digits(m[1]) + "年", t)
    t = re.sub(r"\d{3,4}(?:-\d{3,8})+", lambda m: _zh_digits(m[0]), t)
    t = re.sub(r"(\d{1,2})[:：](\d{2})(?!\d)分?", lambda m: zh_number(int(m[1])) + "点" + (zh_number(int(m[2])) + "分" if int(m[2]) else ""), t)
    t = re.sub(r"(\d+)[:：](\d+)", lambda m: zh_number(int(m[1])) + "比" + zh_number(int(m[2])), t)
    t = re.sub(r"(\d+)/(\d+)", lambda m: zh_number(int(m[2])) + "分之" + zh_number(int(m[1])), t)
    t = re.sub(r"(\d+(?:\.\d+)?)[%％]", lambda m: "百分之" + _zh_decimal(m[1]), t)
    t = re.sub(r"(?<=[A-Za-z])\d+", lambda m: _zh_digits(m[0]), t)  # flight and model numbers
    return re.sub(r"\d+(?:\.\d+)?", lambda m: _zh_decimal(m[0]), t)


def zh_characters(t):
    """Mandarin characters and Latin letters. Two ways of saying one and two count as the same."""
    return list("".join(re.findall(r"[一-鿿A-Za-z]", zh_spoken(t))).lower().replace("幺", "一").replace("两", "二"))


def zh_syllables(t):
    from pypinyin import lazy_pinyin
    return lazy_pinyin("".join(c for c in zh_characters(t) if "一" <= c <= "鿿"))


# ------------------------------------------------------------------ English
def en_number(n):
    if n < 20:
        return [_ONES[n]]
    if n < 100:
        return [_TENS[n // 10]] + ([_ONES[n % 10]] if n % 10 else [])
    for base, name in ((10 ** 9, "billion"), (10 ** 6, "million"), (1000, "thousand"), (100, "hundred")):
        if n >= base:
            q, r = divmod(n, base)
            return en_number(q) + [name] + ((["and"] if r < 100 else []) + en_number(r) if r else [])
    return []


def _en_ordinal(n):
    words = en_number(n)
    last = words[-1]
    words[-1] = _ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return words


def en_spoken(t):
    t = t.lower().replace("’", "'")
    t = re.sub(r"(?<=\d),(?=\d{3})", "", t)
    t = re.sub(r"\b([ap])\.?m\b\.?", r"\1 m", t)

    def join(words):
        return " " + " ".join(words) + " "

    def money(m):
        cents = int((m[2] or "0").ljust(2, "0")[:2])
        return join(en_number(int(m[1])) + ["dollars"] + (["and"] + en_number(cents) + ["cents"] if cents else []))

    def fraction(m):
        names = {2: "half", 3: "third", 4: "quarter"}
        a, b = int(m[1]), int(m[2])
        return join(en_number(a) + [(names.get(b) or _en_ordinal(b)[-1]) + ("s" if a > 1 else "")]) if 1 < b < 21 else m[0]

    t = re.sub(r"\$(\d+)(?:\.(\d{1,2}))?", money, t)
    t = re.sub(r"\b(\d{1,2})/(\d{1,2})\b", fraction, t)
    t = re.sub(r"\b(\d{1,2}):(\d{2})\b", lambda m: join(en_number(int(m[1])) + (en_number(int(m[2])) if int(m[2]) else [])), t)
    t = re.sub(r"(\d+)(?:st|nd|rd|th)\b", lambda m: join(_en_ordinal(int(m[1]))), t)
    t = t.replace("%", " percent ")
    t = re.sub(r"\b(1[1-9]|20)(\d\d)\b(?! percent)", lambda m: join(en_number(int(m[1])) + (en_number(int(m[2])) if m[2] != "00" else ["hundred"])), t)
    t = re.sub(r"(\d+)\.(\d+)", lambda m: join(en_number(int(m[1])) + ["point"] + [_ONES[int(c)] for c in m[2]]), t)
    return re.sub(r"\d+", lambda m: join(en_number(int(m[0])) if len(m[0]) < 13 else [_ONES[int(c)] for c in m[0]]), t)


def en_words(t):
    return re.sub(r"[^a-z' ]", " ", en_spoken(t)).split()


# ------------------------------------------------------------------ both
def mixed_units(t):
    """Mandarin by character, English by word: the usual unit for code-switched speech."""
    return [u.replace("幺", "一").replace("两", "二") for u in re.findall(r"[一-鿿]|[a-z']+", zh_spoken(t).lower())]


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


METRICS = {"cer": zh_characters, "syllable_error": zh_syllables, "wer": en_words, "mer": mixed_units}


def metrics_of(lang, group):
    """Which rates make sense for a sentence."""
    if group == "mixed":
        return ("mer", "cer")
    return ("cer", "syllable_error") if lang == "zh" else ("wer",)


def compare(lang, group, reference, transcript):
    """-> {metric: (errors, length of the reference)}

    No sentence is more wrong than wholly: a recogniser that gets caught in a loop would otherwise outweigh all others.
    """
    out = {}
    for metric in metrics_of(lang, group):
        a, b = METRICS[metric](reference), METRICS[metric](transcript)
        out[metric] = (min(edit_distance(a, b), len(a)), len(a))
    return out
