"""Collects results from tables with one result per row into rankings, or streams them as columns."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise, repeat
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults
from groupgt.formats.endings import without_endings
from groupgt.formats.source import Source
from groupgt.model.ranking import rank_keys
from groupgt.model.run import Columns, Lines, Lists, Remote, Run
from groupgt.runtime import pl

# Query, group, document, grade.
Judgment = tuple[str, str, str, float]
# Query, ids, and their scores, if they have any.
Ranking = tuple[str, list[str], list[float] | None]
# The call of each result, by query; if there are trials, by query and trial.
Calls = Mapping[Any, Sequence[int]]
# The trial of each ranking, or its build, by the name of the column that numbers them.
Trials = Mapping[str, Sequence[int]]
NO_TRIALS: Trials = {}
# A ranking, the calls of its results, and its trial.
Numbered = tuple[Ranking, Sequence[int], int | None]
# The lengths by unit, or the fields by name, of the results of a query.
Cells = Mapping[str, Iterable[Any]]
NO_CELLS: Cells = {}
# The key of the shape of ground truth, for formats that do not imply it.
SHAPE = "gt_shape"
BLOCK = 1 << 14


def number_text(value: float) -> str:
    """Format a number so that it reads back as the same double."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines with line feeds as line endings."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


def numbered(rankings: Iterable[Ranking], calls: Calls | None, trials: Trials) -> Iterator[Numbered]:
    """Yield each ranking to write, with the calls of its results and its trial number, if any."""
    for ranking, trial in zip(rankings, next(iter(trials.values()), repeat(None))):
        yield ranking, calls[ranking[0] if trial is None else (ranking[0], trial)] if calls else (), trial


def run_in(source: Source, contents: Lists | Columns | Lines | Remote) -> Run:
    """Return the run in a file, named after the file."""
    return Run(contents, name=without_endings(source.path.name), source=str(source.path))


class RunBuilder:
    """Collects results by query, with their errors, as rows are read, and orders them by score."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.faults = Faults() if faults is None else faults
        self.ids: dict[str, list[str]] = {}
        self.scores: dict[str, list[float]] = {}
        self.lengths: dict[str, dict[str, list[int | None]]] = {}
        self.fields: dict[str, dict[str, list[Any]]] = {}
        self.costs: dict[str, float] = {}

    def add(
        self,
        qid: str,
        document: str,
        score: float,
        lengths: Mapping[str, Any] = NO_CELLS,
        fields: Mapping[str, Any] = NO_CELLS,
    ) -> None:
        """Add one result, with its lengths by unit and its fields by name."""
        if qid not in self.ids:
            self.ids[qid], self.scores[qid] = [], []
        self.ids[qid].append(document)
        self.scores[qid].append(score)
        for unit, length in lengths.items():
            self.lengths.setdefault(unit, {}).setdefault(qid, []).append(length)
        for name, cell in fields.items():
            self.fields.setdefault(name, {}).setdefault(qid, []).append(cell)

    def add_ranking(
        self,
        qid: str,
        ids: Iterable[str],
        scores: Iterable[float] | None = None,
        lengths: Cells = NO_CELLS,
        fields: Cells = NO_CELLS,
    ) -> None:
        """Add results for a query in the given order."""
        self.ids.setdefault(qid, []).extend(ids)
        if scores is not None:
            self.scores.setdefault(qid, []).extend(scores)
        for kept, columns in ((self.lengths, lengths), (self.fields, fields)):
            for name, cells in columns.items():
                kept.setdefault(name, {}).setdefault(qid, []).extend(cells)

    @property
    def lists(self) -> Lists:
        """All results that were added. Raises `DataError` with every error."""
        self.faults.stop()
        fields = {name: lambda cells=cells: cells for name, cells in self.fields.items()}  # bound now
        return Lists(self.ids, self.scores or None, self.lengths, fields)

    def run(self, source: Source, *, by_text: bool = False, has_ids: bool = True) -> Run:
        """Return all results as a run, or raise `DataError` with every error. Query ids may be texts (`by_text`)."""
        texts = dict(zip(self.ids, self.ids)) if by_text else {}
        return replace(run_in(source, self.lists), costs=self.costs, texts=texts, has_ids=has_ids)


def streamed(rows: Callable[[Faults], Iterator[Any]], schema: Mapping[str, type[pl.DataType]], title: str) -> Run:
    """Stream results as columns. Each call of `rows` starts from the beginning and collects all invalid rows."""
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


def order_fault(qid: str, ids: Sequence[str], scores: Sequence[float], calls: Sequence[int] = ()) -> str | None:
    """Explain why sorting by score within each call would change the result order, or return None if it would not."""
    if all(map(operator.gt, scores, islice(scores, 1, None))):
        return None
    for rank, (before, after) in enumerate(pairwise(rank_keys(ids, scores))):
        if before < after and (not calls or calls[rank] >= calls[rank + 1]):
            what = f"query {qid!r}: {ids[rank]!r} is ranked before {ids[rank + 1]!r}, but their scores"
            why = f"({scores[rank]!r}, {scores[rank + 1]!r}) or, if they are equal, their ids give a different order"
            return f"{what} {why}; write jsonl or parquet, which keep the order"
    return None
