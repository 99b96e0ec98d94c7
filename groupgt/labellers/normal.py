"""Texts made alike before they are compared, and their words, in any language."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

__all__ = ["Normalization"]

# Scripts that put no blanks between words: Thai, Lao, Tibetan, Burmese, Khmer, Tai Le, Tai Tham, Balinese, Javanese,
# kana, and Han with its extensions. What follows a character of these and only changes it stays with it.
ALONE = "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf\u0f40-\u0f6c"
ALONE += "\u1000-\u102a\u1780-\u17b3\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf"
ALONE += "\u1950-\u1974\u1980-\u19ab\u1a20-\u1a54\u1b05-\u1b33\ua984-\ua9b2"
ALONE += "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84\u0f90-\u0fbc\u102b-\u103e"
MARKS += "\u1a55-\u1a7f\u1b34-\u1b44\ua980-\ua983\ua9b3-\ua9c0"
MARKS += "\u17b4-\u17d3\u3099\u309a\ufe00-\ufe0f"
CHARACTER = re.compile(f"[{ALONE}][{MARKS}]*")


class _Signs(dict[int, str | int | None]):
    """What becomes of each character: punctuation turns into a blank (or stands alone), invisible ones go."""

    def __init__(self, *, keep: bool) -> None:
        super().__init__()
        self.keep = keep

    def __missing__(self, code: int) -> str | int | None:
        kind = unicodedata.category(chr(code))
        made: str | int | None = code
        if kind == "Cf":
            made = None
        elif kind in ("Cc", "Zs", "Zl", "Zp"):
            made = " "
        elif kind.startswith("P"):
            made = f" {chr(code)} " if self.keep else " "
        self[code] = made
        return made


SIGNS = {keep: _Signs(keep=keep) for keep in (False, True)}


@dataclass(frozen=True)
class Normalization:
    """NFKC, case folded, punctuation to blanks, white space to single blanks, invisible characters removed.

    Each character of a script that puts no blanks between words is a word of its own, so that the same sentence is the
    same wherever its lines break.

    >>> Normalization()("The  ﬁnal\\nResult, (42%)!"), Normalization()("北京\\n是首都。")
    ('the final result 42', '北 京 是 首 都')
    """

    case_sensitive: bool = False
    punctuation: bool = False

    def __call__(self, text: str) -> str:
        """The normalized text: its words with single blanks between them."""
        plain = unicodedata.normalize("NFKC", text)
        if not self.case_sensitive:
            plain = unicodedata.normalize("NFKC", plain.casefold())
        plain = plain.translate(SIGNS[self.punctuation])
        if not plain.isascii():
            plain = CHARACTER.sub(r" \g<0> ", plain)
        return " ".join(plain.split())

    def __str__(self) -> str:
        case = "case kept" if self.case_sensitive else "case folded"
        signs = "punctuation kept" if self.punctuation else "punctuation dropped"
        return f"NFKC, {case}, {signs}, white space collapsed, characters of scripts without blanks are words"
