"""Defines spans, lengths and budgets of results and alternatives, and sums numbers exactly."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, NamedTuple
from unicodedata import normalize

import numpy as np

from groupgt.errors import ConfigError, DataError, Faults, display, listed
from groupgt.model.hits import Floats, Ints
from groupgt.model.validity import id_fault, id_text, is_integer

# Doubles below this limit add up without overflow.
LARGE = 2.0**900
FARTHEST = 10**12
TEXT: Literal["text"] = "text"
# Texts that stand where lists of ids belong and were read as one id, each with its place and its `ROLE=COLUMN`.
Unsplit = dict[str, tuple[str, str]]
# How `str` writes a span, for reading many back at once.
SPELLED = r"(?s)^(?<doc>.*)\[(?<start>[0-9]{1,13}):(?<end>[0-9]{1,13})\]$"
# Lengths come from results, a corpus or a tokenizer. A result also has the number of the search call that found it.
LENGTH_UNITS = ("tokens", "chars")
CALLS: Literal["calls"] = "calls"
UNITS = (*LENGTH_UNITS, CALLS)
# The field with the original score of results whose score was combined with their call.
ORIGINAL_SCORE = "given_score"
LONGEST = 10**12
Tokenizer = Callable[[Sequence[str]], Sequence[int]]


# A cutoff by score, and the field with the scores of results.
SCORE: Literal["score"] = "score"
# The field with the ranks that a file states beside its scores.
RANK = "rank"


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Format a value as JSON with full double precision. NaN becomes null; dates, decimals and bytes become text."""
    return json.dumps(nulls(value), ensure_ascii=False, allow_nan=False, default=str, indent=indent)


