"""Judgments and results from files and tables with one judgment or result per row.

Readers collect rows into ground truth and rankings, or stream them as columns.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults, listed
from groupgt.formats.names import without_endings
from groupgt.formats.source import Record, Source
from groupgt.model.ground_truth import SHAPES, GroundTruth, Shape
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Lines, Lists, Remote, Run
from groupgt.model.validity import shown
from groupgt.runtime import pl

# Query, group, document, grade.
Judgment = tuple[str, str, str, float]
# Query, ids, scores.
Ranking = tuple[str, list[str], list[float]]
# The call of each result, by query.
Calls = Mapping[str, Sequence[int]]


def gather(
    rows: Iterable[Judgment],
    policy: Policy,
    *,
    texts: dict[str, str] | None = None,
    qids: Iterable[str] = (),
    shape: Shape = "subtopics",
) -> GroundTruth:
    """Build ground truth from rows; rows with the same query and group form a group.

    Names that equal the group number are dropped. The queries `qids` are included even if they have no rows. Rows with
    group names have the shape `subtopics`; if the shape is `flat`, each document is its own group.
    """
    queries: dict[str, dict[str, list[Any]]] = {qid: {} for qid in qids}
    for qid, label, document, grade in rows:
        alternative: Any = document if grade == 1 else {"id": document, "grade": grade}
        labelled = queries.setdefault(qid, {})
        labelled.setdefault(str(len(labelled) + 1) if shape == "flat" else label, []).append(alternative)
    groups = [
        [
            alternatives if label == str(number) else {"alternatives": alternatives, "name": label}
            for number, (label, alternatives) in enumerate(labelled.items(), 1)
        ]
        for labelled in queries.values()
    ]
    named = [texts.get(qid) for qid in queries] if texts else None
    return replace(GroundTruth.from_rows(list(queries), groups, policy, texts=named), shape=shape)


# The key of the shape of ground truth, for formats that do not imply it.
SHAPE = "gt_shape"
# The keys of rows that do not become columns.
TRUTH_KEYS = ("qid", "retrieval_gt", "query", SHAPE, "declared", "excluded_ids", "nonrelevant")


def truth_of_rows(
    rows: Sequence[Record], policy: Policy, faults: Faults, place: Callable[[int], str] | None = None
) -> GroundTruth:
    """Build ground truth from rows with the keys of a JSON Lines file; raises `DataError` with `faults` and others."""
    # Rows share few key sequences; keys are in order of first appearance.
    keys = tuple(dict.fromkeys(chain.from_iterable(dict.fromkeys(map(tuple, rows)))))
    columns: dict[str, list[Any]] = {key: [row.get(key) for row in rows] for key in keys}
    texts = [None if text is None else str(text) for text in columns.get("query", ())]
    try:
        truth = GroundTruth.from_rows(
            columns.get("qid", []),
            columns.get("retrieval_gt", []),
            policy,
            place=place,
            texts=texts if any(text is not None for text in texts) else None,
            columns={key: column for key, column in columns.items() if key not in TRUTH_KEYS},
            excluded=columns.get("excluded_ids"),
        )
    except DataError as error:
        faults.merge(error)
    faults.stop()
    return replace(truth, keys=keys)


def shape_of(cells: Iterable[Any], default: Shape, title: object) -> Shape:
    """Return the shape given in rows, or else `default`. Raises `DataError` if the shape is invalid or not unique."""
    named: list[Any] = list(dict.fromkeys(cell for cell in cells if cell not in (None, "")))
    shape: Shape = named[0] if named else default
    if len(named) > 1 or shape not in SHAPES:
        raise DataError(f"{title}: expected {listed(SHAPES)} as {SHAPE}, the same in all rows, found {shown(named)}")
    return shape


def number_text(value: float) -> str:
    """Format a number so that it reads back as the same double.

    >>> number_text(2.0), number_text(1234567.25)
    ('2', '1234567.25')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines with line feeds as line endings."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


BLOCK = 1 << 14


