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


# ---- what is not in a column -------------------------------------------------------------------------------------

TEXTS = {"a": "one", "x": "two", "b": "three"}


def test_an_index_of_pandas_with_a_name_is_a_column() -> None:
    pd = pandas()
    run, rows = pd.DataFrame(RUN), [["a", "x"], ["b"]]
    several = run.set_index(["qid", "doc_id"])
    lists = run.groupby("qid")["doc_id"].apply(list)
    for frame in (run.set_index("qid"), several, several["score"], lists, lists.to_frame("retrieved_ids")):
        assert groupgt.evaluate(TRUTH, frame, ["recall@1", "mrr"]).means == {"recall@1": 1.0, "mrr": 1.0}
    # The order of rows is not that of the ground truth.
    turned = pd.DataFrame({"retrieved_ids": rows[::-1]}, index=pd.Index(["r", "q"], name="query_id"))
    assert groupgt.evaluate(TRUTH, turned, ["recall"])["recall"] == 1
    truth = pd.DataFrame({"retrieval_gt": [[["b"]], [["a"]]], "kind": ["x", "y"]}, index=turned.index)
    for frame in (truth, truth["retrieval_gt"]):
        assert groupgt.evaluate(frame, RUN_BY_QUERY, ["recall"])["recall"] == 1
    assert groupgt.read_ground_truth(truth, columns={"qid": "query_id"}).columns == {"kind": ["x", "y"]}
    found = groupgt.evaluate(TRUTH, RUN_BY_QUERY, ["recall@4chars"], corpus=pd.Series(TEXTS).rename_axis("doc_id"))
    # Of q, a has three characters and x no room; b of r has five.
    assert found["recall@4chars"] == 1 / 2


RUN_BY_QUERY = {"q": ["a", "x"], "r": ["b"]}


def test_an_index_without_a_name_that_may_hold_the_ids_is_refused() -> None:
    pd = pandas()
    lists = pd.DataFrame({"retrieved_ids": [["b"], ["a"]]}, index=["r", "q"])
    begin = "results: the 'qid' column is missing: found retrieved_ids and an unnamed index, which begins with "
    with pytest.raises(groupgt.DataError) as error:
        groupgt.evaluate(TRUTH, lists, ["recall"])
    assert str(error.value) == f"{begin}'r'; if the index contains the ids, name it: .rename_axis('qid')"
    assert groupgt.evaluate(TRUTH, lists.rename_axis("qid"), ["recall"])["recall"] == 1
    pairs = pd.DataFrame(RUN).set_index(["qid", "doc_id"]).rename_axis([None, None])
    with pytest.raises(groupgt.DataError, match=r"begins with \('q', 'a'\); .* \.rename_axis\(\['qid', 'doc_id'\]\)"):
        groupgt.evaluate(TRUTH, pairs, ["recall"])
    with pytest.raises(groupgt.DataError, match=r"corpus: the 'doc_id' column is missing: .* name it: \.rename_axis"):
        groupgt.evaluate(TRUTH, RUN_BY_QUERY, ["recall@4chars"], corpus=pd.Series(TEXTS))
    # Numbers without a name are those of rows, in the order of the queries.
    assert groupgt.evaluate(TRUTH, pd.DataFrame({"retrieved_ids": [["a"], ["b"]]}), ["recall"])["recall"] == 1


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "pyarrow", "stream"])
def test_a_frame_is_a_corpus(kind: str) -> None:
    columns = {"doc_id": list(TEXTS), "contents": list(TEXTS.values())}
    make: Callable[[Any], Any] = FRAMES.get(kind, lambda columns: Stream(pl.DataFrame(columns)))
    found = groupgt.evaluate(TRUTH, RUN_BY_QUERY, ["recall@4chars"], corpus=make(columns))
    assert found["recall@4chars"] == 1 / 2
    corpus = make({**columns, "contents": ["one", None, "b"]})
    with pytest.raises(groupgt.DataError, match=r"corpus: row 2: document 'x': expected text in the contents column"):
        groupgt.evaluate(TRUTH, RUN_BY_QUERY, ["recall@4chars"], corpus=corpus)


class DataSet:
    """What `datasets.Dataset` has that is used, where it is not installed."""

    num_rows = 3
    column_names = ("qid",)
    __module__ = "datasets.arrow_dataset"

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns_of = columns

    def with_format(self, kind: str) -> DataSet:
        assert kind == "arrow"
        return self

    def __getitem__(self, rows: slice) -> Any:
        assert rows == slice(None)
        return pyarrow().table(self.columns_of)


def hugging_face(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("datasets").Dataset.from_dict(columns)


@pytest.mark.parametrize("make", [DataSet, hugging_face])
def test_a_data_set_of_hugging_face_is_truth_run_and_corpus(make: Callable[[Any], Any]) -> None:
    truth = make({"qid": ["q", "r"], "retrieval_gt": [[["a"]], [["b"]]]})
    corpus = make({"doc_id": list(TEXTS), "contents": list(TEXTS.values())})
    for run in (make(RUN), make({"qid": ["q", "r"], "retrieved_ids": [["a", "x"], ["b"]]})):
        found = groupgt.evaluate(truth, run, ["recall", "recall@4chars"], corpus=corpus)
        assert found.means == {"recall": 1.0, "recall@4chars": 1 / 2}
        assert groupgt.evaluate_runs(truth, {"one": run}, ["recall"])["one"]["recall"] == 1
    with pytest.raises(groupgt.ConfigError, match="found several by name"):
        groupgt.evaluate(truth, {"one": make(RUN)}, ["recall"])


def test_splits_and_streams_of_hugging_face_are_refused() -> None:
    splits = type("DatasetDict", (dict,), {"__module__": "datasets.dataset_dict"})(train=1, test=2)
    stream = type("IterableDataset", (), {"__module__": "datasets.iterable_dataset"})()
    for evaluated, title in (
        (lambda value: groupgt.evaluate(value, RUN_BY_QUERY, ["recall"]), "ground truth"),
        (lambda value: groupgt.evaluate(TRUTH, value, ["recall"]), "results"),
    ):
        with pytest.raises(groupgt.DataError, match=f"{title}: expected one split; pass only 'train' or 'test'"):
            evaluated(splits)
        with pytest.raises(groupgt.DataError, match=rf"{title}: .*; load it without streaming=True"):
            evaluated(stream)


def test_only_the_selected_rows_of_a_data_set_count() -> None:
    truth = hugging_face({"qid": ["q", "r"], "retrieval_gt": [[["a"]], [["b"]]]}).select([1])
    assert groupgt.read_ground_truth(truth).qids == ["r"]


def test_a_relation_of_duckdb_is_truth_run_and_corpus() -> None:
    sql = pytest.importorskip("duckdb").connect().sql
    run = sql("SELECT * FROM (VALUES ('q', 'x', 0.9), ('q', 'a', 0.5), ('r', 'b', 0.1)) AS t(qid, doc_id, score)")
    truth = sql("SELECT * FROM (VALUES ('q', 'a', 1), ('r', 'b', 1)) AS t(qid, doc_id, grade)")
    corpus = sql("SELECT * FROM (VALUES ('a', 'one'), ('x', 'two'), ('b', 'three')) AS t(doc_id, contents)")
    found = groupgt.evaluate(truth, run, ["mrr", "recall@6chars"], corpus=corpus, convention="trec")
    # x and a fill six characters of q, b five of r.
    assert found.means == {"mrr": (1 / 2 + 1) / 2, "recall@6chars": 1.0}
