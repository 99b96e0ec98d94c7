"""groupgt's exception hierarchy.

    GroupgtError
    ├── DataError        invalid ground truth, results or other file
    ├── MetricError      invalid metric name, parameter or cutoff, or one that does not fit the data
    ├── ConfigError      an invalid experiment file or option
    └── RetrieverError   a retriever failed or returned an invalid ranking

An error contains a list of faults. The error's message shows the first faults and the number of others.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

SHOWN = 10
KEPT = 100
LONGEST_CHARS = 2000
# A fault in more places than this is shown once, with a count and some of the places.
REPEATED, EXAMPLES = 3, 2
# The parts in which faults of one kind differ: quoted texts, and numbers.
_VALUES = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[-+]?[0-9][0-9,._]*(?:[eE][-+]?[0-9]+)?""")
# The address of an object in memory, which is useless and makes faults differ.
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]+(?=>)")
# The number of an error, in the order of errors, and its location.
_Location = tuple[int, str]
# What the keys of ids end with, in the judgments of other tools.
ID_ENDINGS = ("id", "ids", "uri", "url", "docno", "document", "doc", "passage", "chunk", "path", "source")
# What a warning is about that changes the meaning of a number.
WarningKind = Literal["absent ids", "unknown ids", "no hits", "blank passages", "few results"]
_collected: ContextVar[list[KeptWarning] | None] = ContextVar("collected", default=None)
_muted: ContextVar[bool] = ContextVar("muted", default=False)
# Control characters except tab and line feed, line separators, halves of surrogate pairs, and characters that change
# the direction of text.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class GroupgtWarning(UserWarning):
    """A warning about suspicious data. A warning does not stop an evaluation."""

    def __str__(self) -> str:
        return printable(super().__str__())


class GroupgtError(Exception):
    """Base class of all groupgt errors. `faults` contains the messages to show. `total` counts all faults."""

    shown = SHOWN
    # Whether faults that differ only in values are shown once.
    kinds_once = False

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
    """Invalid ground truth, results or other files. Similar errors are grouped and counted."""

    kinds_once = True


class MetricError(GroupgtError):
    """Invalid metric name, parameter or cutoff, or a metric that does not fit the data."""


class ConfigError(GroupgtError):
    """Invalid experiment file or option. The message shows all errors."""

    shown = KEPT


class RetrieverError(GroupgtError):
    """A retriever failed or returned an invalid ranking."""

    kinds_once = True


def reason(error: BaseException) -> str | None:
    """Return the message to show to users, or None if the error is a bug whose traceback should be shown."""
    if isinstance(error, GroupgtError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return str(GroupgtError(f"{name}{error.strerror or error}"))
    # Exceptions of polars, including its panics, are about data.
    if type(error).__module__.split(".")[0] in ("polars", "pyo3_runtime"):
        return f"the data cannot be read: {str(error).splitlines()[0]}"
    return None


@dataclass(eq=False, repr=False)
class _Fault:
    """A fault in several locations. If grouped faults differ only in values, `faults` maps each text to its fault."""

    what: str
    locations: list[_Location] = field(default_factory=list)
    count: int = 0
    faults: dict[str, _Fault] = field(default_factory=dict)

    def add(self, location: _Location) -> None:
        self.count += 1
        if len(self.locations) < REPEATED:
            self.locations.append(location)

    def lines(self, how_often: str = "times") -> list[tuple[int, str, int]]:
        """Return (order, text, number of faults) for each location, or one entry for all locations."""
        if self.count <= REPEATED:
            return [(order, f"{where}: {self.what}" if where else self.what, 1) for order, where in self.locations]
        (order, first), *others = self.locations
        also = ", ".join(where for _, where in others[:EXAMPLES])
        return [(order, f"{first}: {self.what} ({self.count:,} {how_often}; also at {also}, …)", self.count)]


class Faults:
    """Collects faults in order to report them together. With `grouped`, repeated faults are shown only once.

    For data, faults that differ only in values are grouped too.
    """

    def __init__(self, *, grouped: bool = True) -> None:
        self.total = 0
        self.grouped = grouped
        # The key by which texts are sorted; None for the order in which they were added.
        self.order: Callable[[str], Any] | None = None
        self._groups: dict[str, _Fault] = {}
        self._seen: set[str] = set()

    def add(self, where: str, what: str) -> None:
        """Add one fault. Keep the first hundred faults, and the first fault of each kind."""
        what = _ADDRESS.sub("0x…", what)
        text = f"{where}: {what}" if where else what
        if text in self._seen:
            return
        self.total += 1
        name = _VALUES.sub("…", what) if where and self.grouped else text
        if (group := self._groups.get(name)) is None:
            if len(self._groups) >= KEPT:
                return
            group = self._groups[name] = _Fault(what)
        location = (self.total, where)
        group.add(location)
        if (fault := group.faults.get(what)) is None:
            if group.faults and len(self._seen) >= KEPT:
                return
            fault = group.faults[what] = _Fault(what)
        if len(fault.locations) < REPEATED:
            self._seen.add(text)
        fault.add(location)

    def merge(self, error: GroupgtError) -> None:
        """Add the faults from an error, so that they are reported together."""
        for text in error.faults:
            self.add("", text)
        self.total += error.total - len(error.faults)

    @contextmanager
    def merging(self, kind: type[GroupgtError] = GroupgtError) -> Iterator[None]:
        """Add the faults from any error of this kind that the block raises, then continue after the block."""
        try:
            yield
        except kind as error:
            self.merge(error)

    @property
    def texts(self) -> list[str]:
        """The text of each fault that is kept. A fault in many locations has only one text."""
        return [text for _, text, _ in self._lines(ConfigError)]

    def _lines(self, error: type[GroupgtError]) -> list[tuple[int, str, int]]:
        lines = []
        for group in self._groups.values():
            if error.kinds_once and group.count > max(REPEATED, group.faults[group.what].count):
                lines += group.lines("like this")
            else:
                lines += [line for fault in group.faults.values() for line in fault.lines()]
        lines.sort()
        order = self.order
        return lines if order is None else sorted(lines, key=lambda line: order(line[1]))

    def __bool__(self) -> bool:
        return self.total > 0

    def stop(self, kind: type[GroupgtError] = DataError) -> None:
        """Raise the collected faults, if there are any."""
        if self.total:
            self.fail(kind)

    def fail(self, kind: type[GroupgtError] = DataError, before: str = "") -> NoReturn:
        """Raise the collected faults, with `before` as the first message."""
        lines = self._lines(kind)
        first = [before] if before else []
        repeated = sum(count - 1 for _, _, count in lines)
        raise kind(*first, *(text for _, text, _ in lines), total=self.total - repeated + len(first))


def refuse(faults: Iterable[tuple[str, str]], kind: type[GroupgtError] = DataError) -> None:
    """Raise an error that lists these (where, what) faults, if there are any."""
    collected = Faults()
    for where, what in faults:
        collected.add(where, what)
    collected.stop(kind)


def _shortened(text: str) -> str:
    """Cut the middle out of a fault that is too long for a terminal (for example, with a 64 KiB id)."""
    return text if len(text) <= LONGEST_CHARS else f"{text[: LONGEST_CHARS - 300]} … {text[-200:]}"


def near_names(name: str, valid_names: Iterable[str]) -> str:
    """Return ` (did you mean 'x' or 'y'?)`, or an empty string if no name is similar."""
    import difflib

    lowered = {valid.lower(): valid for valid in reversed(list(valid_names))}
    similar = difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(lowered[match]) for match in similar)}?)" if similar else ""


