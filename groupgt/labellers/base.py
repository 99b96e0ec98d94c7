"""What a labeller is: what decides which result hits which alternative.

An engine hands it ground truth and results, and gets a table of matches; the helpers below make and read such tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Protocol

import numpy as np

from groupgt import native
from groupgt.errors import DataError, Faults, display
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Ints
from groupgt.model.validity import BLANK_IDS
from groupgt.model.values import Chunks, kind_of
from groupgt.options import FILE, Rule, options_of


class Labeller:
    """A labeller has two halves: `match` is a join that any engine can do, `settle` reduces its rows in rank order.

    A subclass says what differs. `column` names what results may carry and be named by instead of their ids: `parent`
    or `span`. `reads_results` says whether `match` looks at results; they are read for it beforehand, else it gets
    None. `str(labeller)` is what stands below tables: `description` words the options of `described`, any other one
    that is not at its default follows by its name. Files do not, nor what `decides_nothing`.
    """

    name = ""
    options: Any = None
    described: frozenset[str] = frozenset()
    decides_nothing: frozenset[str] = frozenset()
    column = ""
    reads_results = True

    def truth(self, truth: GroundTruth) -> GroundTruth:
        """The ground truth as this labeller reads it; raises `DataError` for alternatives it can do nothing with."""
        return truth

    def names(self, ids: Sequence[str]) -> Sequence[str]:
        """What results are called from here on, from their ids."""
        return ids

    @property
    def renames(self) -> bool:
        """Whether `names` or `column` change what results are called."""
        return bool(self.column)

    def unknown_ids(self, ids: Sequence[str]) -> list[str]:
        """Which results, by their own ids, it can say nothing about."""
        return []

    @property
    def unknown_is_fault(self) -> bool:
        """Whether an unknown id is surely a fault; else only a ranking of nothing but unknown ones is doubtful."""
        return True

    def texts(self) -> Mapping[str, str]:
        """The texts it knows, by id."""
        return {}

    def unreachable(self, truth: GroundTruth) -> tuple[Ints, str]:
        """Alternatives that no result can hit, of a ground truth as it reads it, and what to change."""
        return np.zeros(0, dtype=np.int64), ""

    def read(self, truth: GroundTruth) -> GroundTruth:
        """What `truth` makes of a ground truth, made once: for many runs it is the same."""
        return truth.judgments.once(("read", self), lambda: self.truth(truth))

    def match(self, truth: GroundTruth, results: Results) -> Matches:
        """The table of results and what they hit."""
        raise NotImplementedError

    def settle(
        self, truth: GroundTruth, matches: Matches, query: Ints, rank: Ints, target: Ints
    ) -> tuple[Ints, Ints, Ints, Bools]:
        """Rows sorted by query and rank → (query, rank, alternative, repeat) in the normal form of `Hits`."""
        row, alternative = spread(target, matches.starts, matches.alternatives)
        return query[row], rank[row], alternative, first_hits(alternative, len(truth.ids))

    def description(self) -> str:
        """How it matches, in words."""
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
    """The distinct results of the queries that have ground truth, sorted by query, then rank.

    `names` are what they are called for the labeller, `carried_texts` what they carry.
    """

    queries: Ints
    names: list[str]
    carried_texts: list[str | None]

    def pairs(self) -> tuple[Ints, list[str]]:
        """Each query with its distinct results."""
        return self.queries, self.names

    def texts(self) -> list[str | None]:
        """The text that each of these results carries; None if it carries none."""
        return self.carried_texts


# A file of texts, places, vectors or names, or what such a file holds; none where it is empty.
Table = Annotated[
    Any,
    Rule(
        "a path or a mapping",
        lambda value: isinstance(value, (str, os.PathLike, Mapping, Chunks)),
        {"type": ["string", "object"]},
    ),
    FILE,
]


class Tables(Protocol):
    """What a labeller is built from besides its options: files and functions, read by who knows how to."""

    def texts(self, given: Any, option: str) -> Mapping[str, str]:
        """{id: text} of a corpus: a path, a mapping, or (where nothing is given) the corpus at hand."""
        ...

    def chunks(self, given: Any, option: str) -> Chunks | None:
        """The places of chunks, of a chunk table or of the corpus at hand; None if there is neither."""
        ...

    def parents(self, given: Any, column: str) -> Mapping[str, str]:
        """{id: its parent} of a file or a mapping."""
        ...

    def vectors(self, given: Any, option: str) -> Mapping[str, Any]:
        """{id: its vector} of a file or a mapping."""
        ...

    def encoder(self, model: str) -> Callable[[list[str]], Any]:
        """What makes vectors of texts."""
        ...

    def function(self, target: Any) -> Callable[..., Any]:
        """A function of the user's; refused where code is not allowed."""
        ...

    def verdicts(self, judge: str, *, vouched: bool) -> Any:
        """What a judge has said, kept for those that ask it again; from run to run if it is `vouched` for."""
        ...


