"""What an id, a score, a grade and a row may be: the rules, once, in Python, for every reader and carrier.

`groupgt.formats.validity` says the same as polars expressions; a test holds the two equal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groupgt.errors import display

# What a message shows of a value; rooms on the right may know it by this name.
shown = display

LONGEST_ID = 1 << 16
GRADE_LIMIT = 2.0**31
# What an id may not hold: control characters, line and paragraph separators, byte order marks.
FORBIDDEN = "\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff"
# What an id may hold, but not alone: blanks of every width.
BLANKS = " \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
# What a glance at many ids does not tell from the blanks in others: no ids, which look like some.
BLANK_IDS = frozenset(("", " "))
# Numbers and ranks as files spell them: no `nan`, no `1_000`, no digits but those of ASCII.
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
RANK = r"[+-]?[0-9]+(\.0*)?"

_forbidden = re.compile(f"[{FORBIDDEN}\ud800-\udfff]").search
_is_number = re.compile(NUMBER).fullmatch
_is_rank = re.compile(RANK).fullmatch


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; a bool is none."""
    if type(value) is int:
        return True
    return not isinstance(value, bool) and hasattr(value, "__index__") and type(value).__name__ not in ("bool", "bool_")


def id_text(value: Any) -> str | None:
    """The id as text, or None if the value is neither text nor an integer.

    >>> id_text("007"), id_text(7), id_text(7.0), id_text(True)
    ('007', '7', None, None)
    """
    if isinstance(value, str):
        # str() of a member of a string enum may be its name in place of its value.
        return str.__str__(value)
    if is_integer(value):
        return str(int(value))
    return None


def id_fault(name: str) -> str | None:
    """The errors in a text as an id, whether of a query or a document; None if it is one.

    >>> id_fault("doc-1"), id_fault(" "), id_fault("a\\tb")
    (None, 'is blank', 'contains the control character U+0009')
    """
    # Nearly all are printable, and begin with a visible character.
    if name[:1] > " " and len(name) <= LONGEST_ID // 4 and name.isprintable():
        return None
    if not name.strip():
        return "is blank"
    if len(name) > LONGEST_ID // 4 and len(name.encode("utf-8", "surrogatepass")) > LONGEST_ID:
        return f"is longer than {LONGEST_ID:,} bytes"
    forbidden = _forbidden(name)
    return None if forbidden is None else f"contains {_named(forbidden[0])}"


def _named(letter: str) -> str:
    """A forbidden character, as a message names it."""
    if letter == "\0":
        return "a NUL character"
    if "\ud800" <= letter <= "\udfff":
        return "a lone surrogate"
    kinds = {"\u2028": "the line separator", "\u2029": "the paragraph separator", "\ufeff": "the byte order mark"}
    return f"{kinds.get(letter, 'the control character')} U+{ord(letter):04X}"


def are_plainly_ids(names: Sequence[str]) -> bool:
    """Whether all of these texts are surely ids, by one look at all of them; False is a doubt about one of them.

    >>> are_plainly_ids(["a", "b c", "7"]), are_plainly_ids(["a", ""])
    (True, False)
    """
    if not names:
        return True
    data = np.frombuffer("\n".join(names).encode("utf-8", "surrogatepass"), dtype=np.uint8)
    starts = np.append(0, np.flatnonzero(data == ord("\n")) + 1)
    # Controls are the line ends between ids alone; an id that begins with a blank may be nothing else.
    if len(starts) != len(names) or int(np.count_nonzero(data < ord(" "))) != len(names) - 1:
        return False
    if starts[-1] == len(data) or data[starts].min() <= ord(" "):
        return False
    return bool(np.diff(starts, append=len(data) + 1).max() <= LONGEST_ID) and not holds_odd_letters(data)


def has_plain_letters(text: str) -> bool:
    """Whether ids that were joined surely hold what ids may, and none but `BLANK_IDS` is blank; False is a doubt.

    A glance at millions of ids: few passes over their characters as numbers.

    >>> has_plain_letters("abc d"), has_plain_letters("a\\x85b"), has_plain_letters("a  b")
    (True, False, False)
    """
    if not text:
        return True
    if text.isascii():
        data = np.frombuffer(text.encode(), dtype=np.uint8)
        return bool(data.max() < 0x7F) and _are_single(text, int(data.min()))
    letters = np.array([text]).view(np.uint32)
    lowest, highest = int(letters.min()), int(letters.max())
    # Of most texts all letters are of ASCII, or beyond U+3000 and before the surrogates. They are moved in place: a
    # second array would be memory that the system gives and takes back with each text.
    letters -= np.uint32(MOVED)
    ranges = () if bool(letters.max() <= 0xFFFFFFFF - MOVED + 0x7F) else _BLANKS_AND_CONTROLS
    if highest >= 0xD800:
        ranges = (*ranges, (0xD800, 0xDFFF), (0xFEFF, 0xFEFF))
    return _are_single(text, lowest) and all(
        bool((letters - np.uint32((first - MOVED) % (1 << 32))).min() > last - first) for first, last in ranges
    )


