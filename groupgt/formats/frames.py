"""Frames of polars, pandas and Arrow, and parquet files: the same columns, whoever holds them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.errors import DataError, Faults, display, near_names
from groupgt.formats import spark
from groupgt.formats.judgments import Judgment, gather
from groupgt.formats.parquet import check_pages
from groupgt.formats.rankings import CONTENTS, DOCUMENT, FIELDS, NESTED, SCORES, length_of, run_name
from groupgt.formats.source import Source
from groupgt.formats.validity import Guard, guarded, refuse_rows
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.lengths import UNITS
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Lists, Run
from groupgt.model.validity import LONGEST_ID, finite_number, id_fault, is_grade, plain
from groupgt.runtime import pl

NESTED_LENGTHS = {unit: f"retrieved_{unit}" for unit in UNITS}


def is_frame(value: Any) -> bool:
    """Whether a value is a frame of polars, pandas, Arrow or Spark; none of them is imported for asking."""
    return type(value).__module__.split(".")[0] in ("polars", "pandas", "pyarrow", "pyspark")


def lazy(value: Any) -> pl.LazyFrame:
    """Any frame as a lazy one."""
    if isinstance(value, pl.LazyFrame):
        return value
    if isinstance(value, pl.DataFrame):
        return value.lazy()
    if type(value).__module__.startswith("pandas"):
        # Column by column: pandas' own way to Arrow needs pyarrow.
        columns = {str(name): _cells(value[name].tolist()) for name in value.columns}
        return pl.DataFrame({name: pl.Series(cells, strict=False) for name, cells in columns.items()}).lazy()
    if spark.is_frame(value):
        return pl.DataFrame(value.toArrow()).lazy()
    if hasattr(value, "__arrow_c_stream__"):
        return pl.DataFrame(value).lazy()
    raise DataError(f"expected a frame of polars, pandas, Arrow or Spark, found {type(value).__name__}")


def _cells(given: list[Any]) -> list[Any]:
    """The cells of a column of pandas; what is missing among texts is None, which pandas calls NaN."""
    cells = [_plain_inside(cell) for cell in given]
    if any(isinstance(cell, str) for cell in cells):
        return [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]
    return cells


def _plain_inside(cell: Any) -> Any:
    """Lists for the arrays that pandas nests where parquet has lists."""
    cell = plain(cell)
    return [_plain_inside(each) for each in cell] if isinstance(cell, list) else cell


def _scan(source: Source) -> pl.LazyFrame:
    if not source.is_parquet:
        raise DataError(f"{source.path}: expected a parquet file, found something else; name another format")
    if source.is_pipe:
        raise DataError(f"{source.path}: parquet cannot be read from a pipe; save it as a file")
    check_pages(source.path)
    frame = pl.scan_parquet(source.path, glob=False)
    _guarded(source, frame.collect_schema)
    return frame


def names_of(source: Source) -> list[str]:
    """The columns of a parquet file."""
    names: list[str] = _scan(source).collect_schema().names()
    return names


def _guarded(source: Source, read: Callable[[], Any]) -> Any:
    """Runs a step of polars; what it says of a damaged file becomes a `DataError`."""
    return guarded(source.path, "the parquet file is damaged or cut off", read)


def read_parts(sources: Sequence[Source], title: str) -> Run:
    """One run of many parquet files, whose columns are alike."""
    for source in sources:
        check_pages(source.path)

    def guard(step: Callable[[], Any]) -> Any:
        return guarded(title, "a parquet file is damaged, cut off, or has other columns than the rest", step)

    return run_of(pl.scan_parquet([source.path for source in sources], glob=False), title, guard=guard)


def read_table(source: Source) -> pl.DataFrame:
    """A parquet file as it is."""
    frame = _scan(source)
    table: pl.DataFrame = _guarded(source, frame.collect)
    return table


def read_ground_truth(source: Source, policy: Policy) -> GroundTruth:
    """AutoRAG's `qa.parquet`: `qid`, `query`, `retrieval_gt`, other columns; or `qid, group, doc_id[, grade]` rows."""
    frame = _scan(source)
    return truth_of(_guarded(source, frame.collect).lazy(), policy, str(source.path))


