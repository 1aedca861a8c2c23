# SPDX-License-Identifier: Apache-2.0
"""Text with numbers already written as words -> the symbols that the voice reads.

  python phones.py "你好，world." ...        shows the symbols and the teacher's spelling

The server's front end (src/text/phones_front_end.cpp) must give the same: tests/golden/make_phone_reference.py writes what is compared.
"""
import re
import sys

from english import english_symbols
from mandarin import mandarin_symbols
from symbols import ID, MARKS, PAUSES, SPACE, teacher_spelling

_MARK = {"，": ",", "、": ",", "。": ".", "？": "?", "！": "!", "；": ";", "：": ":", **{m: m for m in MARKS}}
_PIECE = re.compile(r"\[uv_break\]|\[lbreak\]|[一-鿿]+|[A-Za-z]+(?:['’][A-Za-z]+)*|[，、。？！；：—…,.?!;:]")


def text_to_symbols(text):
    """Words are separated by SPACE, marks and pauses stand between them, a text always ends in a mark."""
    out, separators = [], {SPACE, *MARKS, *PAUSES}
    for piece in _PIECE.findall(text):
        if piece in _MARK or piece in PAUSES:
            if out and out[-1] == SPACE:
                out.pop()
            if out and out[-1] not in separators:
                out.append(_MARK.get(piece, piece))
            continue
        if out and out[-1] not in separators:
            out.append(SPACE)
        out += mandarin_symbols(piece) if "一" <= piece[0] <= "鿿" else [p for p in english_symbols(piece) if p in ID]
    while out and (out[-1] == SPACE or out[-1] in PAUSES):
        out.pop()
    if out and out[-1] not in MARKS:
        out.append(".")
    return out


if __name__ == "__main__":
    for line in sys.argv[1:]:
        found = text_to_symbols(line)
        print(" ".join(found), "|", "".join(teacher_spelling(found)))