MOVED = 0x3001
# From which to which character, beyond ASCII.
_BLANKS_AND_CONTROLS = (
    *((0x7F, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x202F), (0x205F, 0x205F)),
    (0x3000, 0x3000),
)


def _are_single(text: str, lowest: int) -> bool:
    """Whether no character is a control, and no blank of ASCII stands beside another."""
    return lowest > 0x20 or (lowest == 0x20 and "  " not in text)


def are_texts(names: Sequence[str]) -> bool:
    """Whether most of these look like texts in place of ids: they have four words or more.

    >>> are_texts(["What is the capital of France?", "Who founded it?"]), are_texts(["d1", "d2", "d 3"])
    (True, False)
    """
    return 2 * sum(name.count(" ") > 2 for name in names) >= max(len(names), 1)


def are_ids(names: Sequence[str]) -> bool:
    """Whether all of these texts are ids."""
    return are_plainly_ids(names) or not any(map(id_fault, names))


def holds_odd_letters(data: NDArray[np.uint8]) -> bool:
    """Whether UTF-8 may hold what ids may not, or a blank, beyond ASCII; True is a doubt, False is sure."""
    if not len(data) or data.max() < 0x7F:
        return False
    if bool((data == 0x7F).any()):
        return True
    for lead, lowest, highest in _ODD:
        after = data[np.flatnonzero(data[:-1] == lead) + 1]
        if bool(((after >= lowest) & (after <= highest)).any()):
            return True
    return False


# The first byte, and from which to which second byte, of C1 controls and blanks (C2), of blanks and separators (E1, E2,
# E3), of surrogates (ED) and of the byte order mark (EF); and some letters that need not be doubted.
_ODD = (
    (0xC2, 0x80, 0xA0),
    (0xE1, 0x9A, 0x9A),
    (0xE2, 0x80, 0x81),
    (0xE3, 0x80, 0x80),
    (0xED, 0xA0, 0xBF),
    (0xEF, 0xBB, 0xBB),
)


def finite_number(value: Any) -> float | None:
    """A finite number of any numeric type as a double, or None; text and bools are no numbers.

    >>> finite_number(2), finite_number(True), finite_number("2"), finite_number(float("nan"))
    (2.0, None, None, None)
    """
    if isinstance(value, (bool, str)) or not (is_integer(value) or hasattr(value, "__float__")):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def number_of(text: str) -> float | None:
    """A finite number written in plain decimal notation, or None.

    >>> number_of("1e-3"), number_of("1_000"), number_of("nan")
    (0.001, None, None)
    """
    if not _is_number(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def number_of_bytes(cell: bytes) -> float | None:
    """The same of a cell without blanks at its ends, and quicker.

    >>> number_of_bytes(b"1e-3"), number_of_bytes(b"1_000"), number_of_bytes(b"nan")
    (0.001, None, None)
    """
    try:
        number = float(cell)
    except ValueError:
        return None
    # float() accepts nan, inf and 1_000, which are invalid here.
    return number if number - number == 0 and b"_" not in cell else None


def is_number(text: str) -> bool:
    """Whether a text spells a number, however large.

    >>> is_number("0.9"), is_number("bm25")
    (True, False)
    """
    return _is_number(text) is not None


def is_grade(number: float | None) -> bool:
    """Whether a number is a grade: finite, and within ±2^31."""
    return number is not None and abs(number) <= GRADE_LIMIT


def is_rank(text: str) -> bool:
    """Whether a text looks like a rank: a whole number, `3.0` too.

    >>> is_rank("3"), is_rank("3.0"), is_rank("0.9")
    (True, True, False)
    """
    return _is_rank(text) is not None


def plain(value: Any) -> Any:
    """A list, where the value is an array or series that knows `tolist` or `to_list`; else the value itself."""
    if isinstance(value, (list, tuple, str, dict)):
        return value
    for method in ("tolist", "to_list", "to_pylist"):
        convert = getattr(value, method, None)
        if convert is not None:
            return convert()
    return value