def truth_of(value: Any, policy: Policy, title: str = "ground truth") -> GroundTruth:
    """Ground truth of a frame."""

    frame = lazy(value).collect()
    names = frame.columns
    if "qid" not in names or not ({"retrieval_gt"} <= set(names) or {"group", "doc_id"} <= set(names)):
        raise DataError(
            f"{title}: expected the columns qid and retrieval_gt, or qid, group and doc_id; found {', '.join(names)}"
        )

    def place(row: int) -> str:
        return f"{title}: row {row + 1}"

    if "retrieval_gt" not in names:
        return gather(_judgments(frame, title), policy)
    _refuse_odd_ids(frame, "qid", title)
    _refuse_odd_ids(frame, "retrieval_gt", title)
    texts = None if "query" not in names else [None if t is None else str(t) for t in frame["query"].to_list()]
    others = [name for name in names if name not in ("qid", "query", "retrieval_gt")]
    return GroundTruth.from_rows(
        _texts(frame, "qid", title).to_list(),
        frame["retrieval_gt"].to_list(),
        policy,
        place=place,
        texts=texts,
        columns={name: frame[name].to_list() for name in others},
    )


def _judgments(frame: pl.DataFrame, title: str) -> list[Judgment]:
    """Rows of `qid, group, doc_id[, grade]`, every one checked."""
    faults = Faults()
    if "grade" in frame.columns and not frame.schema["grade"].is_numeric():
        raise DataError(f"{title}: expected numbers in the column 'grade', found {frame.schema['grade']}")
    grades = frame["grade"].to_list() if "grade" in frame.columns else [1.0] * len(frame)
    cells = [_texts(frame, name, title).to_list() for name in ("qid", "group", "doc_id")]
    rows: list[Judgment] = []
    for number, (qid, group, document, grade) in enumerate(zip(*cells, grades), 1):
        where = f"{title}: row {number}: query {display(qid)}"
        given = finite_number(grade)
        absent = [name for name, cell in (("qid", qid), ("group", group), ("doc_id", document)) if cell is None]
        if absent:
            faults.add(where, f"expected text in the column {absent[0]}, found null")
        elif fault := id_fault(qid) or id_fault(document):
            faults.add(where, f"an id {fault}")
        elif given is None or not is_grade(given):
            faults.add(where, f"expected a number within ±2^31 as the grade, found {grade}")
        else:
            rows.append((qid, group, document, given))
    faults.stop()
    return rows


def _refuse_odd_ids(frame: pl.DataFrame, column: str, title: str, *, blank: bool = True) -> None:
    """Raises `DataError` for ids that no text file could hold, wherever lists nest them."""
    cells = frame.select(column).with_row_index("row")
    nested = False
    while isinstance(cells.schema[column], (pl.List, pl.Array)):
        nested, cells = True, cells.explode(column)
    if cells.schema[column] != pl.String:
        return
    text = pl.col(column)
    odd = text.str.contains("\0", literal=True) | (text.str.len_bytes() > LONGEST_ID)
    if not blank:
        odd |= text.is_null() | ~text.str.contains(r"\S")
        # An empty list explodes into a null of its own.
        kept = frame[column].list.len().fill_null(0) > 0 if nested else frame[column].is_not_null() | True
        cells = cells.filter(pl.col("row").is_in(np.flatnonzero(kept.to_numpy()).tolist()))
    found = cells.with_columns(rank=pl.int_range(pl.len()).over("row") + 1).filter(odd).head(100)
    qids = frame["qid"].to_list() if "qid" in frame.columns else []
    faults = Faults()
    for row, name, rank in found.iter_rows():
        where = f"{title}: row {row + 1}" + (f": query {display(qids[row])}" if qids else "")
        place = f" at rank {rank}" if nested and not blank else ""
        faults.add(where, f"the id {display(name)}{place} in {column} {'is null' if name is None else id_fault(name)}")
    faults.stop()


