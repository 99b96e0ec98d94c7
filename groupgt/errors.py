"""Everything groupgt raises for its users, in one tree.

    GroupgtError
    ├── DataError        ground truth, results or another file are at fault
    ├── MetricError      a metric's name, parameter or cutoff is at fault, or does not fit the data
    ├── ConfigError      an experiment file or an option is at fault
    └── RetrieverError   a retriever failed or returned what is not a ranking

An error carries its faults one by one; its text shows the first of them and how many more there are.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

SHOWN = 10
KEPT = 100
LONGEST = 2000
# A fault in more places than these is told once, with its count and some of the places.
REPEATED, EXAMPLES = 3, 2


class GroupgtWarning(UserWarning):
    """Something doubtful that does not stop an evaluation."""

    def __str__(self) -> str:
        return printable(super().__str__())


class GroupgtError(Exception):
    """The root of the tree; `faults` holds the texts shown, `total` how many there are."""

    shown = SHOWN

    def __init__(self, *faults: str, total: int | None = None) -> None:
        self.faults = faults
        self.total = len(faults) if total is None else total
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [_shortened(fault) for fault in self.faults[: self.shown]]
        if self.total > len(lines):
            lines.append(f"… and {self.total - len(lines):,} more like these")
        return printable("\n".join(lines))


class DataError(GroupgtError):
    """Ground truth, results or another file are at fault."""


class MetricError(GroupgtError):
    """A metric's name, parameter or cutoff is at fault, or does not fit the data."""


class ConfigError(GroupgtError):
    """An experiment file or an option is at fault; all faults are shown, for they are few and one's own."""

    shown = KEPT


class RetrieverError(GroupgtError):
    """A retriever failed, or returned what is not a ranking."""


@dataclass
class _Cause:
    """The text of a fault, the first places that have it, and how many more there are."""

    text: str
    places: list[str] = field(default_factory=list)
    more: int = 0


class Faults:
    """Collects faults, so that all of one file are shown at once; `grouped`: one in many places becomes one text.

    >>> faults = Faults()
    >>> faults.add("qa.jsonl:3", "expected a list, found 5")
    >>> bool(faults), faults.total
    (True, 1)
    >>> for line in range(4, 20):
    ...     faults.add(f"qa.jsonl:{line}", "expected a list, found 5")
    >>> faults.texts
    ['qa.jsonl:3: expected a list, found 5 (17 times; also at qa.jsonl:4, qa.jsonl:5, …)']
    """

    def __init__(self, *, grouped: bool = True) -> None:
        self.texts: list[str] = []
        self.total = 0
        self.grouped = grouped
        self._causes: dict[str, _Cause] = {}

    def add(self, where: str, what: str) -> None:
        """Adds one fault, once; the texts of the first hundred are kept."""
        text = f"{where}: {what}" if where else what
        cause = self._causes.get(what) if where else None
        if cause is not None and len(cause.places) == REPEATED:
            self.total += 1
            self._add_place(cause, what)
            return
        if text in self.texts:
            return
        self.total += 1
        if len(self.texts) < KEPT:
            self.texts.append(text)
            if where and self.grouped:
                self._causes.setdefault(what, _Cause(text)).places.append(where)

    def _add_place(self, cause: _Cause, what: str) -> None:
        """Counts one more place of a fault that many have; the first time, those shown one by one become one."""
        first, *others = cause.places
        if not cause.more:
            for place in others:
                self.texts.remove(f"{place}: {what}")
            cause.more = len(others)
        cause.more += 1
        count = f"{cause.more + 1:,} times; also at {', '.join(others[:EXAMPLES])}, …"
        position = self.texts.index(cause.text)
        cause.text = self.texts[position] = f"{first}: {what} ({count})"

    def merge(self, error: GroupgtError) -> None:
        """Adds the faults of an error, so that they are told with the others."""
        for text in error.faults:
            self.add("", text)
        self.total += error.total - len(error.faults)

    def __bool__(self) -> bool:
        return self.total > 0

    def stop(self, kind: type[GroupgtError] = DataError) -> None:
        """Raises what was collected; does nothing where nothing was."""
        if self:
            self.fail(kind)

    def fail(self, kind: type[GroupgtError] = DataError) -> NoReturn:
        """Raises what was collected."""
        raise kind(*self.texts, total=self.total - sum(cause.more for cause in self._causes.values()))


def _shortened(text: str) -> str:
    """A fault without the middle of what is too long for a terminal: an id of 64 KiB, say."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 300]} … {text[-200:]}"


def near_names(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'x' or 'y'?)`, or nothing where no known name is near."""
    import difflib

    names = list(known)
    lowered = {known_name.lower(): known_name for known_name in reversed(names)}
    near = difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)
    if not near:
        return ""
    return f" (did you mean {' or '.join(repr(lowered[found]) for found in near)}?)"


def listed(names: Iterable[str]) -> str:
    """`a, b or c`: the choices of a message.

    >>> listed(["a", "b", "c"])
    'a, b or c'
    """
    *rest, last = names
    return f"{', '.join(rest)} or {last}" if rest else last


def first_of(names: Sequence[str], most: int | None, joint: str = ", ") -> str:
    """The first of some names, and how many more there are; all of them where `most` is None.

    >>> first_of(["a", "b"], 2, " or "), first_of(["a", "b", "c", "d"], 2, " or ")
    ('a or b', 'a or b or 2 more')
    """
    if most is None or len(names) <= most:
        return joint.join(names)
    return joint.join([*names[:most], f"{len(names) - most:,} more"])


def warn(text: str) -> None:
    """Warns of something doubtful, at the line that called groupgt, whatever lies between."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("groupgt."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, GroupgtWarning, stacklevel=level)


# Control characters but tab and line feed, line separators, halves of surrogate pairs, and what turns the direction of
# writing.
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, *, as_json: bool = False) -> str:
    """The text with an escape for each character that a terminal obeys, or by which it shows others out of order.

    Everything that people read goes through this: messages, tables, explanations. In text that is JSON the escapes are
    those of JSON, which whoever reads it undoes.

    >>> print(printable("a\\x1b[2Jb\\u202ec, naïve ✓"))
    a\\x1b[2Jb\\u202ec, naïve ✓
    """

    def escape(found: re.Match[str]) -> str:
        code = ord(found[0])
        return f"\\u{code:04x}" if as_json or code > 0xFF else f"\\x{code:02x}"

    return _COMMANDS.sub(escape, text)


def display(value: Any, size: int = 80) -> str:
    """A value as a message shows it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= size else text[: size - 1] + "…"
