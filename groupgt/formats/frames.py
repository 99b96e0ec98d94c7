"""Reads frames and objects from other libraries: ir_measures lists, ranx `Qrels` and `Run`, ir_datasets data sets.

pandas frames become polars column by column, because pandas needs pyarrow to convert them and stores missing cells in
many ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from groupgt.errors import DataError, Faults, display, refuse
from groupgt.formats import fields, roles, tables
from groupgt.formats.roles import NO_COLUMNS, Declared, Kind
from groupgt.formats.tables import Table
from groupgt.formats.validity import MAX_INVALID_ROWS, Guard, is_id, normal_texts, refuse_rows
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Lists, Remote, Run
from groupgt.model.validity import id_text, plain
from groupgt.model.values import SCORE, normal_text, unnamed
from groupgt.runtime import pl

_IDS = (field.columns for field in fields.FIELDS if field.kind == "id")
ID_COLUMNS = {"qid", "group", "doc_id", *fields.NESTED}.union(*_IDS)
_OWN = {"query", "score", "rank", fields.TRIAL, fields.BUILD, fields.SCORES}
RUN_COLUMNS = ID_COLUMNS | _OWN | fields.COLUMNS | fields.LISTS
# The column of what a series holds.
SERIES: dict[Kind, str] = {"truth": "retrieval_gt", "run": "retrieved_ids", "corpus": "contents"}
# The libraries whose frames lie on many machines.
CLUSTERS = {"pyspark", "ray", "dask"}


def library_of(value: Any) -> str:
    """Return the name of the library that defines the type of a value, without importing it."""
    return type(value).__module__.partition(".")[0]


def is_pandas(value: Any) -> bool:
    """Return whether a value is a pandas frame, without importing pandas."""
    return library_of(value) == "pandas" and hasattr(value, "columns")


def _to_polars(value: Any, names: Collection[str], title: str) -> pl.DataFrame:
    """Convert the named columns of a frame, with ids as text, or raise `DataError` for invalid ids."""
    kept = [(position, name) for position, name in enumerate(map(str, value.columns)) if name in names]
    _reject_duplicates([name for _, name in kept], title)
    faults = Faults()
    columns = {name: _series(value.iloc[:, position], name, title, faults) for position, name in kept}
    faults.stop()
    return pl.DataFrame(columns)


def _series(column: Any, name: str, title: str, faults: Faults) -> pl.Series:
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return pl.Series(name, column.to_numpy())
    cells = cells_of(column)
    if name in ID_COLUMNS:
        nested = any(isinstance(cell, list) for cell in cells)
        texts = [_ids(cell, f"{title}: row {row}", name, faults) for row, cell in enumerate(cells, 1)]
        texts = [[cell] if nested and isinstance(cell, str) else cell for cell in texts]
        return pl.Series(name, texts, dtype=pl.List(pl.String) if nested else pl.String, strict=False)
    try:
        return pl.Series(name, cells)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        if any(isinstance(cell, (list, dict)) for cell in cells):
            return pl.Series(name, cells, strict=False)
        # Values without a polars type, such as mixed numbers and words, are read as text.
        return pl.Series(name, [None if cell is None else str(cell) for cell in cells], dtype=pl.String)


def _ids(cell: Any, where: str, name: str, faults: Faults) -> Any:
    """Convert a cell to an id in text form or a list of such ids; anything else is an error."""
    if isinstance(cell, list):
        return [_ids(inner, where, name, faults) for inner in cell]
    text = id_text(cell)
    if text is None and cell is not None:
        what = f"expected strings or integers in the {name!r} column"
        faults.add(where, f"{what}, found {display(cell)} of type {type(cell).__name__}")
    return text


def cells_of(column: Any) -> list[Any]:
    """Return the cells of a column, with None for missing cells and lists for nested arrays."""
    import pandas as pd

    missing = (None, pd.NA, pd.NaT)
    numbers = isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"

    def cell_of(cell: Any) -> Any:
        if any(cell is marker for marker in missing) or (not numbers and isinstance(cell, float) and isnan(cell)):
            return None
        cell = plain(cell)
        return [cell_of(inner) for inner in cell] if isinstance(cell, (list, tuple)) else cell

    return [cell_of(cell) for cell in column.tolist()]


def opened(value: Any, title: str, kind: Kind = "truth", columns: Declared = NO_COLUMNS) -> Any:
    """Return a frame with all data in columns: pandas indexes become columns, Hugging Face data sets become Arrow."""
    if library_of(value) not in ("pandas", "datasets"):
        return value
    if library_of(value) == "pandas":
        return _with_index(value, title, kind, columns)
    if isinstance(value, Mapping):
        raise DataError(f"{title}: expected one split; pass only {' or '.join(map(repr, value))}")
    if not hasattr(value, "num_rows"):
        raise DataError(f"{title}: expected a data set in memory or on disk; load it without streaming=True")
    return value.with_format("arrow")[:]


def _with_index(value: Any, title: str, kind: Kind, columns: Declared) -> Any:
    """Convert the named index of a pandas frame or series to a column. An unnamed text index is an error."""
    key = "doc_id" if kind == "corpus" else "qid"
    if not hasattr(value, "columns"):
        value = value.to_frame() if value.index.nlevels > 1 else value.to_frame(SERIES[kind])
    names = list(map(str, value.columns))
    levels = [name for name in value.index.names if name is not None and str(name) not in names]
    has_key = bool(roles.roles_in(names, kind, columns).keys() & ({key} if kind == "corpus" else {key, "query"}))
    if not (levels or has_key) and len(value) and isinstance(value.index[0], (str, tuple)):
        found = f"an unnamed index, which begins with {display(value.index[0])}"
        axis = key if value.index.nlevels == 1 else ["qid", "doc_id"]
        way = f"if the index contains the ids, name it: .rename_axis({axis!r})"
        raise DataError(f"{title}: the {key!r} column is missing: found {roles.shown_names(names)} and {found}; {way}")
    return value.reset_index(level=levels) if levels else value


def is_frame(value: Any) -> bool:
    """Return whether a value is a frame, a data set or a stream of any library, without importing the library."""
    known = library_of(value) in {"polars", "pandas", "pyarrow", "datasets"} | CLUSTERS
    return known or hasattr(type(value), "__arrow_c_stream__")


def is_remote(value: Any) -> bool:
    """Return whether a value is a frame of Spark, Ray Data or Dask, whose rows stay on a cluster."""
    return library_of(value) in CLUSTERS


def remote_names(value: Any) -> list[str]:
    """Return the column names of a frame on a cluster."""
    return list(map(str, value.columns() or () if callable(value.columns) else value.columns))


def collected(value: Any) -> Any:
    """Collect the rows of a frame on a cluster as an Arrow table or a pandas frame."""
    if library_of(value) == "dask":
        return value.compute()
    if library_of(value) == "ray":
        import pyarrow as pa
        import ray

        tables = ray.get(value.to_arrow_refs())
        return pa.concat_tables([table for table in tables if table.num_rows] or tables[:1])
    return value.to_pandas() if hasattr(value, "to_spark") else value.toArrow()


def _lazy(value: Any, title: str) -> pl.LazyFrame:
    """Convert a polars or Arrow frame to a lazy frame. Omit Arrow columns that polars may not support."""
    if isinstance(value, pl.LazyFrame):
        return value
    if isinstance(value, pl.DataFrame):
        return value.lazy()
    if not hasattr(value, "__arrow_c_stream__"):
        raise DataError(f"expected a polars, pandas, Arrow, Spark, Ray or Dask frame, found {type(value).__name__}")
    _reject_duplicates(getattr(value, "column_names", []), title)
    return pl.DataFrame(value).lazy()


def names_of(value: Any) -> list[str]:
    """Return the column names of a frame, including those in a pandas index."""
    if is_remote(value):
        return remote_names(value)
    value = opened(value, "frame")
    return list(map(str, value.columns)) if is_pandas(value) else _lazy(value, "frame").collect_schema().names()


def _reject_duplicates(names: list[str], title: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    refuse((title, f"duplicate column {name!r}; rename or drop one") for name in twice)


def truth_of(value: Any, policy: Policy, title: str = "ground truth", columns: Declared = NO_COLUMNS) -> GroundTruth:
    """Build ground truth from a frame with one row per query (`qid, retrieval_gt`) or judgment (`qid, doc_id`, …)."""
    return tables.truth_of(table_of(value, title, columns), policy)


def table_of(value: Any, title: str, columns: Declared = NO_COLUMNS, kind: Kind = "truth") -> Table:
    """Convert a frame to a table, with None for missing cells."""
    value = collected(value) if is_remote(value) else opened(value, title, kind, columns)
    in_pandas = is_pandas(value)
    frame = value if in_pandas else _lazy(value, title).collect()
    names = list(map(str, value.columns)) if in_pandas else frame.columns
    _reject_duplicates(names, title)

    def column(name: str) -> list[Any]:
        return cells_of(value.iloc[:, names.index(name)]) if in_pandas else frame[name].to_list()

    table = Table(title, names, lru_cache(column), lambda row: f"{title}: row {row + 1}", declared=columns)
    return table if not roles.has_paths(names, columns) else tables.at_paths(table, is_truth=kind == "truth")


def _with_our_names(value: Any, title: str, columns: Declared) -> Any:
    """Return results as a pandas or lazy frame, with each column named by its role."""
    value = value if is_pandas(value) else _lazy(value, title)
    names = list(map(str, value.columns)) if is_pandas(value) else value.collect_schema().names()
    _reject_duplicates(names, title)
    if (renamed := roles.canonical(names, columns)) == tuple(names):
        return value
    return value.set_axis(renamed, axis=1) if is_pandas(value) else value.rename(dict(zip(names, renamed)))


def _id_column(kind: pl.DataType, name: str, title: str) -> pl.Expr:
    """Return an expression that converts ids to text, or raise `DataError` for floats, booleans and other types."""
    if kind in (pl.String, pl.Null) or isinstance(kind, (pl.Categorical, pl.Enum)) or kind.is_integer():
        return pl.col(name).cast(pl.String)
    raise DataError(f"{title}: expected strings or integers in the {name!r} column, found {kind}")


def run_of(
    value: Any,
    title: str = "results",
    qids: list[str] | None = None,
    guard: Guard = lambda read: read(),
    columns: Declared = NO_COLUMNS,
) -> Run:
    """Build a run from a frame. Without a `qid` column, assign rows to `qids` in order."""
    if columns and roles.has_paths(names_of(value), columns):
        table = table_of(value, title, columns, "run")
        plain_columns = {name: tables.cells_of(table, name) for name in table.names}
        return run_of(pl.DataFrame(plain_columns, strict=False), title, qids, guard)
    if is_remote(value):
        if fields.trial_column(roles.canonical(remote_names(value), columns), title):
            raise DataError(f"{title}: trials cannot stay on a cluster; pass one frame per trial: {{name: [frame, …]}}")
        return Run(Remote(value, columns), source=title)
    in_memory = not isinstance(value, pl.LazyFrame)
    value = opened(value, title, "run", columns)
    if not is_pandas(value):
        # A stream may be read only once.
        value = _lazy(value, title)
    shown = list(map(str, value.columns)) if is_pandas(value) else guard(value.collect_schema).names()
    value = guard(lambda: _with_our_names(value, title, columns))
    needed = RUN_COLUMNS | set(filter(None, [fields.repeats_in(shown)]))
    frame = _to_polars(value, needed, title).lazy() if is_pandas(value) else value
    names = guard(frame.collect_schema).names()
    if (column := fields.repeats_in(names)) is not None and roles.query_column(names) in names:
        _refuse_repeats(frame, roles.query_column(names), column, title, guard)
    keys = [name for name in fields.NESTED if name in names]
    if joined := [name for name in keys if frame.collect_schema()[name] == pl.String]:
        return _of_texts(guard(frame.collect), joined[0], shown, columns, title, qids)
    if numbered := fields.trial_column(names, title):
        return _trials(guard(frame.collect), numbered, title, qids)
    if not keys and fields.TEXTS in names and "doc_id" not in names:
        keys = [fields.TEXTS]
    if len(keys) > 1:
        raise DataError(f"{title}: expected one column of results, found {' and '.join(keys)}; drop the others")
    if keys:
        return _nested(frame, keys[0], title, qids, guard)
    return _long(frame, title, guard, shown, in_memory=in_memory)


def _refuse_repeats(frame: pl.LazyFrame, query: str, column: str, title: str, guard: Guard) -> None:
    """Raise `DataError` if the results of a query have several values in a column."""
    values = pl.col(column).drop_nulls().unique(maintain_order=True)
    several = frame.group_by(query, maintain_order=True).agg(values).filter(pl.col(column).list.len() > 1).head(1)
    for qid, (first, other, *_) in guard(several.collect).iter_rows():
        raise DataError(f"{title}: query {display(qid)}: {fields.repeat_fault(column, first, other)}")


def _of_texts(
    rows: pl.DataFrame, key: str, shown: Sequence[str], columns: Declared, title: str, qids: list[str] | None
) -> Run:
    """Build a run from a frame whose lists of ids are written as text. `shown` contains the original column names."""
    from groupgt.formats.columns import Column, columns_in
    from groupgt.formats.columns import Lists as TextLists

    faults = Faults()
    lists = TextLists(faults)
    column = columns_in(shown, columns).get("retrieved_ids", Column(shown[rows.columns.index(key)]))
    cells = [lists.read(cell, column, "retrieved_ids", _place(rows, row, title)) for row, cell in enumerate(rows[key])]
    ids = [cell and fields.ranking(cell, _place(rows, row, title), faults) for row, cell in enumerate(cells)]
    faults.stop()
    run = run_of(rows.with_columns(pl.Series(key, ids, dtype=pl.List(pl.String))), title, qids)
    trials = tuple(replace(trial, unsplit=lists.unsplit) for trial in run.trials)
    return replace(run, unsplit=lists.unsplit, trials=trials)


def _trials(rows: pl.DataFrame, column: str, title: str, qids: list[str] | None) -> Run:
    """Build a run of trials or builds from a frame that numbers them in a column."""
    numbers = {cell: fields.length_of(cell) for cell in rows[column].unique().to_list()}
    refuse((title, fields.trial_fault(cell, column)) for cell, number in numbers.items() if number is None)
    trials = sorted(numbers, key=lambda cell: numbers[cell] or 0)
    runs = [run_of(rows.filter(pl.col(column) == cell).drop(column), title, qids) for cell in trials]
    return Run.of_trials([replace(run, is_build=column == fields.BUILD) for run in runs])


def _nested(frame: pl.LazyFrame, key: str, title: str, qids: list[str] | None, guard: Guard) -> Run:
    """Build a run of lists from a frame with one row per query and its results in the column `key`."""
    names = guard(frame.collect_schema).names()
    needed = [name for name in ("qid", "query", key, fields.SCORES) if name in names]
    rows = guard(frame.select(needed).collect)
    texts = rows["query"].cast(pl.String).to_list() if "query" in names else []
    for name in (key, fields.SCORES):
        _require_lists(rows, name, title)
        if isinstance(rows.schema.get(name), pl.Array):
            rows = rows.with_columns(pl.col(name).arr.to_list())
    has_ids = key != fields.TEXTS
    _refuse_invalid_lists(rows, key, title)
    row_qids = qids
    if "qid" in names:
        row_qids = rows.select(_id_column(rows.schema["qid"], "qid", title))["qid"].to_list()
    elif texts and None not in texts:
        row_qids = list(map(normal_text, texts))
    if row_qids is None:
        raise DataError(f"{title}: there is no qid column, and no ground truth to take query ids from")
    if len(row_qids) != len(rows):
        what = "without a qid column, rows are matched to the ground truth in order"
        raise DataError(f"{title}: {what}: expected {len(row_qids):,} rows, found {len(rows):,}")
    if (twice := next((qid for qid, count in Counter(row_qids).items() if count > 1), None)) is not None:
        raise DataError(f"{title}: query {display(twice)} has several rows")

    def column(name: str) -> dict[str, list[Any]]:
        """Return the lists in a column by query id. Invalid lists are reported when they are used."""
        cells = guard(lambda: frame.select(name).collect())[name].to_list()
        return {qid: cell if isinstance(cell, list) else [] for qid, cell in zip(row_qids, cells)}

    units, others = fields.lists_of(names)
    lists_in = {field: column(field.nested).items() for field in units}
    lengths = {each.name: {qid: list(map(each.number, row)) for qid, row in rows} for each, rows in lists_in.items()}
    readers: dict[str, Callable[[], Any]] = {field.name: partial(column, field.nested) for field in others}
    if fields.SCORES in names:
        readers[SCORE] = lambda: dict(zip(row_qids, rows[fields.SCORES].to_list()))
    by_query = {qid: text for qid, text in zip(row_qids, texts) if text is not None}
    rankings = rows[key].to_list()
    if not has_ids:
        rankings = [unnamed(len(texts or ())) for texts in rankings]
    lists = Lists(dict(zip(row_qids, rankings)), lengths=lengths, fields=readers)
    return Run(lists, source=title, texts=by_query, has_ids=has_ids)


def _require_lists(rows: pl.DataFrame, name: str, title: str) -> None:
    """Raise `DataError` if a column of lists contains anything else, such as lists converted to text."""
    kind = rows.schema.get(name, pl.Null())
    if kind == pl.Null or isinstance(kind, (pl.List, pl.Array)):
        return
    row = int((~rows[name].is_null()).arg_max() or 0)
    found = f"found {display(rows[name][row])} of type {kind}"
    raise DataError(f"{_place(rows, row, title)}: expected a list in {name}, {found}; save lists as lists, not as text")


def _refuse_invalid_lists(rows: pl.DataFrame, key: str, title: str) -> None:
    """Raise `DataError` for invalid ids and scores, even though the scores do not affect the order."""
    sound = pl.lit(value=True)
    kind, ids = rows.schema[key], pl.col(key)
    if isinstance(kind, pl.List) and kind.inner in (pl.String, pl.Null):
        sound &= ids.list.eval(is_id(pl.element().cast(pl.String))).list.all().fill_null(True)
    if rows.schema.get("qid") == pl.String:
        sound &= is_id(pl.col("qid"))
    if fields.SCORES in rows.columns:
        kind = rows.schema[fields.SCORES]
        if not (isinstance(kind, pl.List) and (kind.inner.is_numeric() or kind.inner == pl.Null)):
            raise DataError(f"{title}: expected lists of numbers in {fields.SCORES}, found {kind}")
        finite = pl.col(fields.SCORES).list.eval(pl.element().cast(pl.Float64).is_finite().fill_null(False)).list.all()
        sound &= ((pl.col(fields.SCORES).list.len() == ids.list.len()) & finite).fill_null(True)
    faults = Faults()
    for row in rows.with_row_index("row").filter(~sound).head(MAX_INVALID_ROWS).iter_rows(named=True):
        where, results = _place(rows, row["row"], title), row[key] or []
        if "qid" in row and (fault := fields.query_fault(row["qid"], id_text(row["qid"]))):
            faults.add(f"{title}: row {row['row'] + 1}", fault)
        if key != fields.TEXTS:
            fields.ranking(results, where, faults)
        if row.get(fields.SCORES) is not None and (fault := fields.scores_fault(row[fields.SCORES], len(results), key)):
            faults.add(where, fault)
    faults.stop()


def _place(rows: pl.DataFrame, row: int, title: str) -> str:
    return f"{title}: row {row + 1}" + (f": query {display(rows['qid'][row])}" if "qid" in rows.columns else "")


def _is_readable(column: str, kind: pl.DataType) -> bool:
    """Return whether a column has the right type for its field (such as numbers for lengths)."""
    field = next((field for field in fields.FIELDS if column in field.columns), None)
    if field is None or not (field.is_unit or field.kind == "text"):
        return True
    return kind == pl.String if field.kind == "text" else field.kind == "call" or kind.is_numeric()


def _long(frame: pl.LazyFrame, title: str, guard: Guard, shown: Sequence[str], *, in_memory: bool) -> Run:
    schema = guard(frame.collect_schema)
    names = schema.names()
    order = "score" if "score" in names or "rank" not in names else "rank"
    query = roles.query_column(names)
    shapes = (query, "doc_id", order), (query, "retrieved_ids")
    if missing := min(([name for name in shape if name not in names] for shape in shapes), key=len):
        expected = "qid, doc_id and score or rank, or qid and retrieved_ids"
        raise DataError(f"{title}: {roles.missing_columns(shown, missing, expected, 'run')}")
    if not schema[order].is_numeric():
        raise DataError(f"{title}: expected numbers in the {order!r} column, found {schema[order]}")
    call = schema.get(fields.CALL_COLUMN, pl.Null())
    if not (call.is_numeric() or call in (pl.String, pl.Null)):
        raise DataError(f"{title}: expected whole numbers in the {fields.CALL_COLUMN!r} column, found {call}")
    qid = _id_column(schema["qid"], "qid", title) if query == "qid" else normal_texts(pl.col("query")).alias("qid")
    document, number = _id_column(schema["doc_id"], "doc_id", title).alias("doc"), pl.col(order).cast(pl.Float64)
    readable = tuple(name for name in names if _is_readable(name, schema[name]))
    kept = ((field.name, pl.col(name)) for field, name in fields.carried(readable))
    others = ((cells.cast(pl.String) if name == "document" else cells).alias(name) for name, cells in kept)
    long = frame.select(qid, document, (number if order == "score" else -number).alias("score"), *others)
    columns = Columns(long, lambda: refuse_rows(long, title, order, guard), guard, in_memory=in_memory)
    return Run(columns, source=title)


def _rows_with(value: Any, field: str, title: str) -> list[Any]:
    """Return rows with `query_id`, `doc_id` and a field, or nothing for other values. Raise `DataError` if invalid."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        return []
    is_iterator = iter(value) is value
    rows: list[Any] = list(value) if is_iterator or _has(next(iter(value), None), field) else []
    if not rows or not _has(rows[0], field):
        return []
    what = f"expected query_id, doc_id and {field}, found"
    strange = ((number, row) for number, row in enumerate(rows, 1) if not _has(row, field))
    refuse((f"{title}: row {number}", f"{what} {display(row)}") for number, row in strange)
    return rows