def run_in(source: Source, contents: Lists | Columns | Lines | Remote) -> Run:
    """Return the run in a file, named after the file.

    >>> from pathlib import Path
    >>> run_in(Source(Path("runs/bm25.v2.trec.gz")), Lists({})).name
    'bm25.v2'
    """
    return Run(contents, name=without_endings(source.path.name), source=str(source.path))


class RunBuilder:
    """Collects results by query as rows are read, together with their errors; results are ordered by score."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.ids: dict[str, list[str]] = {}
        self.scores: dict[str, list[float]] = {}
        self.lengths: dict[str, dict[str, list[int | None]]] = {}
        self.fields: dict[str, dict[str, list[Any]]] = {}

    def add(
        self,
        qid: str,
        document: str,
        score: float,
        lengths: Mapping[str, int | None] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """Add one result, with its lengths by unit and its fields by name."""
        if qid not in self.ids:
            self.ids[qid], self.scores[qid] = [], []
        self.ids[qid].append(document)
        self.scores[qid].append(score)
        for unit, length in (lengths or {}).items():
            self.lengths.setdefault(unit, {}).setdefault(qid, []).append(length)
        for name, cell in (fields or {}).items():
            self.fields.setdefault(name, {}).setdefault(qid, []).append(cell)

    def add_ranking(
        self,
        qid: str,
        ids: Iterable[str],
        scores: Iterable[float] | None = None,
        lengths: Mapping[str, Iterable[int | None]] | None = None,
        fields: Mapping[str, Iterable[Any]] | None = None,
    ) -> None:
        """Add results for a query in the given order."""
        self.ids.setdefault(qid, []).extend(ids)
        if scores is not None:
            self.scores.setdefault(qid, []).extend(scores)
        for kept, columns in ((self.lengths, lengths), (self.fields, fields)):
            for name, cells in (columns or {}).items():
                kept.setdefault(name, {}).setdefault(qid, []).extend(cells)

    @property
    def lists(self) -> Lists:
        """All results that were added; raises `DataError` with every error."""
        self.faults.stop()
        fields = {name: lambda cells=cells: cells for name, cells in self.fields.items()}  # bound now
        return Lists(self.ids, self.scores or None, self.lengths, fields)

    def run(self, source: Source) -> Run:
        """Return all results as a run; raises `DataError` with every error."""
        return run_in(source, self.lists)


def checked_columns(
    rows: Callable[[Faults], Iterator[tuple[Any, ...]]], schema: Mapping[str, type[pl.DataType]], title: str
) -> Run:
    """Stream results as columns while Python parses them one by one; raises `DataError` with every invalid row.

    Each call of `rows` starts from the beginning.
    """
    from polars.io.plugins import register_io_source

    faults = Faults()
    deque(rows(faults), maxlen=0)
    faults.stop()

    def batches(
        names: list[str] | None, condition: pl.Expr | None, limit: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        left = islice(rows(Faults()), limit)
        while block := list(islice(left, BLOCK)):
            frame = pl.DataFrame(block, schema=dict(schema), orient="row")
            frame = frame if names is None else frame.select(names)
            yield frame if condition is None else frame.filter(condition)

    def recheck() -> Run:
        raise DataError(f"{title}: the results changed while they were being read")

    frame = register_io_source(batches, schema=dict(schema))
    return Run(Columns(frame, recheck, ids_checked=True), name=without_endings(Path(title).name), source=title)


def order_fault(
    qid: str, ids: Sequence[str], scores: Sequence[float], calls: Sequence[int] | None = None
) -> str | None:
    """Explain why sorting by score within each call would change the result order; returns None if it would not."""
    if all(map(operator.gt, scores, islice(scores, 1, None))):
        return None
    for rank, (before, after) in enumerate(pairwise(scores)):
        if calls is not None and calls[rank] < calls[rank + 1]:
            continue
        if before < after or (before == after and ids[rank] < ids[rank + 1]):
            return (
                f"query {qid!r}: {ids[rank]!r} is ranked before {ids[rank + 1]!r}, but their scores "
                f"({before!r}, {after!r}) or, where they are equal, their ids give another order; "
                "write jsonl or parquet, which keep the order"
            )
    return None
