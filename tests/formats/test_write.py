"""What a format cannot hold is refused before anything is written."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.formats import write


@pytest.mark.parametrize("qid", ["q", "#q", "q 1"])
@pytest.mark.parametrize("document", ["a", "a b", " a", "a "])
def test_trec_runs_hold_words_alone(qid: str, document: str, tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    rankings: list[Any] = [(qid, [document], [1.0])]
    if " " not in qid + document:
        write.write_run(path, rankings, "trec", tag="t")
        assert groupgt.read_run(path, "trec").rankings == {qid: ["a"]}
        return
    with pytest.raises(groupgt.DataError):
        write.write_run(path, rankings, "trec", tag="t")
    assert not path.exists()


@pytest.mark.parametrize(
    ("rankings", "fault"),
    [
        ([("q", ["a", "b"], [0.1, 0.7])], "'a' is ranked before 'b'"),
        ([("q", ["a", "b"], [0.5, 0.5])], "'a' is ranked before 'b'"),
        ([("q", ["a", "b"], [0.5, 0.3]), ("r", ["b"], None)], "query 'q' has scores, but 'r' has no scores"),
    ],
)
def test_scores_that_would_sort_a_trec_run_differently_are_left_out_and_that_is_told(
    rankings: list[Any], fault: str, tmp_path: Path
) -> None:
    assert fault in str(write.trec.run_fault(rankings))
    lost = write.write_run(tmp_path / "run.trec", rankings, "trec", tag="t")
    assert lost == ["these scores, which would sort the results differently"]
    lists = groupgt.read_run(tmp_path / "run.trec", "trec").lists
    assert lists.rankings["q"] == ["a", "b"]
    assert lists.scores is not None
    assert lists.scores["q"] == [1.0, 0.5]
    # In single precision, in which trec_eval compares, these two are equal.
    near = [("q", ["a", "b"], [1.0, 1.0 - 1e-12])]
    assert write.trec.run_fault(near) is None
    assert write.trec.run_fault(near, in_single=True) is not None


@pytest.mark.parametrize("format", ["trec", "trec-subtopics", "qrels-flat"])
@pytest.mark.parametrize(("qid", "document"), [("q 1", "a"), ("q", "a b"), ("q", " a")])
def test_qrels_hold_words_alone(format: str, qid: str, document: str, tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    with pytest.raises(groupgt.DataError):
        write.write_ground_truth(path, groupgt.GroundTruth.of({qid: [[document]]}), format)
    assert not path.exists()


@pytest.mark.parametrize("format", ["trec", "trec-subtopics"])
def test_query_ids_that_begin_like_comments_read_back(format: str, tmp_path: Path) -> None:
    truth = groupgt.GroundTruth.of({"#1": [["a"]], "2": [["b"]]}, shape="flat" if format == "trec" else "subtopics")
    write.write_ground_truth(tmp_path / "qrels", truth, format)
    assert dict(groupgt.read_ground_truth(tmp_path / "qrels", format).items()) == dict(truth.items())


def test_names_of_groups_are_kept_in_rows_and_what_is_lost_is_told(tmp_path: Path) -> None:
    def again(groups: list[Any], format: str = "trec-subtopics") -> tuple[list[str], list[Any]]:
        lost = write.write_ground_truth(
            tmp_path / "file", groupgt.GroundTruth.of({"q": groups}, shape="subtopics"), format
        )
        return lost, groupgt.read_ground_truth(tmp_path / "file", format)["q"]

    named = [{"alternatives": ["a"], "name": "2"}, {"alternatives": ["b"], "name": "x"}]
    assert again(named) == ([], named)
    assert again([["a"], {"alternatives": ["b"], "name": "x"}]) == ([], [["a"], {"alternatives": ["b"], "name": "x"}])
    spaced = [{"alternatives": ["a"], "name": "first world"}]
    assert again(spaced, "csv") == ([], spaced)
    lost, read = again(spaced)
    assert lost == ["blanks in group names (written as _)"]
    assert read == [{"alternatives": ["a"], "name": "first_world"}]
    # Two groups of one name have numbers.
    assert again([named[1], named[1]]) == (["the names of groups"], [["b"], ["b"]])


def test_columns_that_json_cannot_hold_are_written_as_text(tmp_path: Path) -> None:
    cells: dict[str, Any] = {
        "day": datetime.date(2024, 2, 29),
        "at": datetime.datetime(2024, 2, 29, 3),
        "price": Decimal("1.50"),
        "raw": b"a",
        "year": math.nan,
        "numbers": [0.5, math.nan],
    }
    rows = {"qid": ["q"], "retrieval_gt": [[["a"]]], **{name: [cell] for name, cell in cells.items()}}
    pl.DataFrame(rows).write_parquet(tmp_path / "t.parquet")
    truth = groupgt.read_ground_truth(tmp_path / "t.parquet")
    assert (truth.columns["day"], truth.columns["year"]) == ([cells["day"]], [None])
    write.jsonl.write_ground_truth(tmp_path / "t.jsonl", truth)
    written = groupgt.read_ground_truth(tmp_path / "t.jsonl").columns
    text = {"day": "2024-02-29", "at": "2024-02-29 03:00:00", "price": "1.50", "raw": "b'a'"}
    assert {name: column[0] for name, column in written.items()} == {**text, "year": None, "numbers": [0.5, None]}