def _texts(frame: pl.DataFrame, name: str, title: str) -> pl.Series:
    """A column of ids as text; integers become their decimal text."""
    return frame.select(id_column(frame.schema[name], name, title))[name]


def id_column(kind: pl.DataType, name: str, title: str) -> pl.Expr:
    """The expression that makes ids text; raises `DataError` for floats, bools and the rest."""
    if kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum)) or kind.is_integer():
        return pl.col(name).cast(pl.String)
    raise DataError(f"{title}: expected text or integers in the column {name!r}, found {kind}")


def read_run(source: Source, qids: list[str] | None = None) -> Run:
    """Long (`qid, doc_id, score | rank`), nested (`qid, retrieved_ids[, retrieve_scores]`), or AutoRAG's node output.

    Node output has no `qid`: its rows are those of `qids`, in order.
    """
    frame = _scan(source)
    run = run_of(frame, str(source.path), qids, guard=lambda read: _guarded(source, read))
    return replace(run, name=run_name(source), source=str(source.path))


def run_of(
    value: Any,
    title: str = "results",
    qids: list[str] | None = None,
    guard: Guard = lambda read: read(),
) -> Run:
    """A run of a frame; nested ones become lists, long ones stay columns, those of Spark stay there."""
    if spark.is_frame(value):
        return spark.run_of(value, title)
    frame = lazy(value)
    names = guard(frame.collect_schema).names()
    keys = [name for name in NESTED if name in names]
    if len(keys) > 1:
        raise DataError(f"{title}: expected one column of results, found {' and '.join(keys)}; drop what is not meant")
    key = keys[0] if keys else None
    return _long(frame, title, guard) if key is None else _nested(frame, key, title, qids, guard)


def _nested(frame: pl.LazyFrame, key: str, title: str, qids: list[str] | None, guard: Guard) -> Run:
    """A run of lists: a row a query, its results in the column `key`."""
    names = guard(frame.collect_schema).names()
    rows = guard(lambda: frame.select(*(name for name in ("qid", key, SCORES) if name in names)).collect())
    for name in (key, SCORES):
        kind = rows.schema.get(name)
        if isinstance(kind, pl.Array):
            rows = rows.with_columns(pl.col(name).arr.to_list())
    _refuse_odd_ids(rows, key, title, blank=False)
    if "qid" in names:
        _refuse_odd_ids(rows, "qid", title, blank=False)
    _check_scores(rows, key, title)
    found = _texts(rows, "qid", title).to_list() if "qid" in names else qids
    if found is None:
        raise DataError(f"{title}: there is no column qid, and no ground truth whose rows it could follow")
    if len(found) != len(rows):
        raise DataError(
            f"{title}: without a column qid, rows follow those of the ground truth: expected {len(found):,} rows, "
            f"found {len(rows):,}"
        )
    if len(set(found)) < len(found):
        twice = next(qid for position, qid in enumerate(found) if qid in found[:position])
        raise DataError(f"{title}: query {twice!r} stands in two rows")
    lengths = {
        unit: dict(zip(found, [list(map(length_of, row)) for row in _beside(guard, frame, name)]))
        for unit, name in NESTED_LENGTHS.items()
        if name in names
    }
    fields: dict[str, Callable[[], dict[str, list[Any]]]] = {
        what: lambda name=name: dict(zip(found, _beside(guard, frame, name)))  # type: ignore[misc]  # bound now
        for what, name in FIELDS.items()
        if name in names
    }
    return Run(Lists(dict(zip(found, rows[key].to_list())), lengths=lengths, fields=fields), source=title)


