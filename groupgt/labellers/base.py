"""Defines the interface of labellers, which decide which results hit which alternatives."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import numpy as np

from groupgt import native
from groupgt.errors import DataError, Faults, display
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Ints
from groupgt.model.validity import BLANK_IDS
from groupgt.model.values import Chunks, kind_of
from groupgt.options import FILE, Rule, options_of

Key = TypeVar("Key")
Value = TypeVar("Value")
# The query, the rank, the alternative and whether it is a repeat, for each hit.
Settled = tuple[Ints, Ints, Ints, Bools]
# A file of texts, spans, vectors or names, or its contents; empty means none.
_TYPES = (str, os.PathLike, Mapping, Chunks)
_RULE = Rule("a path or a mapping", lambda value: isinstance(value, _TYPES), {"type": ["string", "object"]})
Table = Annotated[Any, _RULE, FILE]
NONE = np.zeros(0, dtype=np.int64)
# The name of each kind of alternative in messages, and the labeller that reads it.
ONE = {"span": "a span", "text": "passage text"}
READER = {"span": "spans", "text": "text"}


class Labeller:
    """Base class of labellers. `match` is a join that any engine can run. `settle` reduces joined rows in rank order.

    Subclasses override only the methods they need. `column` names the field that identifies results in place of their
    ids: `parent` or `span`. If `reads_results` is True, results are read beforehand and passed to `match`; otherwise,
    `match` gets None. Only a labeller that `compares_texts` accepts results without ids. `str(labeller)` is printed
    below tables. It begins with `description`, which covers the options in `described`. Other options with non-default
    values follow by name, except for files and options in `decides_nothing`. Labellers are created from their options
    and `inputs`, a `groupgt.evaluation.sources.Sources` that reads the files and functions named in options.
    """

    name = ""
    options: Any = None
    described: frozenset[str] = frozenset()
    decides_nothing: frozenset[str] = frozenset()
    column = ""
    reads_results = True
    compares_texts = False

    def truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the ground truth as this labeller reads it. Raise `DataError` for alternatives that it cannot use."""
        return truth

    def names(self, ids: Sequence[str]) -> Sequence[str]:
        """Return new names for results with these ids."""
        return ids

    @property
    def renames(self) -> bool:
        """True if `names` or `column` renames results."""
        return bool(self.column)

    def unknown_ids(self, ids: Sequence[str]) -> list[str]:
        """Return the original ids of results that the labeller cannot match."""
        return []

    @property
    def unknown_is_fault(self) -> bool:
        """True if any unknown id is an error. Otherwise, a ranking is suspicious only if all its ids are unknown."""
        return True

    def texts(self) -> Mapping[str, str]:
        """Return the labeller's texts by id."""
        return {}

    def unreachable(self, truth: GroundTruth) -> tuple[Ints, str]:
        """Return the alternatives that no result can hit, and suggest a fix. `truth` must come from `self.truth`."""
        return NONE, ""

    def read(self, truth: GroundTruth) -> GroundTruth:
        """Return the ground truth as read by `truth`, which runs only once for many runs."""
        return truth.judgments.once(("read", self), lambda: self.truth(truth))

    def match(self, truth: GroundTruth, results: Results) -> Matches:
        """Return a table of results and the targets that they hit."""
        raise NotImplementedError

    def settle(self, truth: GroundTruth, matches: Matches, query: Ints, rank: Ints, target: Ints) -> Settled:
        """Convert rows sorted by query and rank to (query, rank, alternative, repeat) in the normal form of `Hits`."""
        row, alternative = spread(target, matches.starts, matches.alternatives)
        return query[row], rank[row], alternative, first_hits(alternative, len(truth.ids))

    def description(self) -> str:
        """Describe how the labeller matches results to alternatives."""
        return ""

    def __str__(self) -> str:
        parts = [self.description()]
        for option in options_of(type(self.options) if is_dataclass(self.options) else None).values():
            value = getattr(self.options, option.name)
            shown = not option.is_path and option.name not in self.described | self.decides_nothing
            if shown and value != option.default:
                parts.append(f"{option.name.replace('_', ' ')} {display(value)}")
        text = ", ".join(filter(None, parts))
        return f"{self.name} ({text})" if text else self.name


@dataclass(frozen=True, eq=False)
class Results:
    """Distinct results, sorted by query, then by rank, with their names for the labeller and any texts."""

    queries: Ints
    names: list[str]
    texts: list[str | None]


