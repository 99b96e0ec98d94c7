"""How long results are: budgets in tokens or characters, and the lengths of documents that they are filled with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groupgt.errors import ConfigError, DataError, Faults, display, listed
from groupgt.model.hits import Ints

UNITS = ("tokens", "chars")
LONGEST = 10**12
Tokenizer = Callable[[Sequence[str]], Sequence[int]]


@dataclass(frozen=True)
class Budget:
    """A cutoff by length: the longest prefix whose lengths sum to at most `amount`."""

    amount: int
    unit: str

    def __str__(self) -> str:
        return f"{self.amount}{self.unit}"


@dataclass(frozen=True, eq=False)
class Lengths:
    """How long documents are: `known[unit][id]`, in tokens or chars, or counted from `texts`.

    Characters are code points. `count` makes token counts of texts. What stands here goes before lengths that come with
    results.

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
        for name, given in (("known", self.known), ("texts", self.texts)):
            if not isinstance(given, Mapping):
                faults.add(
                    "lengths", f"expected a mapping as {name}, found {display(given)}; read_lengths reads a corpus"
                )
        faults.stop(ConfigError)
        for unit, table in self.known.items():
            if unit not in UNITS or not isinstance(table, Mapping):
                faults.add(
                    "lengths", f"expected {listed(UNITS)} with {{id: length}}, found {display(unit)}: {display(table)}"
                )
                continue
            for name, length in table.items():
                if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or not 0 <= length <= LONGEST:
                    where = f"lengths: {unit} of {display(name)}"
                    faults.add(where, f"expected a whole number from 0, found {display(length)}")
        for name, text in self.texts.items():
            if not isinstance(text, str):
                faults.add(f"lengths: text of {display(name)}", f"expected text, found {display(text)}")
        if self.count is not None and not callable(self.count):
            faults.add("lengths", f"expected a function as count, found {display(self.count)}")
        faults.stop(ConfigError)

    def has(self, unit: str) -> bool:
        """Whether it says anything of a unit."""
        return unit in self.known or (bool(self.texts) and (unit == "chars" or self.count is not None))

    def of(self, unit: str, ids: Iterable[str]) -> Ints:
        """The lengths of documents; raises `DataError` with the ids that have none."""
        wanted = list(ids)
        if self.wrong.get(unit):
            raise DataError(*self.wrong[unit])
        table = self.table(unit, wanted)
        try:
            return np.fromiter(map(table.__getitem__, wanted), np.int64, len(wanted))
        except KeyError:
            absent = list(dict.fromkeys(name for name in wanted if name not in table))
            faults = Faults()
            where = self.source or "lengths"
            for name in absent:
                faults.add(where, f"expected the length of result {display(name)} in {unit}, found none")
            faults.fail(DataError)

    def table(self, unit: str, ids: Sequence[str]) -> Mapping[str, int]:
        """id → length, for these ids at least, as far as it is known; texts are counted once."""
        known = self.known.get(unit)
        if known is not None:
            return known
        counted = self._counted.setdefault(unit, {})
        fresh = [name for name in dict.fromkeys(ids) if name not in counted and name in self.texts]
        if fresh:
            texts = [self.texts[name] for name in fresh]
            counted.update(zip(fresh, self.measure(unit, texts)))
        return counted

    def measure(self, unit: str, texts: Sequence[str]) -> list[int]:
        """The lengths of texts; raises `ConfigError` where a tokenizer gives no counts."""
        if unit == "chars":
            return list(map(len, texts))
        if self.count is None:
            raise ConfigError("lengths in tokens need a tokenizer; name one")
        try:
            given = list(self.count(texts))
        except Exception as error:  # whatever the user's function raises
            raise ConfigError(f"the tokenizer failed: {type(error).__name__}: {error}") from None
        counts = [int(each) if isinstance(each, (int, np.integer)) else -1 for each in given]
        if len(counts) != len(texts) or any(not 0 <= each <= LONGEST for each in counts):
            raise ConfigError(
                f"the tokenizer: expected a count from 0 for each of {len(texts):,} texts, found {display(given)}"
            )
        return counts


def as_lengths(value: Any) -> Lengths:
    """`Lengths`, `{"tokens": {id: length}}`, or `{id: text}`; raises `ConfigError` for anything else.

    >>> as_lengths({"tokens": {"a": 3}}).of("tokens", ["a"]).tolist()
    [3]
    """
    if value is None:
        return Lengths()
    if isinstance(value, Lengths):
        return value
    if not isinstance(value, Mapping):
        expected = '{"tokens": {id: length}}, {id: text}, or what read_lengths(corpus) gives'
        raise ConfigError(f"lengths: expected {expected}, found {display(value)}")
    if value and all(isinstance(each, str) for each in value.values()):
        return Lengths(texts={str(name): text for name, text in value.items()})
    known = {
        unit: {str(name): n for name, n in own.items()} if isinstance(own, Mapping) else own
        for unit, own in value.items()
    }
    return Lengths(known)
