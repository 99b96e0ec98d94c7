"""What readers say of the same bad rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.evaluation.reading import read_ground_truth
from tests.snapshots import Snapshot

# Query, document, and the score or grade.
Row = tuple[Any, Any, Any]
# Two sound rows come before; "again" repeats one, "otherwise" contradicts it.
SOUND: list[Row] = [("q1", "d1", 1), ("q1", "d2", 1)]
BAD: dict[str, Row] = {
    "blank query": (" ", "d3", 1),
    "blank document": ("q2", " ", 1),
    "NUL in a query": ("q\0", "d3", 1),
    "line break in a document": ("q2", "d\n3", 1),
    "number as a query": (2.5, "d3", 1),
    "null as a document": ("q2", None, 1),
    "word as a number": ("q2", "d3", "x"),
    "NaN": ("q2", "d3", "nan"),
    "underscore": ("q2", "d3", "1_000"),
    "beyond the limit": ("q2", "d3", 2**31 + 1),
    "no number": ("q2", "d3", ""),
    "again": ("q1", "d2", 1),
    "otherwise": ("q1", "d2", 2),
}


def _lines(header: str, row: str, joint: str = "\n") -> Callable[[Iterable[Row]], str]:
    """A text with a line for each row; `row` is a format of q, d and n."""
    return lambda rows: header + joint.join(row.format(q=q, d=d, n=n) for q, d, n in rows) + "\n"


def _records(**keys: str) -> Callable[[Iterable[Row]], str]:
    """A JSON object a line; `keys` name the query, the document and the number."""
    return lambda rows: "".join(json.dumps(dict(zip(keys.values(), row))) + "\n" for row in rows)


def _by_query(row: str, begin: str, end: str) -> Callable[[Iterable[Row]], str]:
    """One JSON object keyed by query; `row` is a format of the document and the number, as JSON."""

    def text(rows: Iterable[Row]) -> str:
        queries: dict[str, list[str]] = {}
        for qid, document, number in rows:
            queries.setdefault(str(qid), []).append(row.format(d=json.dumps(str(document)), n=json.dumps(number)))
        return "{" + ", ".join(f"{json.dumps(q)}: {begin}{', '.join(cells)}{end}" for q, cells in queries.items()) + "}"

    return text


def _nested(rows: Iterable[Row]) -> str:
    """A line with a list for each query."""
    queries: dict[Any, list[Row]] = {}
    for row in rows:
        queries.setdefault(row[0], []).append(row)
    return "".join(
        json.dumps({"qid": q, "retrieved_ids": [row[1] for row in own], "retrieve_scores": [row[2] for row in own]})
        + "\n"
        for q, own in queries.items()
    )


TRUTHS: dict[str, Callable[[Iterable[Row]], str]] = {
    "csv": _lines("qid,group,doc_id,grade\n", "{q},1,{d},{n}"),
    "trec": _lines("", "{q} 0 {d} {n}"),
    "trec-subtopics": _lines("", "{q} 1 {d} {n}"),
    "beir": _records(q="query-id", d="corpus-id", n="score"),
    "json": _by_query("{d}: {n}", "{", "}"),
    "crux": lambda rows: "".join(json.dumps({"id": q, "docid": d, "rating": [n]}) + "\n" for q, d, n in rows),
}
RUNS: dict[str, Callable[[Iterable[Row]], str]] = {
    "csv": _lines("qid,doc_id,score\n", "{q},{d},{n}"),
    "trec": _lines("", "{q} Q0 {d} 1 {n} t"),
    "jsonl": _records(q="qid", d="doc_id", n="score"),
    "json": _by_query("{d}: {n}", "{", "}"),
    "csv, by rank, with calls": _lines("qid,doc_id,rank,call\n", "{q},{d},{n},{n}"),
    "jsonl, with calls": lambda rows: "".join(
        json.dumps({"qid": q, "doc_id": d, "rank": 1, "call": n}) + "\n" for q, d, n in rows
    ),
    "jsonl, nested": _nested,
    "json, lists": _by_query("{d}", "[", "]"),
}


def _cases(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What each case is called, and what reads it."""
    path = folder / "file"
    for name, row in BAD.items():
        for side, shapes in (("truth", TRUTHS), ("run", RUNS)):
            read = read_ground_truth if side == "truth" else groupgt.read_run
            for shape, text in shapes.items():
                path.write_text(text([*SOUND, row]), encoding="utf-8", newline="")
                yield f"{side}, {shape}: {name}", partial(read, path, shape.split(",")[0])
        if isinstance(row[0], str) and not isinstance(row[2], str):
            frame = pl.DataFrame([*SOUND, row], schema=["qid", "doc_id", "grade"], orient="row")
            yield f"truth, frame: {name}", partial(read_ground_truth, frame.with_columns(group=pl.lit("1")))
            results = frame.rename({"grade": "score"})
            yield f"run, frame: {name}", partial(groupgt.evaluate, {"q1": [["d1"]], "q2": [["d3"]]}, results, ["mrr"])


@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_what_readers_say_of_bad_rows(tmp_path: Path, snapshot: Snapshot) -> None:
    lines = []
    for name, read in _cases(tmp_path):
        try:
            read()
            text = "(read)"
        except groupgt.DataError as error:
            text = str(error).replace(str(tmp_path / "file"), "FILE").replace("\n", " | ")
        lines.append(f"{name}: {text}")
    snapshot(lines)
