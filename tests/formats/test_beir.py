"""Folders of BEIR and MTEB: qrels of every kind, with the questions and the corpus beside them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.formats.corpus import read_chunks, read_corpus

ROWS: list[dict[str, Any]] = [
    {"query-id": "1", "corpus-id": "d1", "score": 1},
    {"query-id": "1", "corpus-id": "d2", "score": 0},
    {"query-id": "2", "corpus-id": "d 3", "score": 2},
]
GROUPS = {"1": [["d1"], [{"id": "d2", "grade": 0}]], "2": [[{"id": "d 3", "grade": 2}]]}
TREC_ROWS = "1 0 d1 1\n1 0 d2 0\n2\t0\td-3\t2\n"


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


TABLE = b"query-id\tcorpus-id\tscore\n1\td1\t1\n1\td2\t0\n2\td 3\t2\n"
QRELS = {
    "test.tsv": TABLE,
    "test.tsv.gz": gzip.compress(TABLE),
    "test.jsonl": lines(ROWS),
    "dev.tsv": TABLE,
    "test.txt": TREC_ROWS.encode(),
    "test.qrels": TREC_ROWS.encode(),
}
QUERIES = [{"_id": "1", "text": "What?"}, {"_id": "2", "text": "Who?"}]
CORPUS = [{"_id": "d1", "title": "T", "text": "one"}, {"_id": "d2", "title": "", "text": "two"}]


def folder(path: Path, name: str, data: bytes) -> Path:
    (path / "qrels").mkdir(parents=True)
    (path / "qrels" / name).write_bytes(data)
    (path / "queries.jsonl").write_bytes(lines(QUERIES))
    (path / "corpus.jsonl").write_bytes(lines(CORPUS))
    return path


@pytest.mark.parametrize("name", QRELS)
def test_every_kind_of_qrels(tmp_path: Path, name: str) -> None:
    place = folder(tmp_path / "data", name, QRELS[name])
    groups = GROUPS if b"query-id" in QRELS[name] or ".gz" in name else {**GROUPS, "2": [[{"id": "d-3", "grade": 2}]]}
    for path in (place, place / "qrels" / name):
        truth = groupgt.read_ground_truth(path, None if b"query-id" in QRELS[name] or path == place else "beir")
        assert dict(truth.items()) == groups
        assert truth.texts == ["What?", "Who?"]
    assert read_corpus(place) == {"d1": "T\none", "d2": "two"}


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    for name, rows in (("qrels", ROWS), ("queries", QUERIES), ("corpus", CORPUS)):
        (tmp_path / name).mkdir()
        pl.DataFrame(rows).write_parquet(tmp_path / name / "test-00000-of-00001.parquet")
    pl.DataFrame(ROWS[:1]).write_parquet(tmp_path / "qrels" / "dev-00000-of-00001.parquet")
    truth = groupgt.read_ground_truth(tmp_path)
    assert dict(truth.items()) == GROUPS
    assert truth.texts == ["What?", "Who?"]
    assert len(groupgt.read_ground_truth(tmp_path / "qrels" / "dev-00000-of-00001.parquet")) == 1
    assert read_corpus(tmp_path) == {"d1": "T\none", "d2": "two"}
    assert read_chunks(tmp_path, optional=True) is None


def test_records_may_have_integers_as_ids_and_no_score(tmp_path: Path) -> None:
    path = tmp_path / "relevance.jsonl"
    path.write_bytes(lines([{"query-id": 7, "corpus-id": 8}]))
    assert dict(groupgt.read_ground_truth(path).items()) == {"7": [["8"]]}


def test_three_columns_need_no_header_line_in_a_folder(tmp_path: Path) -> None:
    """Even of one row, for nothing else has this layout."""
    assert dict(groupgt.read_ground_truth(folder(tmp_path / "marco", "dev.tsv", b"1\td1\t2\n")).items()) == {
        "1": [[{"id": "d1", "grade": 2}]]
    }


def refused(capsys: pytest.CaptureFixture[str], truth: Path) -> str:
    run = truth.parent / "run.trec"
    run.write_text("1 Q0 d1 1 1 t\n")
    with pytest.raises(SystemExit) as end:
        main(["evaluate", str(truth), str(run), "-m", "recall"])
    assert end.value.code == 2
    return capsys.readouterr().err


BAD = {
    "test.jsonl": (
        lines(
            [
                {"query-id": None, "corpus-id": "d", "score": 1},
                ROWS[0],
                {**ROWS[0], "score": 9},
                {**ROWS[1], "score": True},
            ]
        ),
        ["expected an id (a string or integer) as qid, found null", "'d1' has grade 9", "of 'd2', found True"],
    ),
    "test.txt": (b"1 0 d1 x\n", ["expected a number within ±2^31 as the relevance of 'd1', found 'x'"]),
    "test.tsv": (b"1\td1\tyes\n", ["the columns qid, retrieval_gt are missing", "is the header line missing?"]),
}


@pytest.mark.parametrize("name", BAD)
def test_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    data, words = BAD[name]
    told = refused(capsys, folder(tmp_path / "data", name, data))
    assert f"{name}:" in told
    assert all(part in told for part in words)


def test_of_several_splits_one_must_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = folder(tmp_path / "data", "train.tsv", TABLE)
    (place / "qrels" / "dev.tsv").write_bytes(TABLE)
    (place / "qrels" / "notes.md").write_text("none\n")
    assert "expected one split or qrels/test.tsv" in refused(capsys, place)
    (place / "qrels" / "test.tsv").write_bytes(TABLE)
    assert len(groupgt.read_ground_truth(place)) == 2
