"""What is no id in a file is none in a frame, whatever library made it, and however it says that a cell is missing."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt

TRUTH = {"q": [["a"]], "r": [["b"]]}
RUN: dict[str, list[Any]] = {"qid": ["q", "q", "r"], "doc_id": ["a", "x", "b"], "score": [2.0, 1.0, 1.0]}
ODD = [" ", "", "a\x00", "a\x1c", "x\x85", "\u2028", "a\u2029b", "a\ufeff", "x" * 65_537]


def pandas() -> Any:
    return pytest.importorskip("pandas", reason="pandas is in the extra groupgt[frames]")


def pyarrow() -> Any:
    return pytest.importorskip("pyarrow", reason="pyarrow is in the extra groupgt[frames]")


def _of_objects(columns: dict[str, list[Any]]) -> Any:
    kinds = {name: float if name in ("score", "grade") else object for name in columns}
    return pandas().DataFrame({name: pandas().Series(cells, dtype=kinds[name]) for name, cells in columns.items()})


FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pandas": lambda columns: pandas().DataFrame(columns),
    "pandas objects": _of_objects,
    "pyarrow": lambda columns: pyarrow().table(columns),
}


def refused_in_runs(frame: Any) -> None:
    with pytest.raises(groupgt.DataError, match=r"row 2|query|column"):
        groupgt.evaluate(TRUTH, frame, ["recall"])


@pytest.mark.parametrize("name", ODD, ids=lambda name: ascii(name)[:12])
@pytest.mark.parametrize("kind", FRAMES)
def test_odd_ids(kind: str, name: str) -> None:
    make = FRAMES[kind]
    assert groupgt.evaluate(TRUTH, make(RUN), ["recall"])["recall"] == 1
    for column in ("qid", "doc_id"):
        refused_in_runs(make({**RUN, column: [RUN[column][0], name, RUN[column][2]]}))
    refused_in_runs(make({"qid": ["q", "r"], "retrieved_ids": [["a"], ["b", name]]}))
    refused_in_runs(make({"qid": ["q", name], "retrieved_ids": [["a"], ["b"]]}))
    rows = {"qid": ["q", "q"], "group": ["1", "2"], "doc_id": ["a", name], "grade": [1.0, 1.0]}
    for truth in (rows, {**rows, "qid": ["q", name], "doc_id": ["a", "b"]}):
        with pytest.raises(groupgt.DataError):
            groupgt.evaluate(make(truth), {"q": ["a"]}, ["recall"])
    for truth in (
        {"qid": ["q", name], "retrieval_gt": [[["a"]], [["b"]]]},
        {"qid": ["q", "r"], "retrieval_gt": [[["a"]], [["b", name]]]},
    ):
        with pytest.raises(groupgt.DataError):
            groupgt.evaluate(make(truth), {"q": ["a"]}, ["recall"])


@pytest.mark.parametrize(
    "kind", ["string", "string[pyarrow]", "category", "object", "convert_dtypes", "convert_dtypes to pyarrow", "Int64"]
)
def test_cells_without_a_value_in_pandas(kind: str) -> None:
    pd = pandas()
    if "pyarrow" in kind:
        pyarrow()

    def column(cells: list[Any]) -> Any:
        series = pd.Series([None if cell is None else 7 if kind == "Int64" else cell for cell in cells], dtype=object)
        if kind.startswith("convert"):
            return series.convert_dtypes(**({"dtype_backend": "pyarrow"} if "pyarrow" in kind else {}))
        return series.astype(kind)

    for name in ("qid", "doc_id"):
        cells = [RUN[name][0], None, RUN[name][2]]
        with pytest.raises(groupgt.DataError, match=r"row 2: query .*: expected a qid and a doc_id, found null"):
            groupgt.evaluate(TRUTH, pd.DataFrame({**RUN, name: column(cells)}), ["recall"])
    truth = pd.DataFrame({"qid": ["q", "q"], "group": ["1", "2"], "doc_id": column(["a", None])})
    with pytest.raises(groupgt.DataError, match=r"row 2: query 'q': .*doc_id.*null"):
        groupgt.evaluate(truth, {"q": ["a"]}, ["recall"])
    truth = pd.DataFrame({"qid": column(["q", None]), "retrieval_gt": [[["a"]], [["b"]]]})
    with pytest.raises(groupgt.DataError, match=r"row 2"):
        groupgt.evaluate(truth, {"q": ["a"]}, ["recall"])


NO_IDS = [1.0, np.float64(1), True, np.bool_(True), float("nan"), None, b"a", datetime.date(2020, 1, 1)]


@pytest.mark.parametrize("value", [*NO_IDS, "NA", "NaT", "Timestamp"], ids=repr)
def test_objects_that_are_no_ids_in_pandas(value: Any) -> None:
    pd = pandas()
    if isinstance(value, str):
        value = pd.Timestamp("2020-01-01") if value == "Timestamp" else getattr(pd, value)
    for name in ("qid", "doc_id"):
        cells = pd.Series([RUN[name][0], value, RUN[name][2]], dtype=object)
        refused_in_runs(pd.DataFrame({**RUN, name: cells}))
    refused_in_runs(pd.DataFrame({"qid": ["q", "r"], "retrieved_ids": [["a"], ["b", value]]}))
    for truth in (
        {"qid": ["q", "r"], "retrieval_gt": [[["a"]], [["b"], [value]]]},
        {"qid": pd.Series(["q", value], dtype=object), "retrieval_gt": [[["a"]], [["b"]]]},
        {"qid": ["q", "q"], "group": ["1", "2"], "doc_id": pd.Series(["a", value], dtype=object)},
    ):
        with pytest.raises(groupgt.DataError):
            groupgt.evaluate(pd.DataFrame(truth), {"q": ["a"]}, ["recall"])


@pytest.mark.parametrize("side", ["run", "truth"])
def test_one_column_twice(side: str) -> None:
    pd = pandas()
    frame = pd.DataFrame(RUN if side == "run" else {"qid": ["q"], "retrieval_gt": [[["a"]]]})
    twice = pd.concat([frame, frame[["qid"]]], axis=1)
    arguments = (TRUTH, twice) if side == "run" else (twice, {"q": ["a"]})
    with pytest.raises(groupgt.DataError, match="column 'qid'"):
        groupgt.evaluate(*arguments, ["recall"])
    if side == "run":
        arrow = pyarrow()
        table = arrow.Table.from_arrays([arrow.array(["q"])] * 2 + [arrow.array([1.0])], names=["qid", "qid", "score"])
        with pytest.raises(groupgt.DataError, match="column 'qid'"):
            groupgt.evaluate(TRUTH, table, ["recall"])


def test_columns_of_dates_are_kept() -> None:
    pd = pandas()
    days = pd.Series([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), None], dtype=object)
    assert groupgt.evaluate(TRUTH, pd.DataFrame({**RUN, "day": days}), ["recall"])["recall"] == 1
    truth = pd.DataFrame({"qid": ["q", "r", "s"], "retrieval_gt": [[["a"]], [["b"]], [["c"]]], "day": days})
    found = groupgt.evaluate(truth, {"q": ["a"], "r": ["x"]}, ["recall"], by=["day"])
    assert found["recall"] == pytest.approx(1 / 3)
    assert found.truth.columns["day"] == [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), None]


class Stream:
    """What exports rows as a stream of Arrow that is read once, as relations of DuckDB and readers of batches do."""

    columns = ("qid", "doc_id", "score")

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frames = [frame]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frames.pop().__arrow_c_stream__(requested_schema)


def test_any_stream_of_arrow_is_a_frame() -> None:
    rows = pl.DataFrame({"qid": ["q1", "q1", "q2"], "doc_id": ["a", "x", "c"], "score": [0.5, 0.9, 0.1]})
    nested = pl.DataFrame({"qid": ["q1", "q2"], "retrieved_ids": [["x", "a"], ["c"]]})
    truth = pl.DataFrame({"qid": ["q1", "q2"], "retrieval_gt": [[["a"], ["b"]], [["c"]]]})
    for run in (rows, nested):
        found = groupgt.evaluate(Stream(truth), Stream(run), ["recall", "mrr"])
        assert found.means == {"recall": (1 / 2 + 1) / 2, "mrr": ((1 / 2 + 0) / 2 + 1) / 2}
        assert groupgt.evaluate(Stream(truth), groupgt.read_run(Stream(run)), ["recall"]).means == {"recall": 3 / 4}
    several = groupgt.evaluate_runs(Stream(truth), {"one": Stream(rows), "two": Stream(nested)}, ["recall"])
    assert {name: each["recall"] for name, each in several.items()} == {"one": 3 / 4, "two": 3 / 4}
