"""CSV and TSV that are bad, or only look so: runs, and tables of judgments."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from groupgt.formats import csv
from groupgt.runtime import zstd
from tests.bad_input import CSV, LONG, METRICS, TABLE, TREC, Cli, Outcome, fails, names, plain_outcome, put, swap

NOTED = b'qid,doc_id,score,note\nq1,d1,3.0,"a\nb"\nq1,x,2.0,\nq1,d2,1.0,n\nq2,y,2.0,n\nq2,d3,1.5,n\n'
BAD_CSV: list[tuple[str, bytes, int, tuple[str, ...]]] = [
    ("short row", swap(CSV, b"x,2.0", b"x"), 3, ("3 columns", "found 2")),
    ("long row", swap(CSV, b"2.0", b"2.0,7"), 3, ("3 columns", "found 4")),
    ("long first row", swap(CSV, b"3.0", b"3.0,7"), 2, ("3 columns", "found 4")),
    ("comment", swap(CSV, b"q2,y", b"# c\nq2,y"), 5, ("3 columns", "found 1")),
    ("blank id", swap(CSV, b",x,", b",  ,"), 3, ("query 'q1'", "blank")),
    ("empty id", swap(CSV, b",x,", b",,"), 3, ("query 'q1'", "blank")),
    ("empty id in quotes", swap(CSV, b",x,", b',"",'), 3, ("query 'q1'", "blank")),
    ("blank query", swap(CSV, b"q2,y", b" ,y"), 5, ("blank",)),
    ("empty query", swap(CSV, b"q2,y", b",y"), 5, ("blank",)),
    ("empty query in quotes", swap(CSV, b"q2,y", b'"",y'), 5, ("blank",)),
    ("NUL", swap(CSV, b"x", b"x\0"), 3, ("NUL",)),
    ("not UTF-8", swap(CSV, b"x", b"\xe9"), 3, ("UTF-8", "0xe9")),
    ("UTF-16", CSV.decode().encode("utf-16"), 1, ("UTF-8", "UTF-16")),
    ("long id", swap(CSV, b"x", LONG), 3, ("65,536", "query 'q1'")),
    ("long query", swap(CSV, b"q2,y", LONG + b",y"), 5, ("65,536",)),
    ("a line break in an id", swap(CSV, b"x", b'"x\ny"'), 3, ("query 'q1'", "U+000A")),
    ("lines ended by CR alone", CSV.replace(b"\n", b"\r"), 1, ("U+000D",)),
    ("one line ended by CR", swap(CSV, b"2.0\n", b"2.0\r"), 3, ("U+000D",)),
    ("CR twice", swap(CSV, b"2.0\n", b"2.0\r\r\n"), 3, ("U+000D",)),
    ("CR in an id", swap(CSV, b"x", b"x\ry"), 3, ("U+000D",)),
    ("CR in an id in quotes", swap(CSV, b"x", b'"x\ry"'), 3, ("query 'q1'", "U+000D")),
    ("CR after a quote", swap(CSV, b"x", b'"x"\r'), 3, ("U+000D",)),
    ("CR in the header", swap(CSV, b"qid,", b"qid\r,"), 1, ("U+000D",)),
    ("CR in the header in quotes", swap(CSV, b"qid,", b'"qid\r",'), 1, ("the 'qid' column is missing",)),
    ("CR twice after the header", swap(CSV, b"score\n", b"score\r\r\n"), 1, ("U+000D",)),
    ("CR before the header", b"\r" + CSV, 1, ("U+000D",)),
    ("a separator in the header", swap(CSV, b"score\n", "score\u2028\n".encode()), 1, ("'score' column is missing",)),
    ("open quote", swap(CSV, b"x", b'"x'), 3, ("CSV",)),
    ("letters after a quote", swap(CSV, b",x,", b',"x"y,'), 3, ("CSV",)),
    ("no score, no rank", b"qid,doc_id\nq1,d1\n", 1, ("score", "rank", "found qid, doc_id")),
    ("no document", b"qid,chunk,score\nq1,d1,1\n", 1, ("'doc_id'", "found qid, chunk, score", "doc_id=chunk")),
    ("one column twice", b"qid,doc_id,score,score\nq1,d1,1,2\nq1,d2,2,1\n", 1, ("score", "duplicate")),
    ("rank in words", b"qid,doc_id,rank\nq1,d1,1\nq1,d2,two\n", 3, ("query 'q1'", "rank", "'two'")),
    ("after a line break", NOTED.replace(b"1.5", b"abc"), 7, ("query 'q2'", "'abc'")),
    *(
        (f"score {text}", swap(CSV, b"2.0", text.encode()), 3, ("query 'q1'", "number", text))
        for text in ("1_000", "nan", "inf", "1e400", "0x10", "abc", "１", "")
    ),
]  # fmt: skip

GOOD_CSV: list[tuple[str, bytes]] = [
    ("CRLF", CSV.replace(b"\n", b"\r\n")),
    ("BOM", b"\xef\xbb\xbf" + CSV),
    ("blank lines", CSV.replace(b"\n", b"\n\n")),
    ("no last line end", CSV[:-1]),
    ("TSV", CSV.replace(b",", b"\t")),
    ("quoted header", swap(CSV, b"qid,doc_id,score", b'"qid","doc_id","score"')),
    ("blanks in the header", swap(CSV, b"qid,doc_id,score", b"qid, doc_id , score")),
    ("blanks around a score", swap(CSV, b"2.0", b" 2.0 ")),
    ("a line break in another column", NOTED),
    ("a comma in an id", swap(CSV, b"x", b'"x,y"')),
    ("a quote in an id", swap(CSV, b"x", b'"x""y"')),
    ("an empty cell in another column", b"qid,doc_id,score,tag\n" + CSV.split(b"\n", 1)[1].replace(b"\n", b",\n")),
    ("gzip", gzip.compress(CSV)),
    ("zstd", zstd.compress(CSV)),
]


@pytest.fixture
def plain(cli: Cli, truth: Path, size: str) -> Outcome:
    """What the file gives that the others mean."""
    return plain_outcome(cli, truth, "run.csv", CSV, size)


@pytest.mark.parametrize("case", BAD_CSV, ids=names(BAD_CSV))
def test_bad_csv(case: Any, cli: Cli, truth: Path, size: str) -> None:
    _, data, line, words = case
    path = put(truth.parent / "run.csv", data)
    fails(cli("evaluate", truth, path, *METRICS), f"{path}:{line}", *words)


@pytest.mark.parametrize("case", GOOD_CSV, ids=names(GOOD_CSV))
def test_csv_read_as_meant(case: Any, cli: Cli, truth: Path, plain: Outcome) -> None:
    assert cli("evaluate", truth, put(truth.parent / "run.csv", case[1]), *METRICS) == plain


def test_a_header_of_thousands_of_columns_is_not_for_polars(
    cli: Cli, truth: Path, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a time that grows with their square."""
    plain = cli("evaluate", truth, put(truth.parent / "run.csv", CSV), *METRICS)
    header, *rows = CSV.decode().splitlines()
    more = [f"c{number}" for number in range(2_000)]
    wide = "\n".join([",".join([header, *more]), *(row + "," * len(more) for row in rows)]) + "\n"
    monkeypatch.setattr(csv.pl, "scan_csv", None)
    assert cli("evaluate", truth, put(truth.parent / "run.csv", wide), *METRICS) == plain


