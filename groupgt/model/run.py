"""Stores the results of one system as lists, columns, lines or a frame on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

from groupgt.errors import DataError, printable, refuse
from groupgt.model.ranking import by_rank
from groupgt.model.validity import finite_number, id_text
from groupgt.model.values import CALLS, ORIGINAL_SCORE, RANK, SCORE, TEXT, Unsplit, unnamed
from groupgt.records import record
from groupgt.runtime import pl

# A result in a TREC file: qid Q0 doc rank score tag.
TREC_COLUMNS = 6


@record
class Lists:
    """Results in memory: `rankings` maps each query to its ids, best first, in any shape that `Run.of` accepts.

    `scores` and `lengths`, by unit, are parallel to the ids; scores determine the order. `fields` contains functions
    that read the `text`, `parent` or `span` of each result on demand, or the `score` of results that are already in
    order.
    """

    rankings: Mapping[Any, Any]
    scores: Mapping[str, Sequence[float]] | None = None
    lengths: Mapping[str, Mapping[str, Sequence[int | None]]] = field(default_factory=dict)
    fields: Mapping[str, Callable[[], Mapping[str, Sequence[Any]]]] = field(default_factory=dict)


@record
class Columns:
    """Results as a lazy frame with text columns `qid` and `doc` and a float column `score`; higher scores rank first.

    Optional columns are `tokens` and `chars` (lengths), `text`, `parent`, `start`, `end`, and the `rank` from a file.
    If there are nulls, non-finite scores or, unless `ids_checked`, invalid ids, `recheck` reads the source again with
    the slow reader. `guard` runs a polars step and converts exceptions to `DataError`. `tie` breaks ties.
    """

    frame: pl.LazyFrame
    recheck: Callable[[], Run]
    guard: Callable[[Callable[[], Any]], Any] = lambda read: read()
    ids_checked: bool = False
    tie: str = "doc"
    in_memory: bool = False

    @cached_property
    def checked(self) -> Run:
        """Rankings read from a suspicious source by the slow reader. Raises `DataError` if rankings are invalid."""
        return self.recheck()


class Block(NamedTuple):
    """The lines of one query, with their offsets in the file, their number, and any problems in them."""

    begin: int
    end: int
    lines: int
    repeats: bool
    contradicted: bool
    unordered: bool


@record
class Lines:
    """Results as lines of a TREC file, for the compiled module. `part` returns the bytes between two offsets.

    `read` converts these bytes to columns; `recheck` uses the slow reader, the only reader for small files. The
    module fills in `blocks` by query, in file order, unless lines of a query are scattered.
    """

    part: Callable[[int, int], bytes | memoryview]
    begin: int
    end: int
    recheck: Callable[[], Run]
    read: Callable[[], Run] | None = None
    blocks: dict[str, Block] = field(default_factory=dict)

    @property
    def in_memory(self) -> bool:
        """True for a small file."""
        return self.read is None

    @cached_property
    def columns(self) -> Run:
        """Results as columns, or as lists if the file is small or the slow reader was needed."""
        return self.checked if self.read is None else self.read()

    def column(self, block: Block, at: int, most: int | None = None) -> list[bytes]:
        """Return one column of a query's lines, or of only the first of these lines."""
        size = block.lines if most is None else min(block.lines, most)
        rows = bytes(self.part(block.begin, block.end)).split(b"\n")
        words = b"\n".join(rows[:size]).split()
        if len(rows) <= block.lines + 1 and len(words) == TREC_COLUMNS * size:
            return words[at::TREC_COLUMNS]
        # Blank lines, or lines with more columns.
        return [cells[at] for cells in islice(filter(None, map(bytes.split, rows)), size)]

    @cached_property
    def checked(self) -> Run:
        """Results read from suspicious lines by the slow reader. Raises `DataError` if results are invalid."""
        return self.recheck()


@dataclass(frozen=True, eq=False, repr=False)
class Remote:
    """Results in a `frame` on a cluster. `groupgt.engines.cluster` reads the results once ground truth is known."""

    frame: Any
    columns: Mapping[str, str] = field(default_factory=dict)

    def carrier_of(self, run: Run) -> Any:
        """Return the operations on the results."""
        raise DataError(f"{run.title}: results on a cluster can only be read together with ground truth")

    def of_query(self, run: Run, qid: str, policy: Any) -> Run:
        """Collect the results of one query."""
        raise NotImplementedError


