"""The results of one system, passed from readers to engines: lists, columns, lines, or a frame on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from groupgt.errors import DataError, Faults, printable
from groupgt.model.validity import finite_number, id_text
from groupgt.model.values import CALLS, ORIGINAL_SCORE
from groupgt.runtime import pl


@dataclass(frozen=True, eq=False)
class Lists:
    """Results in memory: `rankings` maps each query to its ids, best first, in any shape that `Run.of` takes.

    `scores`, if known, are parallel to the ids: they determine the order and the ties. `lengths` are parallel too, by
    unit (None if there is none), and so are `fields`: functions that read the `text`, `parent` or `span` of each result
    on demand.
    """

    rankings: Mapping[Any, Any]
    scores: Mapping[str, Sequence[float]] | None = None
    lengths: Mapping[str, Mapping[str, Sequence[int | None]]] = field(default_factory=dict)
    fields: Mapping[str, Callable[[], Mapping[str, Sequence[Any]]]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{len(self.rankings):,} queries"


@dataclass(frozen=True, eq=False)
class Columns:
    """Results as a lazy frame with `qid` and `doc` as text and `score` as a double, higher is better.

    Columns `tokens` and `chars`, if present, are the lengths of results; `text`, `parent`, `start` and `end` are
    further optional columns. If there is a null or a score that is not finite, `recheck` reads the same source again
    with the slow reader, and either reports each error with its location, or returns rankings. `guard` runs a polars
    step and converts its exceptions to a `DataError`. `ids_checked` means that all ids are valid; otherwise an invalid
    id also requires `recheck`. `tie` names the column that decides between equal scores.
    """

    frame: pl.LazyFrame
    recheck: Callable[[], Run]
    guard: Callable[[Callable[[], Any]], Any] = lambda read: read()
    ids_checked: bool = False
    tie: str = "doc"

    @cached_property
    def checked(self) -> Run:
        """The rankings that the slow reader found in a suspicious source; raises `DataError` if they are invalid."""
        return self.recheck()

    def __str__(self) -> str:
        return "columns, not read yet"


@dataclass(frozen=True, eq=False)
class Lines:
    """Results as the lines of a TREC file, for the compiled module: `part` returns the bytes between two offsets.

    Lines range from `begin` to `end`; `read` converts them to columns or lists. If a line may not be a valid result,
    `recheck` reads the file again with the slow reader, and either reports each error with its location, or returns
    rankings.
    """

    part: Callable[[int, int], bytes | memoryview]
    begin: int
    end: int
    read: Callable[[], Run]
    recheck: Callable[[], Run]

    @cached_property
    def columns(self) -> Run:
        """The results as columns, or as lists if the slow reader was needed."""
        return self.read()

    @cached_property
    def checked(self) -> Run:
        """The results that the slow reader found in suspicious lines; raises `DataError` if they are invalid."""
        return self.recheck()

    def __str__(self) -> str:
        return "lines, not read yet"


@dataclass(frozen=True, eq=False)
class Remote:
    """Results that stay on a cluster, in a frame that only its engine can read."""

    frame: Any

    def __str__(self) -> str:
        return "on a cluster"


@dataclass(frozen=True)
class Traces:
    """The traces from which a run was read, by query: texts of traces without an id, and search times in ms.

    `left_out` traces have no search. Of the other `count`, `by_id` and `by_text` belong to a query of the ground truth;
    these three are 0 until the run meets its ground truth.
    """

    texts: Mapping[str, Sequence[str]]
    ms: Mapping[str, float]
    left_out: int = 0
    count: int = 0
    by_id: int = 0
    by_text: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The results of one system for many queries, best first: lists, columns, lines, or a frame on a cluster.

    `groupgt.engines.carriers.carrier_of` returns the operations of each kind. A run whose results were renamed by a
    labeller keeps the `original`; `excluded` counts results that the ground truth excludes.

    >>> Run.of({"q1": ["a", "b"]}).rankings["q1"]
    ['a', 'b']
    """

    contents: Lists | Columns | Lines | Remote
    name: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)
    original: Run | None = field(default=None, kw_only=True)
    excluded: int = field(default=0, kw_only=True)
    traces: Traces | None = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls, rankings: Mapping[Any, Any], name: str = "", *, scores: Mapping[str, Sequence[float]] | None = None
    ) -> Run:
        """Wraps `{qid: ranking}`; a ranking is a list of ids, a list of (id, score), or `{id: score}`.

        With lists of ids, `scores` contains the scores of each query, which determine the order.
        """
        if not isinstance(rankings, Mapping):
            kind = type(rankings).__name__
            raise DataError(f"results: expected {{query id: ranking}}, a path or a frame, found {kind}")
        faults = Faults()
        for qid, numbers in (scores or {}).items():
            if qid not in rankings or len(numbers) != len(rankings[qid]) or None in map(finite_number, numbers):
                faults.add(f"scores of query {qid!r}", "expected a finite number for each of its results")
        faults.stop(DataError)
        # Rankings are also looked up by the text of their query.
        by_text = None if scores is None else {id_text(qid) or qid: numbers for qid, numbers in scores.items()}
        return cls(Lists(rankings, by_text), name=name)

    @property
    def rankings(self) -> Mapping[Any, Any]:
        """The rankings by query; empty if results are not in memory."""
        return self.contents.rankings if isinstance(self.contents, Lists) else {}

    @property
    def lists(self) -> Lists:
        """The contents of a run in memory; raises `DataError` for any other."""
        if not isinstance(self.contents, Lists):
            raise DataError(f"{self.title}: these results are not lists")
        return self.contents

    @property
    def as_columns(self) -> Columns:
        """The contents as columns of ids and scores; without scores, a result's score is minus its position."""
        if isinstance(self.contents, Columns):
            return self.contents
        if isinstance(self.contents, Lines):
            return self.contents.columns.as_columns
        rankings, scores = self.lists.rankings, self.lists.scores
        if scores is None:
            scores = {qid: [-float(place) for place in range(len(ids))] for qid, ids in rankings.items()}
        columns = {
            "qid": pl.Series(list(rankings), dtype=pl.String),
            "doc": pl.Series(list(rankings.values()), dtype=pl.List(pl.String)),
            "score": pl.Series([list(scores[qid]) for qid in rankings], dtype=pl.List(pl.Float64)),
        }
        frame = pl.DataFrame(columns).lazy().filter(pl.col("doc").list.len() > 0).explode("doc", "score")
        return Columns(frame, lambda: self, ids_checked=True)

    @property
    def is_plain(self) -> bool:
        """Whether results are in memory and have only ids, scores and calls."""
        contents = self.contents
        return (
            isinstance(contents, Lists)
            and contents.lengths.keys() <= {CALLS}
            and contents.fields.keys() <= {ORIGINAL_SCORE}
        )

    @property
    def in_memory(self) -> bool:
        """Whether the contents are lists."""
        return isinstance(self.contents, Lists)

    @property
    def is_remote(self) -> bool:
        """Whether the contents stay on a cluster."""
        return isinstance(self.contents, Remote)

    @property
    def title(self) -> str:
        """The name used in messages: its source if known, else its name."""
        return self.source or self.name or "results"

    @property
    def resolved(self) -> Run:
        """The run itself, or the output of the slow reader if it was needed."""
        run = self
        while isinstance(run.contents, (Columns, Lines)) and "checked" in run.contents.__dict__:
            run = replace(run, contents=run.contents.checked.contents)
        return run

    @property
    def by_original_ids(self) -> Run:
        """The run with the original ids of its results, before a labeller renamed them."""
        return self if self.original is None else self.original

    def __len__(self) -> int:
        return len(self.rankings)

    def __bool__(self) -> bool:
        """Always True, even if no rankings are in memory."""
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.rankings)

    def __repr__(self) -> str:
        return printable(f"Run({self.name or self.source or 'results'}: {self.contents})")