def nulls(value: Any) -> Any:
    """Convert a structure to plain Python objects. Dataclasses become mappings, and NaN and infinities become None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: nulls(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [nulls(each) for each in value]
    if is_dataclass(value):
        return {field.name: nulls(getattr(value, field.name)) for field in fields(value)}
    return value


def count_distinct(codes: Ints) -> int:
    """Count distinct non-negative numbers without sorting them, unlike `np.unique`."""
    return int(np.count_nonzero(np.bincount(codes)))


def summed(values: Floats) -> float:
    """Return the double nearest to the exact sum, like `math.fsum`, in a few passes over the array."""
    return math.fsum(_parts(values))


def means_over_trials(values: Floats) -> Floats:
    """Average values of shape (r, …) over the first axis, whatever their order; NaN where all values are NaN."""
    values = np.sort(values, axis=0)  # NaN last
    counts = (~np.isnan(values)).sum(axis=0)
    lowest, highest = values[0], np.where(np.isnan(values), -np.inf, values).max(axis=0)
    means: Floats = np.nansum(values, axis=0) / np.maximum(counts, 1)
    # The mean of equal values is the value itself, without rounding.
    means = np.where(lowest == highest, lowest, np.clip(means, lowest, highest))
    return np.where(counts == 0, np.nan, means)


def _parts(values: Floats) -> list[float]:
    """Return fewer doubles with the same exact sum, or the input if a sum might overflow."""
    parts: list[float] = []
    rest = values
    while len(rest) and (highest := float(np.abs(rest).max())):
        if not highest < LARGE:
            return list(map(float, values))
        # Adding so large a number keeps only the leading bits of each value, which add up without rounding.
        beside = math.ldexp(1.0, math.frexp(highest)[1] + len(rest).bit_length())
        leading = (rest + beside) - beside
        parts.append(float(leading.sum()))
        rest = rest - leading
    return parts


def normal_text(text: str) -> str:
    """Normalize a query text for comparison (Unicode form NFC, single blanks)."""
    return " ".join(normalize("NFC", text).split())


def unnamed(size: int) -> list[str]:
    """Give results without ids names that are never ids. Only the text labeller can match results without ids."""
    return [f"(result {rank})" for rank in range(1, size + 1)]


def total(key: Ints, terms: Floats, size: int) -> Floats:
    """Return Σ terms for each key, shape (size,)."""
    return np.bincount(key, terms, minlength=size).astype(np.float64, copy=False)


class Span(NamedTuple):
    """A span of characters, pages or lines in a document, from `start` to `end`."""

    doc: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.doc}[{self.start}:{self.end}]"


# The kind of an alternative: a span, a text, or (None) an id.
Form = Span | Literal["text"] | None


def kind_of(form: Form) -> str:
    """Return the kind of an alternative: `id`, `span` or `text`."""
    return "id" if form is None else "span" if isinstance(form, Span) else "text"


def span_of(cell: Mapping[str, Any]) -> Span | str:
    """Read a span from a mapping with `doc` (or `doc_id`), `start` and `end`, or return an error message."""
    name = id_text(cell.get("doc", cell.get("doc_id")))
    if name is None or id_fault(name):
        return f"expected the id of a document as doc, found {display(cell.get('doc', cell.get('doc_id')))}"
    bounds = []
    for key in ("start", "end"):
        value: Any = cell.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # a column with gaps contains floats
        if not is_integer(value) or not 0 <= int(value) <= FARTHEST:
            return f"expected a whole number from 0 to {FARTHEST} as {key}, found {display(cell.get(key))}"
        bounds.append(int(value))
    if bounds[1] < bounds[0]:
        return f"expected an end that is not before its start, found {bounds[0]} to {bounds[1]}"
    return Span(name, *bounds)


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunk spans, stored as columns: `ids[i]` is `docs[i]` from `start[i]` to `end[i]`."""

    ids: list[str]
    docs: list[str]
    start: Ints
    end: Ints

    @classmethod
    def of(cls, places: Mapping[str, Any]) -> Chunks:
        """Read `{chunk: (doc, start, end)}` or `{chunk: {"doc", "start", "end"}}`, or raise `DataError` if invalid."""
        faults = Faults()
        spans: dict[str, Span] = {}
        for key, place in places.items():
            name = id_text(key)
            listed = isinstance(place, (list, tuple)) and len(place) == 3
            cell = dict(zip(("doc", "start", "end"), place)) if listed else place
            what = f"expected doc, start and end, found {display(place)}"
            span = span_of(cell) if isinstance(cell, Mapping) else what
            if name is None or name in spans:
                faults.add(f"chunk {key!r}", "expected a unique id (a string or integer)")
            elif isinstance(span, str):
                faults.add(f"chunk {key!r}", span)
            else:
                spans[name] = span
        faults.stop()
        return cls.from_spans(spans)

    @classmethod
    def from_spans(cls, spans: Mapping[str, Span]) -> Chunks:
        """Store valid spans as columns."""
        start, end = (np.array([span[at] for span in spans.values()], dtype=np.int64) for at in (1, 2))
        return cls(list(spans), [span.doc for span in spans.values()], start, end)

    def __len__(self) -> int:
        return len(self.ids)

    def spans(self) -> dict[str, Span]:
        """Return the span of each chunk."""
        return dict(zip(self.ids, map(Span, self.docs, self.start.tolist(), self.end.tolist())))


def is_order_only(scores: Sequence[float], ranks: Ints) -> bool:
    """Return whether scores only repeat the ranks (−rank or 1 ÷ rank) because the results came without scores."""
    several = bool(ranks.max(initial=0) > 1)
    return several and (np.array_equal(scores, -ranks) or np.array_equal(scores, 1 / ranks))


@dataclass(frozen=True)
class Budget:
    """A cutoff that keeps the longest prefix with at most `amount` of `unit`, or with scores ≥ `amount`."""

    amount: float
    unit: str

    def __str__(self) -> str:
        return f"{self.amount}{self.unit}"