def _long(frame: pl.LazyFrame, title: str, guard: Guard) -> Run:
    """A run of columns: a row a result."""
    schema = guard(frame.collect_schema)
    names = schema.names()
    order = next((name for name in ("score", "rank") if name in names), None)
    missing = [name for name in ("qid", "doc_id") if name not in names]
    if missing or order is None:
        expected = "qid, doc_id and score or rank, or qid and retrieved_ids"
        near = near_names(missing[0], names).replace("did you mean", f"is {missing[0]!r}") if missing else ""
        raise DataError(f"{title}: expected the columns {expected}; found {', '.join(names)}{near}")
    if not schema[order].is_numeric():
        raise DataError(f"{title}: expected numbers in the column {order!r}, found {schema[order]}")
    number = pl.col(order).cast(pl.Float64)
    long = frame.select(
        id_column(schema["qid"], "qid", title),
        id_column(schema["doc_id"], "doc_id", title).alias("doc"),
        (number if order == "score" else -number).alias("score"),
        *(pl.col(unit) for unit in UNITS if unit in names and schema[unit].is_numeric()),
        *(pl.col(name) for name in ("start", "end", "parent") if name in names),
        *([pl.col(DOCUMENT).cast(pl.String).alias("document")] if DOCUMENT in names else []),
        *(pl.col(name).alias("text") for name in [each for each in CONTENTS if schema.get(each) == pl.String][:1]),
    )
    columns = Columns(long, lambda: refuse_rows(long, title, order, guard), guard=guard)
    return Run(columns, source=title)


def _beside(guard: Guard, frame: pl.LazyFrame, name: str) -> list[list[Any]]:
    """What stands beside the ids of each query; who uses it says where it is no list of what it should be."""
    cells = guard(lambda: frame.select(name).collect())[name].to_list()
    return [cell if isinstance(cell, list) else [] for cell in cells]


def _check_scores(rows: pl.DataFrame, key: str, title: str) -> None:
    """Scores beside nested results order nothing, but they are numbers, one for each."""
    if SCORES not in rows.columns:
        return
    kind = rows.schema[SCORES]
    if not isinstance(kind, pl.List) or not (
        kind.inner is not None and (kind.inner.is_numeric() or kind.inner == pl.Null)
    ):
        raise DataError(f"{title}: expected lists of numbers in {SCORES}, found {kind}")
    numbers = pl.col(SCORES).list.eval(pl.element().cast(pl.Float64).is_finite().fill_null(False)).list.all()
    wrong = rows.with_row_index("row").filter(
        (pl.col(SCORES).list.len() != pl.col(key).list.len()) | ~numbers.fill_null(True)
    )
    faults = Faults()
    for row in wrong.head(100).to_dicts():
        where = f"{title}: row {row['row'] + 1}" + (f": query {display(row['qid'])}" if "qid" in row else "")
        expected, found = len(row[key] or []), row[SCORES]
        what = (
            f"{expected} {SCORES}, found {len(found)}" if len(found) != expected else f"finite {SCORES}, found {found}"
        )
        faults.add(where, f"expected {what}")
    faults.stop()


def write_ground_truth(path: Path, truth: GroundTruth) -> None:
    """AutoRAG's `qa.parquet`; grades, weights and names of groups have no place in it."""
    columns: dict[str, pl.Series] = {"qid": pl.Series(truth.qids, dtype=pl.String)}
    if truth.texts:
        columns["query"] = pl.Series(truth.texts, dtype=pl.String)
    groups = [groups for _, groups in truth.items()]
    columns["retrieval_gt"] = pl.Series(groups, dtype=pl.List(pl.List(pl.String)))
    for name, values in truth.columns.items():
        columns[name] = pl.Series(values, strict=False)
    pl.DataFrame(columns).write_parquet(path)


def write_run(path: Path, rankings: list[tuple[str, list[str], list[float]]], *, scored: bool) -> None:
    """`qid, retrieved_ids[, retrieve_scores]`."""
    qids, ids, scores = ([row[column] for row in rankings] for column in range(3))
    columns = {
        "qid": pl.Series(qids, dtype=pl.String),
        "retrieved_ids": pl.Series(ids, dtype=pl.List(pl.String)),
    }
    if scored:
        columns["retrieve_scores"] = pl.Series(scores, dtype=pl.List(pl.Float64))
    pl.DataFrame(columns).write_parquet(path)


def rows_of(source: Source) -> list[dict[str, Any]]:
    """Every row of a parquet file as a dict."""
    frame = _scan(source)
    rows: list[dict[str, Any]] = _guarded(source, frame.collect).to_dicts()
    return rows
