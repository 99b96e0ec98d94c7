"""What results carry, and who carries them: the same values from lists, rows, columns and files."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.formats import source
from groupgt.labellers.base import Matches, Results
from groupgt.labellers.ids import Ids

METRICS = ["recall", "mrr", "ndcg.coverage", "precision.trec@2", "map.trec", "recall@60chars"]
Row = dict[str, Any]


def made(seed: int) -> tuple[dict[str, list[Any]], list[Row]]:
    """Places that overlap, parents that do not follow ids, equal scores, and results of one place twice."""
    rng = random.Random(seed)
    truth: dict[str, list[Any]] = {}
    rows: list[Row] = []
    for number in range(12):
        spans = [{"doc": f"d{rng.randrange(3)}", "start": at, "end": at + 10} for at in rng.sample(range(60), 4)]
        truth[f"q{number}"] = [spans[:1], spans[1:3], spans[3:]]
        for result in range(rng.randrange(1, 12)):
            start = rng.randrange(70)
            rows.append(
                {
                    "qid": f"q{number}",
                    "doc_id": f"r{result}",
                    "score": float(rng.randrange(4)),
                    "doc": f"d{rng.randrange(3)}",
                    "start": start,
                    "end": start + rng.randrange(1, 20),
                    "parent": f"d{rng.randrange(3)}",
                    "contents": "x" * rng.randrange(1, 40),
                }
            )
    return truth, rows


def in_order(rows: list[Row], ties: str) -> dict[str, list[Row]]:
    """Rows by query, best first: by score, then by descending id or as they came."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["qid"], []).append(row)
    for own in found.values():
        if ties == "id":
            own.sort(key=lambda row: row["doc_id"], reverse=True)
        own.sort(key=lambda row: -row["score"])
    return found


def carriers(rows: list[Row], ties: str, folder: Path) -> Iterator[tuple[str, Any]]:
    lists = in_order(rows, ties)
    yield (
        "lists",
        {
            qid: [
                {"id": row["doc_id"], "doc": row["doc"], "start": row["start"], "end": row["end"]}
                | {"parent": row["parent"], "text": row["contents"]}
                for row in own
            ]
            for qid, own in lists.items()
        },
    )
    nested = [
        {
            "qid": qid,
            "retrieved_ids": [row["doc_id"] for row in own],
            "retrieved_parents": [row["parent"] for row in own],
            "retrieved_spans": [{name: row[name] for name in ("doc", "start", "end")} for row in own],
            "retrieved_contents": [row["contents"] for row in own],
        }
        for qid, own in lists.items()
    ]
    frame = pl.DataFrame(rows)
    for name, text in (("rows.jsonl", rows), ("nested.jsonl", nested)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in text), encoding="utf-8")
        yield name, folder / name
    frame.write_csv(folder / "rows.csv")
    yield "rows.csv", folder / "rows.csv"
    frame.write_csv(folder / "rows.tsv", separator="\t")
    yield "rows.tsv", folder / "rows.tsv"
    frame.write_csv(folder / "semicolons.csv", separator=";")
    yield "semicolons.csv", folder / "semicolons.csv"
    frame.write_parquet(folder / "rows.parquet")
    yield "rows.parquet", folder / "rows.parquet"
    pl.DataFrame(nested).write_parquet(folder / "nested.parquet")
    yield "nested.parquet", folder / "nested.parquet"
    yield "frame", frame
    yield "lazy frame", frame.lazy()
    yield "places as doubles", frame.with_columns(pl.col("start", "end").cast(pl.Float64))


# Each labeller on one of the ways by default.
BY_DEFAULT = [
    ("spans", 0, True, "input"),
    ("joint", 0, False, "id"),
    ("parents", 0, False, "id"),
    ("text", 0, True, "input"),
]
EVERY = product(("spans", "joint", "parents", "text"), (0, 1, 2), (False, True), ("id", "input"))