@dataclass(frozen=True, eq=False)
class Lengths:
    """Document lengths in tokens or chars, read from `known[unit][id]` or counted from `texts`.

    A char is a Unicode code point. `count` counts the tokens in each text. Document lengths take precedence over
    lengths that come with results.

    >>> words = lambda texts: [len(text.split()) for text in texts]
    >>> lengths = Lengths(texts={"a": "to be", "b": "or"}, count=words)
    >>> lengths.of("tokens", ["b", "a"]).tolist(), lengths.of("chars", ["a"]).tolist()
    ([1, 2], [5])
    """

    known: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    count: Tokenizer | None = None
    source: str = ""
    wrong: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _counted: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        faults = Faults()
        for name, mapping in (("known", self.known), ("texts", self.texts)):
            if not isinstance(mapping, Mapping):
                what = f"expected a mapping as {name}, found {display(mapping)}; read_lengths reads a corpus"
                faults.add("lengths", what)
        faults.stop(ConfigError)
        for unit, table in self.known.items():
            if unit not in LENGTH_UNITS or not isinstance(table, Mapping):
                what = f"expected {listed(LENGTH_UNITS)} with {{id: length}}, found {display(unit)}: {display(table)}"
                faults.add("lengths", what)
                continue
            for name, length in table.items():
                if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or not 0 <= length <= LONGEST:
                    where = f"lengths: {unit} of {display(name)}"
                    faults.add(where, f"expected a whole number of at least 0, found {display(length)}")
        for name, text in self.texts.items():
            if not isinstance(text, str):
                faults.add(f"lengths: text of {display(name)}", f"expected text, found {display(text)}")
        if self.count is not None and not callable(self.count):
            faults.add("lengths", f"expected a function as count, found {display(self.count)}")
        faults.stop(ConfigError)

    def has(self, unit: str) -> bool:
        """Return whether lengths in this unit are available."""
        return unit in self.known or (bool(self.texts) and (unit == "chars" or self.count is not None))

    def of(self, unit: str, ids: Iterable[str]) -> Ints:
        """Return document lengths, or raise a `DataError` that lists the ids without a length."""
        names = list(ids)
        if self.wrong.get(unit):
            raise DataError(*self.wrong[unit])
        table = self.table(unit, names)
        try:
            return np.fromiter(map(table.__getitem__, names), np.int64, len(names))
        except KeyError:
            faults = Faults()
            for name in dict.fromkeys(name for name in names if name not in table):
                what = f"expected the length of result {display(name)} in {unit}, found none"
                faults.add(self.source or "lengths", what)
            faults.fail(DataError)

    def table(self, unit: str, ids: Sequence[str]) -> Mapping[str, int]:
        """Return a mapping that includes these ids if their lengths are available. Each text is counted only once."""
        if (lengths := self.known.get(unit)) is not None:
            return lengths
        counted = self._counted.setdefault(unit, {})
        if fresh := [name for name in dict.fromkeys(ids) if name not in counted and name in self.texts]:
            counted.update(zip(fresh, self.measure(unit, [self.texts[name] for name in fresh])))
        return counted

    def measure(self, unit: str, texts: Sequence[str]) -> list[int]:
        """Measure the length of texts, or raise `ConfigError` if the tokenizer does not return counts."""
        if unit == "chars":
            return list(map(len, texts))
        if self.count is None:
            raise ConfigError("lengths in tokens need a tokenizer; choose one")
        try:
            returned = list(self.count(texts))
        except Exception as error:  # any exception of the user's function
            raise ConfigError(f"the tokenizer failed: {type(error).__name__}: {error}") from None
        counts = [int(count) if isinstance(count, (int, np.integer)) else -1 for count in returned]
        if len(counts) != len(texts) or any(not 0 <= count <= LONGEST for count in counts):
            what = f"expected a count from 0 for each of {len(texts):,} strings"
            raise ConfigError(f"the tokenizer: {what}, found {display(returned)}")
        return counts


def as_lengths(value: Any) -> Lengths:
    """Convert `{"tokens": {id: length}}`, `{id: text}` or `Lengths` to `Lengths`. Raise `ConfigError` otherwise."""
    if value is None:
        return Lengths()
    if isinstance(value, Lengths):
        return value
    if not isinstance(value, Mapping):
        expected = '{"tokens": {id: length}}, {id: text}, or the result of read_lengths(corpus)'
        raise ConfigError(f"lengths: expected {expected}, found {display(value)}")
    if value and all(isinstance(text, str) for text in value.values()):
        return Lengths(texts={str(name): text for name, text in value.items()})
    columns = {unit: column for unit, column in value.items() if isinstance(column, Mapping)}
    return Lengths({**value, **{unit: {str(name): n for name, n in each.items()} for unit, each in columns.items()}})