@dataclass(frozen=True)
class Traces:
    """The traces that a run was read from, with `texts` of traces without an id, search times (`ms`), and `searches`.

    For each query, `origins` contains the ids of its trace, the first span and the last model response (or None).
    `left_out` counts traces without a search. Once traces are matched with ground truth, `count` counts the traces
    without a match, and `by_id` and `by_text` count the traces that match a query. `reranked` counts the traces whose
    results come from a reranker.
    """

    texts: Mapping[str, Sequence[str]]
    ms: Mapping[str, float]
    left_out: int = 0
    count: int = 0
    by_id: int = 0
    by_text: int = 0
    searches: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    reranked: int = 0
    origins: Mapping[str, tuple[str, str, str | None]] = field(default_factory=dict)


class Trials(tuple[Any, ...]):
    """The results of one system over several trials, with one run, in any readable form, for each trial."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Results of one system for many queries, best first, stored as lists, columns, lines, or a frame on a cluster.

    `groupgt.engines.carriers.carrier_of` returns the operations for each kind. If a labeller renamed the results, the
    run keeps the `original`; `excluded` counts the results that the ground truth excludes, and `comments` the lines of
    the file that begin with `#` and are not results. `texts` contains the query texts that came with the results.
    Results without ids (`has_ids` is False) can only be matched by their texts. If the scores are `ascending`
    (distances), the contents store negated scores, so that the best result still has the highest one. If the system was
    queried several times, `trials` contains a run for each trial, and the contents are those of the first run.
    `is_build` is True if the system was rebuilt for this run. `costs` contains the known costs of queries, in any unit.
    `unsplit` contains texts that were read as one id although a list of ids was expected, with their locations.

    >>> Run.of({"q1": ["a", "b"]}).rankings["q1"]
    ['a', 'b']
    """

    contents: Lists | Columns | Lines | Remote
    name: str = field(default="", kw_only=True)
    source: str = field(default="", kw_only=True)
    original: Run | None = field(default=None, kw_only=True)
    excluded: int = field(default=0, kw_only=True)
    ascending: bool = field(default=False, kw_only=True)
    traces: Traces | None = field(default=None, kw_only=True)
    comments: int = field(default=0, kw_only=True)
    texts: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    has_ids: bool = field(default=True, kw_only=True)
    trials: tuple[Run, ...] = field(default=(), kw_only=True)
    costs: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    is_build: bool = field(default=False, kw_only=True)
    unsplit: Unsplit = field(default_factory=dict, kw_only=True)

    @classmethod
    def of_trials(cls, runs: Sequence[Run]) -> Run:
        """Combine several trials of one system into a run. A single run is returned unchanged."""
        if any(run.trials for run in runs):
            raise DataError(f"{runs[0].title}: expected one run for each trial, found a run with trials of its own")
        return replace(runs[0], trials=tuple(runs)) if len(runs) > 1 else runs[0]

    @property
    def each(self) -> tuple[Run, ...]:
        """The runs of all trials, or this run alone."""
        return self.trials or (self,)

    @classmethod
    def of(
        cls, rankings: Mapping[Any, Any], name: str = "", *, scores: Mapping[str, Sequence[float]] | None = None
    ) -> Run:
        """Wrap `{qid: ranking}`. A ranking is a list of ids, (id, score) pairs or documents, or `{id: score}`.

        If rankings are lists of ids, `scores` may contain scores for each query, which then determine the order.
        """
        if not isinstance(rankings, Mapping):
            kind = type(rankings).__name__
            raise DataError(
                f"results: expected {{query id: ranking}}, a path, a frame or a list of trials, found {kind}"
            )
        if by_rank(first := next(iter(rankings.values()), None)) is not first:
            rankings = {qid: by_rank(ranking) for qid, ranking in rankings.items()}
        if scores is None and (columns := _documents_in(rankings)) is not None:
            ids = columns.pop("id", None)
            numbered = {qid: unnamed(len(texts)) for qid, texts in columns[TEXT].items()} if ids is None else ids
            fields: dict[str, Any] = {field: partial(dict, column) for field, column in columns.items()}
            return cls(Lists(numbered, fields=fields), name=name, has_ids=ids is not None)
        if scores is None:
            return cls(Lists(rankings), name=name)
        refuse(
            (f"scores of query {qid!r}", "expected a finite number for each of its results")
            for qid, numbers in scores.items()
            if qid not in rankings or len(numbers) != len(rankings[qid]) or None in map(finite_number, numbers)
        )
        # Rankings are also looked up by the text of their query.
        return cls(Lists(rankings, {id_text(qid) or qid: numbers for qid, numbers in scores.items()}), name=name)

    @property
    def rankings(self) -> Mapping[Any, Any]:
        """Rankings by query, or nothing if the results are not in memory."""
        return self.lists.rankings if self.in_memory else {}

    @property
    def lists(self) -> Lists:
        """Contents of a run in memory. Raises `DataError` for any other run."""
        contents = self.loaded.contents
        if not isinstance(contents, Lists):
            raise DataError(f"{self.title}: these results are not lists")
        return contents

    @property
    def loaded(self) -> Run:
        """This run, with its lines read as columns or lists."""
        if not isinstance(self.contents, Lines):
            return self
        columns = self.contents.columns
        return replace(self, contents=columns.contents, comments=columns.comments)

    @property
    def as_columns(self) -> Columns:
        """Contents as columns of ids and scores. Without scores, a result's score is minus its position."""
        if isinstance(self.contents, Columns):
            return self.contents
        if isinstance(self.contents, Lines):
            return self.loaded.as_columns
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
        """True if results are in memory and have only ids, scores and calls."""
        contents = self.contents
        if isinstance(contents, Lines):
            return contents.in_memory
        return (
            isinstance(contents, Lists)
            and contents.lengths.keys() <= {CALLS}
            and contents.fields.keys() <= {ORIGINAL_SCORE, SCORE, RANK}
        )

    @property
    def sign(self) -> int:
        """The sign of stored scores relative to the original scores (−1 if the original scores are ascending)."""
        return -1 if self.ascending else 1

    @property
    def in_memory(self) -> bool:
        """True if the contents are lists, or lines that are read as lists."""
        return self.contents.in_memory if isinstance(self.contents, Lines) else isinstance(self.contents, Lists)

    @property
    def is_remote(self) -> bool:
        """True if the contents stay on a cluster."""
        return isinstance(self.contents, Remote)

    @property
    def title(self) -> str:
        """Name for messages: the source if there is one, otherwise the run name."""
        return self.source or self.name or "results"

    @property
    def resolved(self) -> Run:
        """This run, or the slow reader's output if the slow reader was needed."""
        run = self
        while isinstance(run.contents, (Columns, Lines)) and "checked" in run.contents.__dict__:
            checked = run.contents.checked
            run = replace(run, contents=checked.contents, comments=checked.comments or run.comments)
        return run

    @property
    def by_original_ids(self) -> Run:
        """This run with the original ids of results that a labeller renamed."""
        if self.original is None:
            return self
        return replace(self.original, trials=tuple(trial.by_original_ids for trial in self.trials))

    def __len__(self) -> int:
        return len(self.rankings)

    def __bool__(self) -> bool:
        """Return True, even if no rankings are in memory."""
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.rankings)

    def __repr__(self) -> str:
        contents = {Columns: "columns, not read yet", Lines: "lines, not read yet", Remote: "on a cluster"}
        what = contents.get(type(self.contents)) or f"{len(self):,} queries"
        return printable(f"Run({self.name or self.source or 'results'}: {what})")


def _documents_in(rankings: Mapping[Any, Any]) -> dict[str, dict[str, list[Any]]] | None:
    """Return columns from LangChain, LlamaIndex or Haystack documents, or None if the first result is not one."""
    first = next((ranking[0] for ranking in rankings.values() if isinstance(ranking, (list, tuple)) and ranking), "")
    if isinstance(first, (str, int, Mapping)):
        return None
    from groupgt.model.documents import columns_of, result_of

    return None if result_of(first) is None else columns_of(rankings)