@dataclass(frozen=True, eq=False)
class Matches:
    """What results hit, as a table sorted by query: the result `keys[i]` of query `queries[i]` has `targets[i]`.

    A key that stands twice in a query counts where it stands first. What a target is, only the labeller's `settle`
    knows: for most it is a row of the lists that `starts` cuts `alternatives` into, with the part of the alternative
    that it covers, from `low` to `high`, where alternatives are places.
    """

    truth: GroundTruth
    keys: list[str]
    queries: Ints
    targets: Ints
    starts: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    alternatives: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    low: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    high: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @cached_property
    def bounds(self) -> list[int]:
        """Where the keys of each query begin, and where the last end."""
        bounds: list[int] = np.searchsorted(self.queries, np.arange(len(self.truth) + 1)).tolist()
        return bounds

    @cached_property
    def sets(self) -> list[frozenset[str]]:
        """What the results of each query are probed with: its keys, and the blanks that are no ids."""
        if self.keys is self.truth.ids:
            return self.truth.id_sets
        return [BLANK_IDS.union(self.keys[low:high]) for low, high in pairwise(self.bounds)]

    @cached_property
    def compiled(self) -> bytes | None:
        """The keys as an index for the compiled module; None without it, or if one is not plain."""
        if self.keys is self.truth.ids:
            return self.truth.compiled
        return native.index_of(self.truth.qids, self.keys, self.bounds)


def all_ids(truth: GroundTruth, labeller: str) -> GroundTruth:
    """The ground truth itself; raises `DataError` that names the alternatives that are no ids."""
    others: dict[str, list[int]] = {}
    for alternative, form in enumerate(truth.forms or ()):
        if form is not None:
            others.setdefault(kind_of(form), []).append(alternative)
    faults = Faults()
    for other, alternatives in others.items():
        first = alternatives[0]
        more = f", as are {len(alternatives) - 1:,} more" if len(alternatives) > 1 else ""
        what = f"the labeller {labeller} reads alternatives that are ids, and {display(truth.ids[first])}"
        way = f"choose another labeller, such as {READER[other]}"
        faults.add(query_of(truth, first), f"{what} is {ONE[other]}{more}; {way}")
    faults.stop(DataError)
    return truth


# What messages call an alternative of a kind, and the labeller that reads it.
ONE = {"span": "a span", "text": "a text"}
READER = {"span": "spans", "text": "text"}


def query_of(truth: GroundTruth, alternative: int) -> str:
    """How a message names the query of an alternative."""
    return f"query {truth.qids[int(truth.query_of[alternative])]!r}"


def matches_of(
    truth: GroundTruth,
    query: Ints,
    keys: list[str],
    pair: Ints,
    alternative: Ints,
    **parts: Ints,
) -> Matches:
    """The table where result `keys[p]` of `query[p]` hits `alternative[i]` for each p = `pair[i]`; others hit nothing.

    Results are sorted by query. `parts` are `low` and `high`, if they are known.
    """
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
    """The size + 1 offsets at which the rows of each owner begin, rows being sorted by owner."""
    return np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=size)))).astype(np.int64)


def spread(target: Ints, starts: Ints, alternatives: Ints) -> tuple[Ints, Ints]:
    """For each target all its alternatives: (the number of its row, the alternative)."""
    counts = (starts[1:] - starts[:-1])[target]
    row = np.repeat(np.arange(len(target)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, alternatives[np.repeat(starts[:-1][target], counts) + within]


def pairs_of(truth: GroundTruth, query: Ints) -> tuple[Ints, Ints]:
    """Every result, whose queries these are, beside every alternative of its query: (result, alternative)."""
    return spread(query, starts_of(truth.query_of, len(truth)), np.arange(len(truth.ids)))


def first_hits(alternative: Ints, size: int) -> Bools:
    """Whether a row is a repeat: an earlier one has its alternative."""
    # Assigning backwards leaves the first row of each alternative.
    position = np.arange(len(alternative))
    first = np.zeros(size, dtype=np.int64)
    first[alternative[::-1]] = position[::-1]
    repeat: Bools = first[alternative] != position
    return repeat