def listed(names: Iterable[str], joint: str = "or") -> str:
    """Join choices for a message, as in `a, b or c`."""
    *rest, last = names
    return f"{', '.join(rest)} {joint} {last}" if rest else last


def first_of(names: Sequence[str], most: int | None, joint: str = ", ") -> str:
    """Join the first names and the number of remaining names. If `most` is None, join all names."""
    if most is None or len(names) <= most:
        return joint.join(names)
    return joint.join([*names[:most], f"{len(names) - most:,} more"])


def strange_result(keys: Iterable[Any]) -> str:
    """Return the error message for results that are mappings without an id. The message lists the accepted shapes."""
    shapes = "ids, (id, score) pairs, {id: score}, or mappings with the key id"
    return f"expected results as {shapes}; found mappings with the keys {', '.join(map(str, keys)) or '(none)'}"


def key_of_id(cell: Mapping[Any, Any]) -> str:
    """Return a hint for a judged document whose id is under another key, or an empty string if there is none."""
    if "id" in cell:
        return '; put it into a group: [{"id": …, "grade": …}]' if set(cell) <= {"id", "grade"} else ""
    names = [str(key) for key, value in cell.items() if isinstance(value, (str, int))]
    name = next((name for name in names if name.lower().endswith(ID_ENDINGS)), None)
    return "" if name is None else f'; if {name} is the id, write {{"id": …, "grade": …}} in a group: [{{"id": …}}]'


@dataclass(frozen=True)
class KeptWarning:
    """A warning that affects the meaning of a number and must be shown with that number."""

    kind: WarningKind
    text: str


@contextmanager
def collecting(kept: list[KeptWarning]) -> Iterator[None]:
    """Add the warnings issued in the block to `kept`, except duplicates and warnings without a kind."""
    token = _collected.set(kept)
    try:
        yield
    finally:
        _collected.reset(token)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress warnings in the block, but not in other threads."""
    token = _muted.set(True)
    try:
        yield
    finally:
        _muted.reset(token)


def warn(text: str, kind: WarningKind | None = None) -> None:
    """Issue a warning that points to the line that called groupgt. A warning with a `kind` is kept for reports."""
    if _muted.get():
        return
    kept = _collected.get()
    if kind is not None and kept is not None and (warning := KeptWarning(kind, text)) not in kept:
        kept.append(warning)
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("groupgt."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, GroupgtWarning, stacklevel=level)


def printable(text: str, *, as_json: bool = False) -> str:
    """Escape control characters, and characters that change the text direction in a terminal.

    All text that people see is escaped in this way. JSON output uses JSON escapes, from which programs can restore the
    text.
    """

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f"\\u{code:04x}" if as_json or code > 0xFF else f"\\x{code:02x}"

    return _COMMANDS.sub(escape, text)


def display(value: Any, size: int = 80) -> str:
    """Return a value as shown in messages, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= size else text[: size - 1] + "…"