@dataclass(frozen=True, eq=False)
class Matches:
    """Table of the targets that results hit, sorted by query. Result `keys[i]` of query `queries[i]` hits `targets[i]`.

    Only the first occurrence of a key in a query counts. For most labellers, a target is the index of a list, and
    `starts` splits `alternatives` into lists. `low` and `high` bound the part of a span that the result covers.
    """

    truth: GroundTruth
    keys: list[str]
    queries: Ints
    targets: Ints
    starts: Ints = field(default_factory=lambda: NONE)
    alternatives: Ints = field(default_factory=lambda: NONE)
    low: Ints = field(default_factory=lambda: NONE)
    high: Ints = field(default_factory=lambda: NONE)

    @cached_property
    def bounds(self) -> list[int]:
        """Offsets at which each query's keys begin, followed by the end of the last query."""
        bounds: list[int] = np.searchsorted(self.queries, np.arange(len(self.truth) + 1)).tolist()
        return bounds

    @cached_property
    def sets(self) -> list[frozenset[str]]:
        """Names that may match each query's results: its keys, plus the blank strings that are never ids."""
        if self.keys is self.truth.ids:
            return self.truth.id_sets
        return [BLANK_IDS.union(self.keys[low:high]) for low, high in pairwise(self.bounds)]

    @cached_property
    def compiled(self) -> bytes | None:
        """Key index for the compiled module, or None if the module is missing or a key is not plain."""
        if self.keys is self.truth.ids:
            return self.truth.compiled
        index = native.index_of(self.truth.qids, self.keys, self.bounds)
        return None if index is None else index[-1]


def all_ids(truth: GroundTruth, labeller: str) -> GroundTruth:
    """Return the ground truth unchanged, or raise a `DataError` that lists alternatives that are not ids."""
    if truth.forms is None:
        return truth
    others: dict[str, list[int]] = {}
    for alternative, form in enumerate(truth.forms):
        if form is not None:
            others.setdefault(kind_of(form), []).append(alternative)
    faults = Faults()
    for other, alternatives in others.items():
        first = alternatives[0]
        more = f" (1 of {len(alternatives):,} such alternatives)" if len(alternatives) > 1 else ""
        what = f"the {labeller} labeller needs alternatives that are ids, but {display(truth.ids[first])}"
        way = f"choose another labeller, such as {READER[other]}"
        faults.add(query_of(truth, first), f"{what} is {ONE[other]}{more}; {way}")
    faults.stop(DataError)
    return truth


def query_of(truth: GroundTruth, alternative: int) -> str:
    """Return the name that messages use for an alternative's query."""
    return f"query {truth.qids[int(truth.query_of[alternative])]!r}"


def matches_of(
    truth: GroundTruth, query: Ints, keys: list[str], pair: Ints, alternative: Ints, **parts: Ints
) -> Matches:
    """Build a table in which result `keys[p]` of `query[p]` hits `alternative[i]` for each p = `pair[i]`."""
    order = np.lexsort((alternative, pair))
    pair, alternative = pair[order], alternative[order]
    hitting, owner = np.unique(pair, return_inverse=True)
    hitting_keys = [keys[place] for place in hitting.tolist()]
    return Matches(
        truth,
        keys=hitting_keys,
        queries=query[hitting],
        targets=np.arange(len(hitting_keys)),
        starts=starts_of(owner, len(hitting_keys)),
        alternatives=alternative,
        **{name: part[order] for name, part in parts.items()},
    )


def starts_of(owner: Ints, size: int) -> Ints:
    """Return the size + 1 offsets at which each owner's rows begin. Rows must be sorted by owner."""
    return np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=size)))).astype(np.int64)


def spread(target: Ints, starts: Ints, alternatives: Ints) -> tuple[Ints, Ints]:
    """Return all alternatives of each target as (row number, alternative)."""
    counts = (starts[1:] - starts[:-1])[target]
    row = np.repeat(np.arange(len(target)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, alternatives[np.repeat(starts[:-1][target], counts) + within]


def pairs_of(truth: GroundTruth, query: Ints) -> tuple[Ints, Ints]:
    """Pair every result with every alternative of its `query`. Return (result, alternative)."""
    return spread(query, starts_of(truth.query_of, len(truth)), np.arange(len(truth.ids)))


class Cached(dict[Key, Value]):
    """A cache for a function that is called once per key."""

    def __init__(self, function: Callable[[Key], Value], values: Mapping[Key, Value] = MappingProxyType({})) -> None:
        super().__init__(values)
        self.function = function

    def __missing__(self, key: Key) -> Value:
        value = self[key] = self.function(key)
        return value


def first_hits(alternative: Ints, size: int) -> Bools:
    """Mark rows that are repeats because an earlier row has the same alternative."""
    # Assigning backwards leaves the first row of each alternative.
    position = np.arange(len(alternative))
    first = np.zeros(size, dtype=np.int64)
    first[alternative[::-1]] = position[::-1]
    return np.asarray(first[alternative] != position)