def _has(row: Any, field: str) -> bool:
    return all(hasattr(row, name) for name in ("query_id", "doc_id", field))


def truth_in(value: Any, policy: Policy, columns: Declared = NO_COLUMNS) -> GroundTruth | None:
    """Build ground truth from another library's qrels, or raise `DataError`. Return None for any other value."""
    if library_of(value) == "ranx":
        return GroundTruth.of(dict(value.to_dict()), policy) if type(value).__name__ == "Qrels" else None
    if not (rows := _rows_with(value, "relevance", title := "ground truth")):
        return None
    names = [name for name in ("query_id", "doc_id", "relevance", "subtopic_id", "iteration") if hasattr(rows[0], name)]
    table = Table(title, names, lambda name: [getattr(row, name) for row in rows], lambda row: f"row {row + 1}")
    return tables.truth_of(replace(table, declared=columns), policy)


def run_in(value: Any) -> Mapping[str, Any] | None:
    """Return `{qid: ranking}` from another library's results, or None for other values."""
    if library_of(value) == "ranx":
        return dict(value.to_dict()) if type(value).__name__ == "Run" else None
    pairs: dict[str, list[tuple[str, float]]] = {}
    for row in _rows_with(value, "score", "results"):
        pairs.setdefault(row.query_id, []).append((row.doc_id, row.score))
    return pairs or None


def dataset_named(name: Any) -> list[Any] | None:
    """Load the qrels of an ir_datasets data set (this may download it), or return None for other names."""
    if not isinstance(name, str) or "/" not in name or Path(name).exists() or find_spec("ir_datasets") is None:
        return None
    import ir_datasets

    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        return None
    if not dataset.has_qrels():
        raise DataError(f"{name}: this ir_datasets data set has no qrels; choose a subset that has qrels")
    return list(dataset.qrels_iter())
