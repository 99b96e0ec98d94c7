"""Defines valid ids, scores, grades and rows. `groupgt.formats.validity` applies these rules to whole columns."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from groupgt.errors import Faults, display

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How a message shows a value; other packages may use it under this name.
shown = display

LONGEST_ID = 1 << 16
GRADE_LIMIT = 2.0**31
# Characters that an id may not contain: control characters, line and paragraph separators, byte order marks.
FORBIDDEN = "\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff"
# Blanks of every width: an id may contain them, but not consist of them.
BLANKS = " \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
# Invalid ids that the quick check of many ids does not distinguish from blanks inside ids.
BLANK_IDS = frozenset(("", " "))
# Numbers and ranks as written in files: no `nan`, no `1_000`, only ASCII digits.
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
RANK = r"[+-]?[0-9]+(\.0*)?"

_forbidden = re.compile(f"[{FORBIDDEN}\ud800-\udfff]").search
# What is forbidden, and blanks other than the ASCII blank.
_odd_letter = re.compile(f"[{FORBIDDEN}{BLANKS[1:]}\ud800-\udfff]").search
_is_number = re.compile(NUMBER).fullmatch
_is_rank = re.compile(RANK).fullmatch
# The first byte, and the range of the second byte, of C1 controls and blanks (C2), blanks and separators (E1, E2, E3),
# surrogates (ED) and the byte order mark (EF); the ranges include some valid letters.
_ODD = (
    *((0xC2, 0x80, 0xA0), (0xE1, 0x9A, 0x9A), (0xE2, 0x80, 0x81)),
    *((0xE3, 0x80, 0x80), (0xED, 0xA0, 0xBF), (0xEF, 0xBB, 0xBB)),
)


def is_integer(value: Any) -> bool:
    """Return whether a value is a Python or NumPy integer. Bools do not count."""
    if type(value) is int:
        return True
    return not isinstance(value, bool) and hasattr(value, "__index__") and type(value).__name__ not in ("bool", "bool_")


def id_text(value: Any) -> str | None:
    """Return the id as text, or None if the value is neither text nor an integer."""
    if isinstance(value, str):
        # str() of a member of a string enum may be its name instead of its value.
        return str.__str__(value)
    return str(int(value)) if is_integer(value) else None


def id_fault(name: str) -> str | None:
    """Explain why a text is not a valid query or document id, or return None if it is valid."""
    # Nearly all ids are printable and begin with a visible character.
    if name[:1] > " " and len(name) <= LONGEST_ID // 4 and name.isprintable():
        return None
    if not name.strip():
        return "is blank"
    if len(name) > LONGEST_ID // 4 and len(name.encode("utf-8", "surrogatepass")) > LONGEST_ID:
        return f"is longer than {LONGEST_ID:,} bytes"
    forbidden = _forbidden(name)
    return None if forbidden is None else f"contains {_named(forbidden[0])}"


def _named(letter: str) -> str:
    if letter == "\0":
        return "a NUL character"
    if "\ud800" <= letter <= "\udfff":
        return "a lone surrogate"
    kinds = {"\u2028": "the line separator", "\u2029": "the paragraph separator", "\ufeff": "the byte order mark"}
    return f"{kinds.get(letter, 'the control character')} U+{ord(letter):04X}"


def are_plainly_ids(names: Sequence[str]) -> bool:
    """Return True if all of these texts are certainly valid ids, or False if any may be invalid."""
    if not names:
        return True
    data = np.frombuffer("\n".join(names).encode("utf-8", "surrogatepass"), dtype=np.uint8)
    starts = np.append(0, np.flatnonzero(data == ord("\n")) + 1)
    # The only controls are the line ends between ids; an id that begins with a blank may be blank.
    if len(starts) != len(names) or int(np.count_nonzero(data < ord(" "))) != len(names) - 1:
        return False
    if starts[-1] == len(data) or data[starts].min() <= ord(" "):
        return False
    return bool(np.diff(starts, append=len(data) + 1).max() <= LONGEST_ID) and not holds_odd_letters(data)


def has_plain_letters(text: str) -> bool:
    """Return True if joined ids certainly contain no invalid characters and no blank ids outside `BLANK_IDS`."""
    if "  " in text:
        return False
    if text.isascii():
        data = np.frombuffer(text.encode(), dtype=np.uint8)
        return bool(data.min(initial=ord(" ")) >= ord(" ") and data.max(initial=0) < 0x7F)
    return _odd_letter(text) is None


def are_texts(names: Sequence[str]) -> bool:
    """Return whether most of these names have at least four words and so look like texts rather than ids."""
    return 2 * sum(name.count(" ") > 2 for name in names) >= max(len(names), 1)


def are_ids(names: Sequence[str]) -> bool:
    """Return whether all of these texts are valid ids."""
    return are_plainly_ids(names) or not any(map(id_fault, names))


def holds_odd_letters(data: NDArray[np.uint8]) -> bool:
    """Return whether UTF-8 data may contain invalid characters or non-ASCII blanks."""
    if not len(data) or data.max() < 0x7F:
        return False
    if bool((data == 0x7F).any()):
        return True
    seconds = ((data[np.flatnonzero(data[:-1] == lead) + 1], low, high) for lead, low, high in _ODD)
    return any(bool(((after >= low) & (after <= high)).any()) for after, low, high in seconds)


def unjudged(cell: Any) -> str:
    """Return a hint if a grade is missing, otherwise an empty string."""
    return "; leave out unjudged documents, or give them a grade" if _is_missing(cell) else ""


def unscored(cell: Any) -> str:
    """Return a hint if a score is missing, otherwise an empty string."""
    way = "; give every result a score, or leave out all scores (groupgt then uses ranks or order)"
    return way if _is_missing(cell) else ""


def _is_missing(cell: Any) -> bool:
    return cell is None or str(cell).strip().lower() in ("", "null", "none", "nan", "na", "n/a", "<na>")


def finite_number(value: Any) -> float | None:
    """Convert a finite number of any numeric type to a float, or return None for text, bools and other values."""
    if isinstance(value, (bool, str)) or not (is_integer(value) or hasattr(value, "__float__")):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def number_of(text: str) -> float | None:
    """Parse a finite number in plain decimal notation, or return None for anything else."""
    if not _is_number(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def number_of_bytes(cell: bytes) -> float | None:
    """Parse a number in the same way as `number_of`, but faster, from a cell without leading or trailing blanks."""
    try:
        number = float(cell)
    except ValueError:
        return None
    # float() accepts nan, inf and 1_000, which are invalid here.
    return number if number - number == 0 and b"_" not in cell else None


def is_number(text: str) -> bool:
    """Return whether text is a number of any size."""
    return _is_number(text) is not None


def is_grade(number: float | None) -> bool:
    """Return whether a number is a valid grade: finite and within ±2^31."""
    return number is not None and abs(number) <= GRADE_LIMIT


def is_rank(text: str) -> bool:
    """Return whether a text looks like a rank: an integer, which may be written as `3.0`."""
    return _is_rank(text) is not None


def plain(value: Any) -> Any:
    """Convert an array or series (anything with `tolist` or `to_list`) to a list. Return other values unchanged."""
    if isinstance(value, (list, tuple, str, dict)):
        return value
    for method in ("tolist", "to_list", "to_pylist"):
        if (convert := getattr(value, method, None)) is not None:
            return convert()
    return value


def note_cost(costs: dict[str, float], qid: str, cell: Any, faults: Faults, where: str) -> None:
    """Add a query's cost if it has one. Any cost except a number of at least 0 is an error."""
    number = finite_number(cell)
    if number is not None and number >= 0:
        costs[qid] = number
    elif cell is not None:
        faults.add(where, f"expected a number of at least 0 as cost, found {shown(cell)}")