def test_ids_stay_text(cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "run.csv", b"qid,doc_id,score\n1,007,2\n1,1e3,1\n")
    own = put(truth, '{"qid": "1", "retrieval_gt": [["007"], ["1e3"]]}\n')
    assert cli("evaluate", own, path, "-m", "recall", "--format", "csv").out == "metric,mean,queries\nrecall,1.0,1\n"


@pytest.mark.parametrize("data", [b"qid,doc_id,score\n", b"qid,doc_id,score"], ids=["line end", "no line end"])
def test_header_alone_is_empty(data: bytes, cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "run.csv", data)
    found = cli("evaluate", truth, path, *METRICS)
    assert found.status == 0
    assert str(path) in found.err
    assert "empty" in found.err


BAD_TABLES: list[tuple[str, bytes, int, tuple[str, ...]]] = [
    ("short row", swap(TABLE, b"d2,2", b"d2"), 3, ("4 columns", "found 3")),
    ("long row", swap(TABLE, b"d2,2", b"d2,2,2"), 3, ("4 columns", "found 5")),
    ("empty grade", swap(TABLE, b"d2,2", b"d2,"), 3, ("query 'q1'", "number", "''")),
    ("blank grade", swap(TABLE, b"d2,2", b"d2,  "), 3, ("query 'q1'", "number", "'  '")),
    ("CR in the header", swap(TABLE, b"group,", b"group\r,"), 1, ("U+000D",)),
    ("CR twice", swap(TABLE, b"d2,2", b"d2,2\r\r"), 3, ("U+000D",)),
    ("word", swap(TABLE, b"d2,2", b"d2,x"), 3, ("query 'q1'", "number", "'x'")),
    ("underscore", swap(TABLE, b"d2,2", b"d2,1_0"), 3, ("query 'q1'", "'1_0'")),
    ("NaN", swap(TABLE, b"d2,2", b"d2,nan"), 3, ("query 'q1'", "'nan'")),
    ("beyond 2^31", swap(TABLE, b"d2,2", b"d2,1e10"), 3, ("query 'q1'", "2^31", "'1e10'")),
    ("blank id", swap(TABLE, b"d2", b" "), 3, ("query 'q1'", "blank")),
    ("NUL", swap(TABLE, b"d2", b"d\0"), 3, ("NUL",)),
    ("not UTF-8", swap(TABLE, b"d2", b"d\xe9"), 3, ("UTF-8", "0xe9")),
    ("long id", swap(TABLE, b"d2", LONG), 3, ("query 'q1'", "65,536")),
    ("another header", swap(TABLE, b"qid", b"who"), 1, ("'qid'", "found who, group, doc_id, grade")),
    ("one column twice", swap(TABLE, b"grade", b"doc_id"), 1, ("doc_id", "duplicate")),
    ("a line break in an id", swap(TABLE, b"d2", b'"d\n2"'), 3, ("query 'q1'", "U+000A")),
    ("open quote", swap(TABLE, b"d2", b'"d2'), 3, ("CSV",)),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_TABLES, ids=names(BAD_TABLES))
def test_bad_table_of_judgments(case: Any, cli: Cli, tmp_path: Path) -> None:
    _, data, line, words = case
    path = put(tmp_path / "truth.csv", data)
    fails(cli("evaluate", path, put(tmp_path / "run.trec", TREC), *METRICS), f"{path}:{line}", *words)


def test_a_blank_of_another_script_is_no_empty_line(cli: Cli, truth: Path, size: str) -> None:
    found = cli("evaluate", truth, put(truth.with_name("run.csv"), "\u3000;".encode()), "-m", "recall")
    assert found.status == 2
    assert "run.csv" in found.err