@pytest.mark.parametrize(
    ("labeller", "seed", "large", "ties"),
    [case if case in BY_DEFAULT else pytest.param(*case, marks=pytest.mark.property) for case in EVERY],
)
def test_every_carrier_gives_the_same_bits(
    labeller: str, seed: int, large: bool, ties: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(source, "SMALL", 0)
    spans, rows = made(seed)
    truth: Any = spans
    if labeller == "parents":
        truth = {qid: [[cell["doc"] for cell in group] for group in groups] for qid, groups in spans.items()}
    elif labeller == "text":
        truth = {qid: [[{"text": "x" * (7 * n + 1)}] for n in range(len(groups))] for qid, groups in spans.items()}
    chosen = {
        "spans": {"use": "spans", "with": {"min_overlap": 0.3}},
        "joint": {"use": "spans", "with": {"joint": True}},
        "parents": "parents",
        "text": {"use": "text", "with": {"method": "token_recall"}},
    }[labeller]
    expected: groupgt.Evaluation | None = None
    for name, run in carriers(rows, ties, tmp_path):
        found = groupgt.evaluate(truth, run, METRICS, labeller=chosen, policy={"ties": ties, "duplicates": "penalize"})
        expected = expected or found
        for text, values in expected.values.items():
            assert np.array_equal(values, found.values[text], equal_nan=True), (name, text)
        ids = [row["id"] for row in expected.explain_dict("q1")["results"]]
        assert [row["id"] for row in found.explain_dict("q1")["results"]] == ids, name


class Noting(Ids):
    """The labeller `id`, which keeps what it is given to match, and may say that it looks at results."""

    def __init__(self, *, reads_results: bool) -> None:
        self.reads_results = reads_results
        self.given: list[Results | None] = []

    def match(self, truth: groupgt.GroundTruth, results: Results | None) -> Matches:
        self.given.append(results)
        return super().match(truth, results)


@pytest.mark.parametrize("kind", ["lists", "frame", "lines"])
def test_results_are_read_before_they_are_matched(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A labeller asks nobody: it gets the distinct results of queries with alternatives, or None."""
    monkeypatch.setattr(source, "SMALL", 0)
    rows = [("q", "b", 3.0), ("q", "a", 2.0), ("q", "b", 1.0), ("empty", "a", 1.0), ("extra", "a", 1.0)]
    ids = {"q": ["b", "a", "b"], "empty": ["a"], "extra": ["a"]}
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row").with_columns(contents=pl.lit("say"))
    (tmp_path / "run").write_text("".join(f"{qid} Q0 {name} 1 {score} t\n" for qid, name, score in rows))
    lists = {qid: [{"id": name, "text": "say"} for name in names] for qid, names in ids.items()}
    run: Any = {"lists": lists, "frame": frame, "lines": tmp_path / "run"}[kind]
    for reads_results in (False, True):
        labeller = Noting(reads_results=reads_results)
        table = groupgt.evaluate({"empty": [], "q": [["a"]]}, run, ["mrr"], labeller=labeller)
        assert table.means == {"mrr": 0.5}
        given = [each for each in labeller.given if each is not None]
        assert len(given) == (len(labeller.given) if reads_results else 0)
        for results in given:
            query, names = results.queries, results.names
            assert (query.tolist(), names) == ([1, 1], ["b", "a"])
            assert results.texts == [None if kind == "lines" else "say"] * 2


def test_dropping_repeats_of_parents_closes_gaps_alike() -> None:
    for seed in range(4):
        spans, rows = made(seed)
        truth = {qid: [[cell["doc"] for cell in group] for group in groups] for qid, groups in spans.items()}
        lists = {qid: [row["doc_id"] for row in own] for qid, own in in_order(rows, "id").items()}
        parents = {(row["qid"], row["doc_id"]): row["parent"] for row in rows}
        ranked = {qid: list(dict.fromkeys(parents[qid, name] for name in own)) for qid, own in lists.items()}
        policy = {"duplicates": "drop"}
        found = groupgt.evaluate(truth, pl.DataFrame(rows), METRICS[:5], labeller="parents", policy=policy)
        expected = groupgt.evaluate(truth, ranked, METRICS[:5])
        for text, values in expected.values.items():
            assert np.array_equal(values, found.values[text], equal_nan=True), text


TRUTH = {"q": [[{"doc": "d", "start": 0, "end": 10}]]}
WRONG: list[tuple[str, str, Any, str]] = [
    ("spans", "start", 1.5, "start"),
    ("spans", "start", -1, "start"),
    ("spans", "end", 10**13, "end"),
    ("spans", "end", None, "end"),
    ("parents", "parent", None, "parent"),
    ("parents", "parent", " ", "parent"),
]


@pytest.mark.parametrize(("labeller", "column", "cell", "words"), WRONG)
@pytest.mark.parametrize("kind", ["frame", "jsonl", "csv", "large csv", "parquet"])
def test_what_is_wrong_is_told_by_every_carrier(
    kind: str, labeller: str, column: str, cell: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"qid": "q", "doc_id": "d", "score": 2.0, "start": 0, "end": 10, "parent": "d"}
    rows = [row, {**row, "score": 1.0, column: cell}]
    frame = pl.DataFrame(rows, strict=False, infer_schema_length=None)
    run: Any = frame
    if "csv" in kind:
        monkeypatch.setattr(source, "SMALL", 0 if "large" in kind else source.SMALL)
        run = tmp_path / "run.csv"
        frame.write_csv(run)
    elif kind == "jsonl":
        run = tmp_path / "run.jsonl"
        run.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif kind == "parquet":
        run = tmp_path / "run.parquet"
        frame.write_parquet(run)
    truth: Any = TRUTH if labeller == "spans" else {"q": [["d"]]}
    with pytest.raises(groupgt.DataError, match=f"query 'q': .*expected .*{words}"):
        groupgt.evaluate(truth, run, ["recall"], labeller=labeller)
    # The same file does for ids, which read none of it.
    assert groupgt.evaluate({"q": [["d"]]}, run, ["recall"])["recall"] == 1


def test_many_hits_of_one_query_are_no_trap() -> None:
    """Results by the ten thousand that all hit, and as many chunks of one place."""
    count = 10_000
    ids = [f"c{number}" for number in range(count)]
    chunks = {name: ("d", number, number + 50) for number, name in enumerate(ids)}
    truth = {"q": [[{"doc": "d", "start": 0, "end": count}]]}
    for joint in (False, True):
        options = {"chunks": chunks, "joint": joint, "min_overlap": 40 / count}
        found = groupgt.evaluate(truth, {"q": ids}, ["mrr"], labeller={"use": "spans", "with": options})
        assert found["mrr"] == 1
    whole = {"chunks": chunks, "joint": True, "min_overlap": 1.0}
    # The last place is covered by the chunk that begins 50 before the end.
    found = groupgt.evaluate(truth, {"q": ids}, ["mrr"], labeller={"use": "spans", "with": whole})
    assert found["mrr"] == pytest.approx(1 / (count - 50 + 1))


def test_a_missing_text_of_pandas_is_no_text() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is in the extra groupgt[frames]")
    frame = pandas.DataFrame({"qid": ["q", "q"], "doc_id": ["a", "b"], "score": [2, 1], "contents": ["x", None]})
    truth = {"q": [[{"text": "nan"}]]}
    with pytest.raises(groupgt.DataError, match="needs the text of the result 'b'"):
        groupgt.evaluate(truth, frame, ["recall"], labeller="text")
    found = groupgt.evaluate(truth, frame, ["recall"], labeller="text", corpus={"b": "a nan indeed"})
    assert found["recall"] == 1
