"""Bad input, as a user meets it: an exit status, a message that names the place, and never a traceback.

Text files are read by two readers, one for small files and one for large ones; every case goes through both.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zstandard

import groupgt
from groupgt.cli.main import main
from groupgt.formats import csv, source

TRUTH = '{"qid": "q1", "retrieval_gt": [["d1"], ["d2"]]}\n{"qid": "q2", "retrieval_gt": [["d3"]]}\n'
TREC = b"q1 Q0 d1 1 3.0 t\nq1 Q0 x 2 2.0 t\nq1 Q0 d2 3 1.0 t\nq2 Q0 y 1 2.0 t\nq2 Q0 d3 2 1.5 t\n"
CSV = b"qid,doc_id,score\nq1,d1,3.0\nq1,x,2.0\nq1,d2,1.0\nq2,y,2.0\nq2,d3,1.5\n"
QRELS = b"q1 0 d1 1\nq1 0 d2 2\nq2 0 d3 1\n"
METRICS = ("-m", "recall@1,mrr,map,ndcg", "--format", "csv")
LONG = b"d" * 65_537


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs the command line in this process; anything but an exit is a failure of the test."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        status: object = 0
        with warnings.catch_warnings():
            try:
                main([str(argument) for argument in arguments])
            except SystemExit as end:
                status = end.code or 0
        captured = capsys.readouterr()
        assert isinstance(status, int)
        assert "Traceback" not in captured.err
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture(params=["small", pytest.param("large", marks=pytest.mark.property), "huge"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All readers of text files: `large` and `huge` make every file count as one that is."""
    if request.param != "small":
        monkeypatch.setattr(source, "SMALL", 0)
    if request.param == "huge":
        monkeypatch.setattr(source, "HUGE", 0)
    return str(request.param)


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "truth.jsonl"
    path.write_text(TRUTH, encoding="utf-8")
    return path


def put(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def swap(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new, 1)


def fails(outcome: Outcome, *words: object) -> None:
    """Status 2, nothing on stdout, and every word in a message of a bearable length."""
    assert outcome.status == 2, outcome
    assert outcome.out == ""
    missing = [str(word) for word in words if str(word) not in outcome.err]
    assert not missing, f"{missing} not in: {outcome.err[:1000]}"
    assert len(outcome.err) < 5_000


def names(cases: list[Any]) -> list[str]:
    return [str(case[0]) for case in cases]


# --- TREC runs ---------------------------------------------------------------------------------------------------

SCORES_BAD = [
    "abc", "1_000", "nan", "NaN", "inf", "-inf", "infinity", "1e400", "-1e400", "0x10", "0x1p3", "1,5", "--1", "+-1",
    "1e", ".", ".e1", "1d5", "1f", "1.5.5", "True", "null", '""', "１", "٣", "9" * 400,
]  # fmt: skip
SCORES_GOOD = ["+1.5", "1.", ".5", "+.5", "-.5e-3", "1e5", "1E5", "1e+5", "1e-400", "-0", "00012", "1e0005"]

# What is wrong, the file, the line, and what the message must say.
BAD_RUNS: list[tuple[str, bytes, int | None, tuple[str, ...]]] = [
    ("four columns", swap(TREC, b"x 2 2.0 t", b"x 2"), 2, ("6 columns", "found 4")),
    ("five columns", swap(TREC, b"2.0 t", b"2.0"), 2, ("6 columns", "found 5")),
    ("five columns and a blank", swap(TREC, b"2.0 t", b"2.0 "), 2, ("6 columns", "found 5")),
    ("five columns in CRLF", swap(TREC, b"2.0 t", b"2.0").replace(b"\n", b"\r\n"), 2, ("6 columns", "found 5")),
    ("five columns, tabs", swap(TREC, b"2.0 t", b"2.0").replace(b" ", b"\t"), 2, ("6 columns", "found 5")),
    ("blank id, tabs", swap(TREC.replace(b" ", b"\t"), b"\tx\t", b"\t\t"), 2, ("6 columns", "found 5")),
    ("eleven columns", swap(TREC, b"2.0 t", b"2.0 t a b c d e"), 2, ("6 columns", "found 11")),
    ("eleven columns in every line", TREC.replace(b"0 t", b"0 t a b c d e"), 1, ("6 columns", "found 11", "joined")),
    ("two lines joined", swap(TREC, b"2.0 t\n", b"2.0 t"), 2, ("6 columns", "found 11", "joined")),
    ("two files joined", TREC[:-1] + TREC, 5, ("6 columns", "found 11", "joined")),
    ("a blank in an id", swap(TREC, b"x 2", b"x y 2"), 2, ("query 'q1'", "found 7", "blank")),
    ("a blank in every id", TREC.replace(b" Q0 ", b" Q0 a "), 1, ("query 'q1'", "found 7", "blank")),
    ("a number as the tag, and one more", swap(TREC, b"2.0 t", b"2.0 7 t"), 2, ("query 'q1'", "found 7", "sixth")),
    ("numbers as tags, and one more", TREC.replace(b"0 t\n", b"0 7 t\n"), 1, ("query 'q1'", "found 7", "sixth")),
    ("rank missing", swap(TREC, b"Q0 x 2 2.0 t", b"Q0 x 2.5 t u"), 2, ("query 'q1'", "rank", "'2.5'")),
    ("rank in words", swap(TREC, b"x 2", b"x two"), 2, ("query 'q1'", "rank", "'two'")),
    ("score for a rank", swap(TREC, b"x 2", b"x 0.9"), 2, ("query 'q1'", "rank", "'0.9'")),
    ("lines ended by CR alone", TREC.replace(b"\n", b"\r"), 1, ("U+000D",)),
    ("one line ended by CR", swap(TREC, b"2.0 t\n", b"2.0 t\r"), 2, ("U+000D",)),
    ("CR in an id", swap(TREC, b"x 2", b"x\ry 2"), 2, ("U+000D",)),
    ("CR in an id, CRLF", swap(TREC.replace(b"\n", b"\r\n"), b"x 2", b"x\ry 2"), 2, ("U+000D",)),
    ("CR twice", swap(TREC.replace(b"\n", b"\r\n"), b"2.0 t\r", b"2.0 t\r\r"), 2, ("U+000D",)),
    ("BOM later on", TREC + b"\xef\xbb\xbf" + TREC.replace(b"q", b"r"), 6, ("U+FEFF",)),
    *(
        (f"U+{ord(letter):04X} in an id", swap(TREC, b"d2", f"d{letter}2".encode()), 3, (f"U+{ord(letter):04X}",))
        for letter in "\x01\x1c\x1f\x7f\x80\x85\x9f\u2028\u2029\ufeff"
    ),
    *(
        (f"U+{ord(letter):04X} alone", swap(TREC, b"d2", letter.encode()), 3, ("blank",))
        for letter in "\x1c\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000"
    ),
    ("one column", swap(TREC, b"q2 Q0 y 1 2.0 t", b"q2"), 4, ("6 columns", "found 1")),
    ("after a blank line", swap(TREC, b"q1 Q0 x 2 2.0 t", b"\nq1 Q0 x 2 abc t"), 3, ("query 'q1'", "'abc'")),
    ("after a BOM", b"\xef\xbb\xbf" + swap(TREC, b"2.0", b"abc"), 2, ("query 'q1'", "'abc'")),
    ("not UTF-8", swap(TREC, b"d2", b"d\xe92"), 3, ("UTF-8", "0xe9")),
    ("not UTF-8 in the query", swap(TREC, b"q2", b"q\xe92"), 4, ("UTF-8", "0xe9")),
    ("not UTF-8 in the second column", swap(TREC, b"Q0 y", b"Q\xe9 y"), 4, ("UTF-8", "0xe9")),
    ("not UTF-8 in the rank", swap(TREC, b"y 1", b"y \xe9"), 4, ("UTF-8", "0xe9")),
    ("not UTF-8 in the tag", swap(TREC, b"1.0 t", b"1.0 \xe9"), 3, ("UTF-8", "0xe9")),
    ("a surrogate in UTF-8", swap(TREC, b"d2", b"d\xed\xa0\x80"), 3, ("UTF-8", "0xed")),
    ("UTF-16 with its mark", TREC.decode().encode("utf-16"), 1, ("UTF-8", "UTF-16")),
    ("UTF-16 without", TREC.decode().encode("utf-16-le"), 1, ("NUL",)),
    ("NUL in an id", swap(TREC, b"d2", b"d\x002"), 3, ("NUL",)),
    ("NUL in a query", swap(TREC, b"q2", b"q\x002"), 4, ("NUL",)),
    ("long id", swap(TREC, b"d2", LONG), 3, ("65,536", "'q1'")),
    ("long id of two-byte letters", swap(TREC, b"d2", "é".encode() * 32_769), 3, ("65,536", "'q1'")),
    ("long query", swap(TREC, b"q2", LONG), 4, ("65,536",)),
    *(
        (f"score {text[:12]}", swap(TREC, b"2.0", text.encode()), 2, ("query 'q1'", "number", text[:100]))
        for text in SCORES_BAD
    ),
]  # fmt: skip

GOOD_RUNS: list[tuple[str, bytes]] = [
    ("CRLF", TREC.replace(b"\n", b"\r\n")),
    ("BOM", b"\xef\xbb\xbf" + TREC),
    ("BOM and CRLF", b"\xef\xbb\xbf" + TREC.replace(b"\n", b"\r\n")),
    ("no last line end", TREC[:-1]),
    ("blank lines", TREC.replace(b"\n", b"\n\n")),
    ("lines of blanks", TREC.replace(b"\n", b"\n   \n")),
    ("blank line first", b"\n" + TREC),
    ("tabs", TREC.replace(b" ", b"\t")),
    ("trailing blanks", TREC.replace(b"\n", b"  \n")),
    ("leading blanks", b" " + TREC.replace(b"\n", b"\n ")),
    ("tabs, then blanks", swap(TREC, b"q1 Q0 d1 1 3.0 t", b"q1\tQ0\td1\t1\t3.0\tt")),
    ("blanks, then tabs", swap(TREC, b"q2 Q0 y 1 2.0 t", b"q2\tQ0\ty\t1\t2.0\tt")),
    ("tab in the middle", swap(TREC, b"q1 Q0 x 2 2.0 t", b"q1 Q0 x\t2 2.0 t")),
    ("two blanks after one query", swap(TREC, b"q1 Q0", b"q1  Q0")),
    ("two blanks after every query", TREC.replace(b" Q0", b"  Q0")),
    ("two blanks before the id", TREC.replace(b"Q0 ", b"Q0  ")),
    ("two blanks before one rank", swap(TREC, b"d1 1", b"d1  1")),
    ("two blanks before every rank", re.sub(rb" (\d) ", rb"  \1 ", TREC)),
    ("two blanks before the score", TREC.replace(b" 2.0", b"  2.0")),
    ("two blanks before the tag", TREC.replace(b"0 t", b"0  t")),
    ("two blanks everywhere", TREC.replace(b" ", b"  ")),
    ("tabs and a blank after the id", TREC.replace(b" ", b"\t").replace(b"d1\t", b"d1 \t")),
    ("tabs and a blank after the query", TREC.replace(b" ", b"\t").replace(b"q1\t", b"q1 \t")),
    ("tab in the middle, more columns", swap(TREC, b"q1 Q0 x 2 2.0 t", b"q1 Q0 x\t2 2.0 t 7 9")),
    ("more columns", TREC.replace(b" t\n", b" t a b c\n")),
    ("ten columns", TREC.replace(b" t\n", b" t a b c d\n")),
    ("more columns, tabs", TREC.replace(b" ", b"\t").replace(b"\tt\n", b"\tt\ta\n")),
    ("more columns in the first line", swap(TREC, b"3.0 t", b"3.0 t a b")),
    ("more columns in a later line", swap(TREC, b"1.5 t", b"1.5 t a b")),
    ("quotes", TREC.replace(b" x ", b' "x ')),
    ("rank is not looked at", TREC.replace(b"d1 1", b"d1 99")),
    ("odd ranks", TREC.replace(b"d1 1", b"d1 +1").replace(b"x 2", b"x 2.0").replace(b"d2 3", b"d2 -3.")),
    ("a rank beyond 64 bits", TREC.replace(b"d1 1", b"d1 " + b"9" * 30)),
    ("marks that are no controls", TREC.replace(b"x", "\u200bx\u200e\u00ad".encode())),
    ("CR after the last line", TREC[:-1] + b"\r"),
    ("CRLF after the last line alone", TREC[:-1] + b"\r\n"),
    ("gzip", gzip.compress(TREC)),
    ("zstd", zstandard.compress(TREC)),
    ("gzip in two members", gzip.compress(TREC[:20]) + gzip.compress(TREC[20:])),
    ("zstd in two frames", zstandard.compress(TREC[:20]) + zstandard.compress(TREC[20:])),
    ("gzip padded with zeros", gzip.compress(TREC) + b"\0" * 20),
    ("gzip with a BOM", gzip.compress(b"\xef\xbb\xbf" + TREC)),
    ("zstd with a BOM", zstandard.compress(b"\xef\xbb\xbf" + TREC)),
    ("gzip with CRLF", gzip.compress(TREC.replace(b"\n", b"\r\n"))),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_RUNS, ids=names(BAD_RUNS))
def test_bad_run(case: Any, cli: Cli, truth: Path, size: str) -> None:
    _, data, line, words = case
    path = put(truth.parent / "run.trec", data)
    fails(cli("evaluate", truth, path, *METRICS), f"{path}:{line}", *words)


@pytest.mark.parametrize("case", GOOD_RUNS, ids=names(GOOD_RUNS))
def test_run_read_as_meant(case: Any, cli: Cli, truth: Path, size: str) -> None:
    plain = cli("evaluate", truth, put(truth.parent / "run.trec", TREC), *METRICS)
    assert plain.status == 0
    assert cli("evaluate", truth, put(truth.parent / "run.trec", case[1]), *METRICS) == plain


@pytest.mark.parametrize("text", SCORES_GOOD)
def test_odd_spellings_of_scores(text: str, cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "run.trec", swap(TREC, b"2.0", text.encode()))
    found = cli("evaluate", truth, path, *METRICS)
    meant = put(truth.parent / "run.trec", swap(TREC, b"2.0", repr(float(text)).encode()))
    assert found.status == 0
    assert found == cli("evaluate", truth, meant, *METRICS)


@pytest.mark.parametrize("letters", ["x" * 65_536, "é" * 32_768])
def test_longest_id(letters: str, cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "run.trec", swap(TREC, b"x 2", f"{letters} 2".encode()))
    assert cli("evaluate", truth, path, *METRICS).status == 0


def test_comment_in_a_run_is_no_result(cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "run.trec", b"# a comment\n" + TREC)
    fails(cli("evaluate", truth, path, *METRICS), f"{path}:1", "6 columns", "found 3")


@pytest.mark.parametrize("command", ["explain", "explain --format json", "misses", "check", "evaluate"])
@pytest.mark.parametrize("case", ["blank line first", "two blanks after every query", "CRLF", "BOM", "tabs"])
def test_other_commands_read_alike(
    case: str, command: str, cli: Cli, truth: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(truth.parent / "run.trec", dict(GOOD_RUNS)[case])
    name, *options = command.split()
    arguments = (name, truth, path, *options, *(("--query", "q1") if name == "explain" else ()))
    small = cli(*arguments)
    monkeypatch.setattr(source, "SMALL", 0)
    assert small.status == 0
    assert cli(*arguments) == small


@pytest.mark.parametrize("case", ["blank line first", "two blanks before every rank", "CRLF", "BOM"])
@pytest.mark.parametrize("to", ["trec", "csv", "jsonl", "parquet"])
def test_convert_reads_alike(case: str, to: str, cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "run.trec", dict(GOOD_RUNS)[case])
    assert cli("convert", path, truth.parent / "again", "--to", to).status == 0
    plain = cli("evaluate", truth, put(path, TREC), *METRICS)
    again = put(path, (truth.parent / "again").read_bytes())
    assert cli("evaluate", truth, again, *METRICS).out == plain.out


def test_no_match_and_a_doubtful_line(cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "run.trec", b"\n" + TREC.replace(b"d", b"D"))
    found = cli("evaluate", truth, path, *METRICS)
    assert found.status == 0
    assert "'d1' in the ground truth, 'D1' in the results" in found.err


# --- CSV runs ----------------------------------------------------------------------------------------------------

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
    ("CR in the header in quotes", swap(CSV, b"qid,", b'"qid\r",'), 1, ("the column 'qid' is missing",)),
    ("CR twice after the header", swap(CSV, b"score\n", b"score\r\r\n"), 1, ("U+000D",)),
    ("CR before the header", b"\r" + CSV, 1, ("U+000D",)),
    ("a separator in the header", swap(CSV, b"score\n", "score\u2028\n".encode()), 1, ("'score' is missing",)),
    ("open quote", swap(CSV, b"x", b'"x'), 3, ("CSV",)),
    ("letters after a quote", swap(CSV, b",x,", b',"x"y,'), 3, ("CSV",)),
    ("no score, no rank", b"qid,doc_id\nq1,d1\n", 1, ("score", "rank", "found qid, doc_id")),
    ("no document", b"qid,doc,score\nq1,d1,1\n", 1, ("'doc_id'", "found qid, doc, score")),
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
    ("zstd", zstandard.compress(CSV)),
]


@pytest.mark.parametrize("case", BAD_CSV, ids=names(BAD_CSV))
def test_bad_csv(case: Any, cli: Cli, truth: Path, size: str) -> None:
    _, data, line, words = case
    path = put(truth.parent / "run.csv", data)
    fails(cli("evaluate", truth, path, *METRICS), f"{path}:{line}", *words)


@pytest.mark.parametrize("case", GOOD_CSV, ids=names(GOOD_CSV))
def test_csv_read_as_meant(case: Any, cli: Cli, truth: Path, size: str) -> None:
    plain = cli("evaluate", truth, put(truth.parent / "run.csv", CSV), *METRICS)
    assert plain.status == 0
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


# --- JSON Lines --------------------------------------------------------------------------------------------------

BAD_JSON_RUNS: list[tuple[str, str, tuple[str, ...]]] = [
    ("no list", '{"qid": "q1", "retrieved_ids": "d1"}', ("query 'q1'", "list", "'d1'")),
    ("float id", '{"qid": "q1", "retrieved_ids": [1.5]}', ("query 'q1'", "rank 1", "1.5")),
    ("bool id", '{"qid": "q1", "retrieved_ids": [true]}', ("query 'q1'", "rank 1", "True")),
    ("blank id", '{"qid": "q1", "retrieved_ids": ["d1", " "]}', ("query 'q1'", "rank 2", "blank")),
    ("NUL in an id", '{"qid": "q1", "retrieved_ids": ["d\\u0000"]}', ("query 'q1'", "NUL")),
    ("lone surrogate", '{"qid": "q1", "retrieved_ids": ["d\\ud800"]}', ("surrogate",)),
    ("lone surrogate, capitals", '{"qid": "q1", "retrieved_ids": ["d\\uDFFF"]}', ("surrogate",)),
    ("lone surrogate in the query", '{"qid": "q\\ud800", "retrieved_ids": ["d"]}', ("surrogate",)),
    ("long id", json.dumps({"qid": "q1", "retrieved_ids": [LONG.decode()]}), ("query 'q1'", "65,536")),
    ("too many scores", '{"qid": "q1", "retrieved_ids": ["a"], "retrieve_scores": [1, 2]}', ("query 'q1'", "found 2")),
    ("a NaN score", '{"qid": "q1", "retrieved_ids": ["a"], "retrieve_scores": [NaN]}', ("NaN",)),
    ("scores that are no list", '{"qid": "q1", "retrieved_ids": ["a"], "retrieve_scores": 5}', ("query 'q1'", "5")),
    ("text as score", '{"qid": "q1", "doc_id": "d1", "score": "1"}', ("query 'q1'", "number", "'1'")),
    ("NaN", '{"qid": "q1", "doc_id": "d1", "score": NaN}', ("NaN",)),
    ("score beyond doubles", '{"qid": "q1", "doc_id": "d1", "score": 1e400}', ("query 'q1'", "number", "inf")),
    ("integer beyond doubles", '{"qid": "q1", "doc_id": "d1", "score": 1%s}' % ("0" * 400), ("query 'q1'", "number")),
    ("integer of 5,000 digits", '{"qid": "q1", "doc_id": "d1", "score": %s}' % ("9" * 5_000), ("digits",)),
    ("no score", '{"qid": "q1", "doc_id": "d1"}', ("query 'q1'", "score", "rank", "neither")),
    ("float query", '{"qid": 1.5, "doc_id": "d1", "score": 1}', ("qid", "1.5")),
    ("NUL in the query", '{"qid": "q\\u0000", "doc_id": "d1", "score": 1}', ("NUL",)),
    ("one key twice", '{"qid": "q1", "qid": "q2", "retrieved_ids": ["a"]}', ("'qid'", "duplicate")),
    ("no JSON", '{"qid": "q1", "retrieved_ids": ["a"]', ("JSON",)),
    ("deep nesting", '{"qid": "q1", "retrieved_ids": %s}' % ("[" * 100_000 + "]" * 100_000), ("nesting",)),
    ("another query twice", '{"qid": "q0", "retrieved_ids": ["a"]}', ("query 'q0'", "duplicate")),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_JSON_RUNS, ids=names(BAD_JSON_RUNS))
def test_bad_json_run(case: Any, cli: Cli, truth: Path) -> None:
    _, line, words = case
    path = put(truth.parent / "run.jsonl", '{"qid": "q0", "retrieved_ids": ["d1"]}\n' + line + "\n")
    fails(cli("evaluate", truth, path, *METRICS), f"{path}:2", *words)


@pytest.mark.parametrize(
    "lines",
    [
        '{"qid": "q1", "retrieved_ids": ["d1"]}\n{"qid": "q1", "doc_id": "d1", "score": 1}\n',
        '{"qid": "q1", "doc_id": "d1", "score": 5}\n{"qid": "q1", "doc_id": "x", "rank": 1}\n',
    ],
    ids=["nested and long", "score and rank"],
)
def test_two_kinds_of_lines(lines: str, cli: Cli, truth: Path) -> None:
    path = put(truth.parent / "run.jsonl", lines)
    fails(cli("evaluate", truth, path, *METRICS), path)


BAD_GROUPS: list[tuple[str, str, tuple[str, ...]]] = [
    ("no list", "5", ("query 'q1'", "list of groups", "5")),
    ("text", '"d1"', ("query 'q1'", "list of groups", "'d1'")),
    ("flat", '["d1", "d2"]', ("query 'q1'", "flat", "flat_gt")),
    ("mixed", '["d1", ["d2"]]', ("query 'q1'", "mixed")),
    ("empty group", '[["d1"], []]', ("query 'q1'", "empty_groups")),
    ("blank id", '[["d1", " "]]', ("query 'q1'", "blank", "empty_groups")),
    ("null id", '[["d1", null]]', ("query 'q1'", "blank", "empty_groups")),
    ("float id", "[[1.0]]", ("query 'q1'", "1.0")),
    ("bool id", "[[true]]", ("query 'q1'", "True")),
    ("three levels", '[[["d1"]]]', ("query 'q1'", "['d1']")),
    ("NUL", '[["d\\u0000"]]', ("query 'q1'", "NUL")),
    ("lone surrogate", '[["d\\ud800"]]', ("surrogate",)),
    ("long id", f'[["{LONG.decode()}"]]', ("query 'q1'", "65,536")),
    ("grade beyond 2^31", '[[{"id": "d1", "grade": 2147483649}]]', ("query 'q1'", "2^31", "2147483649")),
    ("grade below -2^31", '[[{"id": "d1", "grade": -2147483649}]]', ("query 'q1'", "2^31", "-2147483649")),
    ("infinite grade", '[[{"id": "d1", "grade": 1e400}]]', ("query 'q1'", "2^31", "inf")),
    ("integer grade beyond doubles", '[[{"id": "d1", "grade": 1%s}]]' % ("0" * 400), ("query 'q1'", "2^31")),
    ("grade in words", '[[{"id": "d1", "grade": "2"}]]', ("query 'q1'", "'2'")),
    ("weight 0", '[{"alternatives": ["d1"], "weight": 0}]', ("query 'q1'", "weight", "0")),
    ("weight beyond doubles", '[{"alternatives": ["d1"], "weight": 1%s}]' % ("0" * 400), ("query 'q1'", "weight")),
    ("unknown key", '[{"alternatives": ["d1"], "wait": 2}]', ("query 'q1'", "wait")),
    ("alternatives and ids", '[{"alternatives": ["d1"], "ids": ["d2"]}]', ("query 'q1'", "ids")),
    ("NaN", "NaN", ("NaN",)),
    ("deep nesting", "[" * 100_000 + "]" * 100_000, ("nesting",)),
    ("deep, below Python's limit", "[" * 900 + "]" * 900, ("query 'q1'",)),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_GROUPS, ids=names(BAD_GROUPS))
def test_bad_groups(case: Any, cli: Cli, truth: Path) -> None:
    _, groups, words = case
    put(truth, '{"qid": "q0", "retrieval_gt": [["d1"]]}\n{"qid": "q1", "retrieval_gt": ' + groups + "}\n")
    run = put(truth.parent / "run.trec", TREC)
    fails(cli("evaluate", truth, run, *METRICS), f"{truth}:2", *words)


BAD_JSON_TRUTH: list[tuple[str, bytes, tuple[str, ...]]] = [
    ("query twice", b'{"qid": "q0", "retrieval_gt": [["d1"]]}', ("query 'q0'", "duplicate")),
    ("key twice", b'{"qid": "q1", "qid": "q2", "retrieval_gt": [["d1"]]}', ("'qid'", "duplicate")),
    ("no ground truth", b'{"qid": "q1"}', ("retrieval_gt", "found qid")),
    ("no query", b'{"retrieval_gt": [["d1"]]}', ("qid", "found retrieval_gt")),
    ("float query", b'{"qid": 1.0, "retrieval_gt": [["d1"]]}', ("query id", "1.0")),
    ("blank query", b'{"qid": " ", "retrieval_gt": [["d1"]]}', ("query id", "' '")),
    ("an array", b'[{"qid": "q1"}]', ("JSON object",)),
    ("not UTF-8", b'{"qid": "q1", "retrieval_gt": [["d\xe9"]]}', ("UTF-8", "0xe9")),
    ("NUL", b'{"qid": "q1", "retrieval_gt": [["d\x00"]]}', ("NUL",)),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_JSON_TRUTH, ids=names(BAD_JSON_TRUTH))
def test_bad_json_truth(case: Any, cli: Cli, truth: Path) -> None:
    _, line, words = case
    put(truth, b'{"qid": "q0", "retrieval_gt": [["d1"]]}\n' + line + b"\n")
    fails(cli("evaluate", truth, put(truth.parent / "run.trec", TREC), *METRICS), f"{truth}:2", *words)


# --- qrels, CSV and BEIR judgments -------------------------------------------------------------------------------

BAD_QRELS: list[tuple[str, bytes, int, tuple[str, ...]]] = [
    ("three columns", swap(QRELS, b"d2 2", b"d2"), 2, ("4 columns", "found 3")),
    ("five columns", swap(QRELS, b"d2 2", b"d2 2 7"), 2, ("4 columns", "found 5")),
    ("word", swap(QRELS, b"d2 2", b"d2 x"), 2, ("query 'q1'", "number", "'d2'", "'x'")),
    ("underscore", swap(QRELS, b"d2 2", b"d2 1_000"), 2, ("query 'q1'", "'1_000'")),
    ("NaN", swap(QRELS, b"d2 2", b"d2 nan"), 2, ("query 'q1'", "'nan'")),
    ("infinite", swap(QRELS, b"d2 2", b"d2 1e400"), 2, ("query 'q1'", "'1e400'")),
    ("hexadecimal", swap(QRELS, b"d2 2", b"d2 0x1"), 2, ("query 'q1'", "'0x1'")),
    ("beyond 2^31", swap(QRELS, b"d2 2", b"d2 2147483649"), 2, ("query 'q1'", "2^31", "2147483649")),
    ("below -2^31", swap(QRELS, b"d2 2", b"d2 -2147483649"), 2, ("query 'q1'", "2^31", "-2147483649")),
    ("judged twice", swap(QRELS, b"d2 2", b"d1 1"), 2, ("query 'q1'", "'d1'", "twice", "line 1")),
    ("NUL", swap(QRELS, b"d2", b"d\0"), 2, ("NUL",)),
    ("not UTF-8", swap(QRELS, b"d2", b"d\xe9"), 2, ("UTF-8", "0xe9")),
    ("UTF-16", QRELS.decode().encode("utf-16"), 1, ("UTF-8", "UTF-16")),
    ("long id", swap(QRELS, b"d2", LONG), 2, ("65,536",)),
    ("long query", swap(QRELS, b"q2", LONG), 3, ("65,536",)),
]  # fmt: skip

GOOD_QRELS = [
    ("CRLF", QRELS.replace(b"\n", b"\r\n")),
    ("BOM", b"\xef\xbb\xbf" + QRELS),
    ("blank lines", b"\n" + QRELS.replace(b"\n", b"\n \n")),
    ("comments", b"# one\n" + swap(QRELS, b"q2", b"#two\n  # three words here\nq2")),
    ("comment after a BOM", b"\xef\xbb\xbf# one\n" + QRELS),
    ("tabs", QRELS.replace(b" ", b"\t")),
    ("mixed blanks", b" " + QRELS.replace(b" ", b" \t ").replace(b"\n", b" \n")),
    ("no last line end", QRELS[:-1]),
    ("fractions", swap(QRELS, b"d2 2", b"d2 0.5")),
    ("plus", swap(QRELS, b"d2 2", b"d2 +2")),
    ("2^31", swap(QRELS, b"d2 2", b"d2 2147483648")),
    ("judged, not relevant", QRELS + b"q1 0 z 0\nq2 0 z -1\n"),
    ("gzip", gzip.compress(QRELS)),
    ("zstd", zstandard.compress(QRELS)),
]


@pytest.mark.parametrize("case", BAD_QRELS, ids=names(BAD_QRELS))
def test_bad_qrels(case: Any, cli: Cli, tmp_path: Path, size: str) -> None:
    _, data, line, words = case
    path = put(tmp_path / "qrels.txt", data)
    fails(cli("evaluate", path, put(tmp_path / "run.trec", TREC), *METRICS), f"{path}:{line}", *words)


@pytest.mark.parametrize("case", GOOD_QRELS, ids=names(GOOD_QRELS))
def test_qrels_read_as_meant(case: Any, cli: Cli, tmp_path: Path, size: str) -> None:
    path, run = put(tmp_path / "qrels.txt", QRELS), put(tmp_path / "run.trec", TREC)
    plain = cli("evaluate", path, run, *METRICS)
    assert plain.status == 0
    assert cli("evaluate", put(path, case[1]), run, *METRICS) == plain


def test_fractional_relevance_counts(cli: Cli, tmp_path: Path) -> None:
    path = put(tmp_path / "qrels.txt", b"q1 0 d1 0.5\nq1 0 d2 1.5\n")
    run = put(tmp_path / "run.trec", TREC)
    found = cli("evaluate", path, run, "-m", "dcg", "--format", "csv")
    assert float(found.out.splitlines()[1].split(",")[1]) == pytest.approx(0.5 + 1.5 / 2)


TABLE = b"qid,group,doc_id,grade\nq1,1,d1,1\nq1,2,d2,2\nq2,1,d3,1\n"
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
    ("another header", swap(TABLE, b"qid", b"query"), 1, ("'qid'", "found query, group, doc_id, grade")),
    ("one column twice", swap(TABLE, b"grade", b"doc_id"), 1, ("doc_id", "duplicate")),
    ("a line break in an id", swap(TABLE, b"d2", b'"d\n2"'), 3, ("query 'q1'", "U+000A")),
    ("open quote", swap(TABLE, b"d2", b'"d2'), 3, ("CSV",)),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_TABLES, ids=names(BAD_TABLES))
def test_bad_table_of_judgments(case: Any, cli: Cli, tmp_path: Path) -> None:
    _, data, line, words = case
    path = put(tmp_path / "truth.csv", data)
    fails(cli("evaluate", path, put(tmp_path / "run.trec", TREC), *METRICS), f"{path}:{line}", *words)


def test_bad_beir_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    put(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "?"}\n')
    path = put(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\tx\nq1\td2\t1\nq1\td2\t1\n")
    run = put(tmp_path / "run.trec", TREC)
    found = cli("evaluate", tmp_path, run, *METRICS)
    fails(found, "2 faults", f"{path}:2", "query 'q1'", "'x'", f"{path}:4", "'d2'", "twice")


def test_a_folder_that_is_no_ground_truth(cli: Cli, tmp_path: Path) -> None:
    fails(cli("evaluate", tmp_path, put(tmp_path / "run.trec", TREC), *METRICS), tmp_path, "BEIR folder")


# --- Damage ------------------------------------------------------------------------------------------------------

BIG = QRELS + b"".join(b"q3 0 z%d 1\n" % i for i in range(5_000))
GZIP, ZSTD = gzip.compress(BIG, mtime=0), zstandard.ZstdCompressor(write_checksum=True).compress(BIG)


def flipped(data: bytes, at: int) -> bytes:
    out = bytearray(data)
    out[at] ^= 0x10
    return bytes(out)


DAMAGED = [
    ("gzip", "cut in the middle", GZIP[: len(GZIP) // 2]),
    ("gzip", "cut by its length", GZIP[:-4]),
    ("gzip", "cut by its checksum", GZIP[:-8]),
    ("gzip", "cut in its header", GZIP[:5]),
    ("gzip", "flipped", flipped(GZIP, len(GZIP) // 2)),
    ("gzip", "flipped in its checksum", flipped(GZIP, len(GZIP) - 6)),
    ("gzip", "followed by letters", GZIP + b"letters"),
    ("zstd", "cut in the middle", ZSTD[: len(ZSTD) // 2]),
    ("zstd", "cut by one byte", ZSTD[:-1]),
    ("zstd", "cut in its header", ZSTD[:6]),
    ("zstd", "cut in its second frame", ZSTD + zstandard.compress(TREC)[:-3]),
    ("zstd", "flipped", flipped(ZSTD, len(ZSTD) // 2)),
    ("zstd", "flipped in its checksum", flipped(ZSTD, len(ZSTD) - 1)),
    ("zstd", "followed by letters", ZSTD + b"letters"),
]


@pytest.mark.parametrize(("kind", "how", "data"), DAMAGED, ids=[f"{kind} {how}" for kind, how, _ in DAMAGED])
@pytest.mark.parametrize("side", ["truth", "run"])
def test_damaged(side: str, kind: str, how: str, data: bytes, cli: Cli, truth: Path, size: str) -> None:
    path, run = put(truth.parent / "damaged", data), put(truth.parent / "run.trec", TREC)
    if side == "run":
        found = cli("evaluate", truth, path, "--run-format", "trec", *METRICS)
    else:
        found = cli("evaluate", path, run, "--truth-format", "trec", *METRICS)
    fails(found, path, kind, "damaged or cut off")


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (swap(TREC, b"d2", b"d\x002"), 3, "NUL"),
        (swap(TREC, b"d2", b"d\xe92"), 3, "UTF-8"),
        (TREC.decode().encode("utf-16"), 1, "UTF-16"),
        (swap(TREC, b"2.0", b"1_000"), 2, "'1_000'"),
    ],
    ids=["NUL", "not UTF-8", "UTF-16", "score"],
)
def test_faults_in_compressed_files(
    data: bytes, line: int, words: str, compress: Callable[[bytes], bytes], cli: Cli, truth: Path, size: str
) -> None:
    path = put(truth.parent / "run.trec", compress(data))
    fails(cli("evaluate", truth, path, *METRICS), f"{path}:{line}", words)


@pytest.mark.parametrize("data", [b"", b"\n \n", gzip.compress(b""), zstandard.compress(b"")], ids=list("0bgz"))
@pytest.mark.parametrize("side", ["truth", "run"])
def test_empty_file(side: str, data: bytes, cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "empty", data)
    run = put(truth.parent / "run.trec", TREC)
    found = cli("evaluate", *((truth, path) if side == "run" else (path, run)), "-m", "recall", "--format", "csv")
    assert f"{path}: the file is empty: 0 " in found.err
    if side == "truth":
        assert (found.status, found.out) == (2, "")
        assert f"{path}: the ground truth is empty" in found.err
        return
    assert found.status == 0
    assert found.out == "metric,mean,queries\nrecall,0.0,2\n"


def test_noise(cli: Cli, truth: Path, size: str) -> None:
    noise = bytes((7 * i * i + i // 3) % 256 for i in range(600))
    for data in (noise, noise + b"\n" + noise, b"a\rb\n" + noise, b"\x89PNG\r\n\x1a\n\0\0", b"BZh9" + noise):
        path = put(truth.parent / "noise", data)
        fails(cli("evaluate", truth, path, *METRICS), path)
        fails(cli("evaluate", path, path, *METRICS), path)


# --- Parquet -----------------------------------------------------------------------------------------------------

ROWS: dict[str, list[Any]] = {
    "qid": ["q1", "q1", "q1", "q2", "q2"],
    "doc_id": ["d1", "x", "d2", "y", "d3"],
    "score": [3.0, 2.0, 1.0, 2.0, 1.5],
}
NAN = float("nan")


def pyarrow() -> Any:
    """It writes what polars does not: checksums of pages, and files with faults."""
    return pytest.importorskip("pyarrow", reason="pyarrow is in the extra groupgt[frames]")


def write(path: Path, columns: Any, **options: Any) -> Path:
    arrow, parquet = pyarrow(), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(columns if isinstance(columns, arrow.Table) else arrow.table(columns), path, **options)
    return path


def with_cell(name: str, value: Any) -> dict[str, list[Any]]:
    return {**ROWS, name: [*ROWS[name][:2], value, *ROWS[name][3:]]}


BAD_ROWS: list[tuple[str, Any, tuple[str, ...]]] = [
    ("NaN", with_cell("score", NAN), ("row 3", "query 'q1'", "number", "nan")),
    ("infinite", with_cell("score", math.inf), ("row 3", "query 'q1'", "number", "inf")),
    ("no score", with_cell("score", None), ("row 3", "query 'q1'", "number")),
    ("no id", with_cell("doc_id", None), ("row 3", "query 'q1'", "null")),
    ("no query", with_cell("qid", None), ("row 3", "null")),
    ("blank id", with_cell("doc_id", " "), ("row 3", "query 'q1'", "blank")),
    ("empty id", with_cell("doc_id", ""), ("row 3", "query 'q1'", "blank")),
    ("blank query", with_cell("qid", " "), ("row 3", "blank")),
    ("NUL", with_cell("doc_id", "d\0"), ("row 3", "query 'q1'", "NUL")),
    ("NUL in the query", with_cell("qid", "q\0"), ("row 3", "NUL")),
    ("long id", with_cell("doc_id", LONG.decode()), ("row 3", "query 'q1'", "65,536")),
    ("long query", with_cell("qid", LONG.decode()), ("row 3", "65,536")),
    ("scores in words", {**ROWS, "score": ["1", "2", "3", "4", "5"]}, ("'score'", "numbers", "String")),
    ("float ids", {**ROWS, "doc_id": [1.0, 2.0, 3.0, 4.0, 5.0]}, ("'doc_id'", "strings or integers", "Float64")),
    ("bool ids", {**ROWS, "doc_id": [True] * 5}, ("'doc_id'", "strings or integers", "Boolean")),
    ("float queries", {**ROWS, "qid": [1.0] * 5}, ("'qid'", "strings or integers", "Float64")),
    ("no score at all", {"qid": ["q1"], "doc_id": ["d1"]}, ("score or rank", "found qid, doc_id")),
    ("nested: float id", {"qid": ["q2", "q1"], "retrieved_ids": [[1.0], [2.0]]}, ("query 'q2'", "query 'q1'")),
    ("nested: no id", {"qid": ["q0", "q1"], "retrieved_ids": [["a"], [None]]}, ("query 'q1'", "rank 1")),
    ("nested: blank id", {"qid": ["q0", "q1"], "retrieved_ids": [["a"], ["b", " "]]}, ("query 'q1'", "blank")),
    ("nested: NUL", {"qid": ["q0", "q1"], "retrieved_ids": [["a"], ["b\0"]]}, ("query 'q1'", "NUL")),
    ("nested: long id", {"qid": ["q0", "q1"], "retrieved_ids": [["a"], [LONG.decode()]]}, ("query 'q1'", "65,536")),
    ("nested: no list", {"qid": ["q2", "q1"], "retrieved_ids": ["a", "b"]}, ("query 'q2'", "list", "'a'")),
    ("nested: blank id, no truth", {"qid": ["q1", "q9"], "retrieved_ids": [["a"], [" "]]}, ("query 'q9'",)),
    ("nested: query twice", {"qid": ["q1", "q1"], "retrieved_ids": [["a"], ["b"]]}, ("query 'q1'", "two rows")),
    ("nested: blank query", {"qid": ["q0", " "], "retrieved_ids": [["a"], ["b"]]}, ("blank",)),
    (
        "nested: NaN score",
        {"qid": ["q0", "q1"], "retrieved_ids": [["a"], ["b"]], "retrieve_scores": [[1.0], [NAN]]},
        ("query 'q1'", "finite"),
    ),
    (
        "nested: too many scores",
        {"qid": ["q0", "q1"], "retrieved_ids": [["a"], ["b"]], "retrieve_scores": [[1.0], [1.0, 2.0]]},
        ("query 'q1'", "found 2"),
    ),
    ("node output, too long", {"retrieved_ids": [["a"], ["b"], ["c"]]}, ("expected 2 rows", "found 3")),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_ROWS, ids=names(BAD_ROWS))
def test_bad_parquet_run(case: Any, cli: Cli, truth: Path) -> None:
    _, columns, words = case
    path = write(truth.parent / "run.parquet", columns)
    fails(cli("evaluate", truth, path, *METRICS), path, *words)


GT = {"qid": ["q0", "q1"], "retrieval_gt": [[["d1"]], [["d2"]]]}
BAD_QA: list[tuple[str, Any, tuple[str, ...]]] = [
    ("flat", {**GT, "retrieval_gt": [["d1"], ["d2"]]}, ("row 1", "query 'q0'", "flat_gt", "2 faults")),
    ("text", {**GT, "retrieval_gt": ["d1", "d2"]}, ("row 1", "query 'q0'", "'d1'", "2 faults")),
    ("float ids", {**GT, "retrieval_gt": [[[1.0]], [[2.0]]]}, ("row 1", "query 'q0'", "1.0", "2 faults")),
    ("empty group", {**GT, "retrieval_gt": [[["d1"]], [["d2"], []]]}, ("row 2", "query 'q1'", "empty_groups")),
    ("no id", {**GT, "retrieval_gt": [[["d1"]], [["d2", None]]]}, ("row 2", "query 'q1'", "empty_groups")),
    ("NUL", {**GT, "retrieval_gt": [[["d1"]], [["d\0"]]]}, ("row 2", "query 'q1'", "NUL")),
    ("long id", {**GT, "retrieval_gt": [[["d1"]], [[LONG.decode()]]]}, ("row 2", "query 'q1'", "65,536")),
    ("NUL in the query", {**GT, "qid": ["q0", "q\0"]}, ("row 2", "NUL")),
    ("long query", {**GT, "qid": ["q0", LONG.decode()]}, ("row 2", "65,536")),
    ("query twice", {**GT, "qid": ["q1", "q1"]}, ("row 2", "query 'q1'", "duplicate")),
    ("no query", {**GT, "qid": ["q0", None]}, ("row 2", "query id", "None")),
    ("float queries", {**GT, "qid": [0.0, 1.0]}, ("'qid'", "strings or integers", "Float64")),
    ("grade beyond 2^31", {"qid": ["q1"], "group": ["1"], "doc_id": ["a"], "grade": [1e10]}, ("row 1", "'q1'", "2^31")),
    ("NaN grade", {"qid": ["q1"], "group": ["1"], "doc_id": ["a"], "grade": [NAN]}, ("row 1", "query 'q1'", "nan")),
    ("grade in words", {"qid": ["q1"], "group": ["1"], "doc_id": ["a"], "grade": ["x"]}, ("grade", "number")),
    ("row without an id", {"qid": ["q1", "q1"], "group": ["1", "1"], "doc_id": ["a", None]}, ("row 2", "'q1'")),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_QA, ids=names(BAD_QA))
def test_bad_parquet_truth(case: Any, cli: Cli, tmp_path: Path) -> None:
    _, columns, words = case
    path = write(tmp_path / "qa.parquet", columns)
    fails(cli("evaluate", path, put(tmp_path / "run.trec", TREC), *METRICS), path, *words)


def test_parquet_without_rows_is_empty(cli: Cli, truth: Path) -> None:
    pa = pyarrow()
    schema = pa.schema([("qid", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])
    path = write(truth.parent / "run.parquet", schema.empty_table())
    found = cli("evaluate", truth, path, "-m", "recall", "--format", "csv")
    assert found.status == 0
    assert found.out == "metric,mean,queries\nrecall,0.0,2\n"
    assert "empty" in found.err


@pytest.mark.parametrize("side", ["truth", "run"])
def test_truncated_parquet(side: str, cli: Cli, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    whole = write(truth.parent / "whole.parquet", GT if side == "truth" else ROWS).read_bytes()
    for cut in (5, 8, 12, len(whole) // 3, len(whole) // 2, len(whole) - 9, len(whole) - 8, len(whole) - 1):
        path = put(truth.parent / "cut.parquet", whole[:cut])
        found = cli("evaluate", *((path, run) if side == "truth" else (truth, path)), *METRICS)
        fails(found, path, "damaged or cut off")


@pytest.mark.parametrize("side", ["truth", "run"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_flipped_pages(side: str, compression: str, cli: Cli, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    path = write(
        truth.parent / "own.parquet", GT if side == "truth" else ROWS, compression=compression, write_page_checksum=True
    )
    arguments = ("evaluate", *((path, run) if side == "truth" else (truth, path)), *METRICS)
    assert cli(*arguments).status == 0
    whole = path.read_bytes()
    group = pytest.importorskip("pyarrow.parquet").read_metadata(path).row_group(0)
    for column in map(group.column, range(group.num_columns)):
        start = column.dictionary_page_offset or column.data_page_offset
        # The last byte of a chunk lies in a data page, never in a header.
        put(path, flipped(whole, start + column.total_compressed_size - 1))
        fails(cli(*arguments), path, "checksum", column.path_in_schema.split(".")[0])


@pytest.mark.parametrize("side", ["truth", "run"])
def test_a_flipped_bit_anywhere(side: str, cli: Cli, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    path = write(
        truth.parent / "own.parquet", GT if side == "truth" else ROWS, write_page_checksum=True, store_schema=False
    )
    arguments = ("evaluate", *((path, run) if side == "truth" else (truth, path)), *METRICS)
    plain = cli(*arguments)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    wrong: list[tuple[int, str]] = []
    for at in range(4, len(whole), 3):
        data = bytearray(whole)
        data[at] ^= 1 << at % 8
        put(path, bytes(data))
        try:
            found = cli(*arguments)
        except BaseException as error:  # polars' panics are no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            wrong.append((at, f"{type(error).__name__}: {str(error)[:60]}"))
            continue
        if found.status not in (0, 2) or (found.status == 0 and at < footer and found.out != plain.out):
            wrong.append((at, found.out + found.err))
    assert not wrong


# --- Several faults of one file ----------------------------------------------------------------------------------


def many(*, alike: bool) -> Iterator[tuple[str, str, bytes | dict[str, list[Any]]]]:
    """Files with fifteen faults of one kind, which may be alike to the letter: side, name and content."""
    number = range(15)
    wrong = [5 if alike else 100 + i for i in number]
    qids, ids, nans = [f"q{i}" for i in number], [f"d{i}" for i in number], [NAN] * 15
    json_run = "".join(f'{{"qid": "q{i}", "retrieved_ids": {wrong[i]}}}\n' for i in number).encode()
    json_truth = "".join(f'{{"qid": "q{i}", "retrieval_gt": {wrong[i]}}}\n' for i in number).encode()
    cut = b"".join(b'{"qid"\n' if alike else b'{"qid": ' + b"1" * (i + 1) + b"\n" for i in number)

    def lines(form: bytes) -> bytes:
        return b"".join(form % b"%d" % i if not alike else form % b"" for i in number)

    yield "run", "run.trec", TREC + lines(b"q1 Q0 d 1 x%s t\n")
    yield "run", "run.csv", CSV + lines(b"q1,d,x%s\n")
    yield "run", "run.jsonl", json_run
    yield "truth", "qrels.txt", QRELS + lines(b"q1 0 d x%s\n")
    yield "truth", "truth.csv", TABLE + lines(b"q1,1,d,x%s\n")
    yield "truth", "truth.jsonl", json_truth
    yield "truth", "json.jsonl", TRUTH.encode() + cut
    groups = [["x"] if alike else [f"x{i}"] for i in number]
    yield "truth", "qa.parquet", {"qid": qids, "retrieval_gt": groups}
    yield "truth", "beir.tsv", b"query-id\tcorpus-id\tscore\n" + lines(b"q1\td1\tx%s\n")
    yield "run", "nested.parquet", {"qid": qids, "retrieved_ids": [[1.5] if alike else [i + 0.5] for i in number]}
    if alike:
        yield "run", "columns.trec", TREC + b"q1 Q0\n" * 15
        yield "run", "run.parquet", {"qid": ["q1"] * 15, "doc_id": ids, "score": nans}


MANY = [(*each, how) for how, alike in (("times", True), ("like this", False)) for each in many(alike=alike)]


@pytest.mark.parametrize(("side", "name", "data", "how"), MANY, ids=[f"{name} {how}" for _, name, _, how in MANY])
def test_one_kind_of_fault_is_told_once(
    side: str, name: str, data: Any, how: str, cli: Cli, tmp_path: Path, size: str
) -> None:
    path = write(tmp_path / name, data) if isinstance(data, dict) else put(tmp_path / name, data)
    judged = "".join(f'{{"qid": "q{i}", "retrieval_gt": [["d1"]]}}\n' for i in range(15))
    other = put(tmp_path / "other", TREC.decode() if side == "truth" else judged)
    found = cli("evaluate", *((path, other) if side == "truth" else (other, path)), *METRICS)
    fails(found, str(path), f"(15 {how}; also at ")
    assert len(found.err.splitlines()) == 1


def test_subtopics_read_as_plain_qrels_are_one_line(cli: Cli, tmp_path: Path) -> None:
    lines = [f"{topic} {group} d{n} 1\n" for topic in range(40) for n in range(20) for group in range(3)]
    path, run = put(tmp_path / "topics.qrels", "".join(lines)), put(tmp_path / "run.trec", TREC)
    found = cli("evaluate", path, run, *METRICS)
    fails(found, f"{path}:2", "'d0' is judged twice", "--truth-format trec-subtopics (1,600 like this; also at ")
    assert len(found.err.splitlines()) == 1
    assert cli("evaluate", path, run, "--truth-format", "trec-subtopics", *METRICS).status == 0


# --- Ids that nearly match ---------------------------------------------------------------------------------------

NEAR = [
    ("case", "Doc-1", "doc-1"),
    ("blank", "d1", " d1"),
    ("trailing blank", "d1 ", "d1"),
    ("NFC and NFD", "caf\u00e9", "cafe\u0301"),
    ("NFD and NFC", "cafe\u0301", "caf\u00e9"),
    ("integer and float", "7", "7.0"),
    ("float and integer", "7.0", "7"),
    ("leading zeros", "7", "007"),
]


@pytest.mark.parametrize(("ours", "theirs"), [each[1:] for each in NEAR], ids=names(NEAR))
@pytest.mark.parametrize("which", ["document", "query"])
def test_nearly_matching_ids(which: str, ours: str, theirs: str, cli: Cli, tmp_path: Path, size: str) -> None:
    in_truth, in_run = (("q1", ours), ("q1", theirs)) if which == "document" else ((ours, "d"), (theirs, "d"))
    truth = put(tmp_path / "truth.jsonl", json.dumps({"qid": in_truth[0], "retrieval_gt": [[in_truth[1]]]}))
    run = put(tmp_path / "run.csv", f'qid,doc_id,score\n"{in_run[0]}","{in_run[1]}",1\n')
    found = cli("evaluate", truth, run, "-m", "recall", "--format", "csv")
    assert found.status == 0
    assert found.out == "metric,mean,queries\nrecall,0.0,1\n"
    assert f"{which} ids nearly match" in found.err
    assert "warning" in found.err


def test_an_exact_match_elsewhere_is_no_doubt(cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "run.trec", TREC.replace(b"d1", b"D1"))
    assert cli("evaluate", truth, path, *METRICS).err == ""


def test_nearly_matching_ids_in_the_library() -> None:
    with pytest.warns(groupgt.GroupgtWarning, match=r"nearly match: 'A' in the ground truth, 'a' in the results"):
        found = groupgt.evaluate({"q": [["A"]]}, {"q": ["a"]}, ["recall"])
    assert found["recall"] == 0


# --- Sizes and languages -----------------------------------------------------------------------------------------


def test_many_results_and_a_high_k(cli: Cli, tmp_path: Path, size: str) -> None:
    truth = put(tmp_path / "truth.jsonl", '{"qid": "q1", "retrieval_gt": [["d0"], ["d199999"]]}\n')
    run = put(tmp_path / "run.trec", "".join(f"q1 Q0 d{i} {i + 1} {-i} t\n" for i in range(200_000)))
    metrics = "recall,mrr,map,precision.trec,ndcg.coverage,alpha_dcg,err_ia,p_ia,rbp"
    found = cli("evaluate", truth, run, "-m", metrics, "-k", "1000000000000,1", "--format", "json")
    assert found.status == 0
    rows = json.loads(found.out)["runs"][0]["metrics"]
    means = {name: row["mean"] for name, row in rows.items()}
    assert means["recall@1000000000000"] == 1
    assert means["mrr@1000000000000"] == pytest.approx((1 + 1 / 200_000) / 2)
    assert means["precision.trec@1000000000000"] == pytest.approx(2e-12)
    assert means["recall@1"] == 0.5


@pytest.mark.parametrize("k", ["0", "-1", "x", "1.0", "1e3", "", "٣", "9" * 30, "9" * 5_000, str(1 << 63)])
def test_impossible_k(k: str, cli: Cli, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    fails(cli("evaluate", truth, run, "-m", "recall", "-k", k), "-k", k[:20])


@pytest.mark.parametrize("metric", ["recall@0", "recall@-1", "recall@5@10", "recall@x", "recall@" + "9" * 5_000])
def test_impossible_cutoff(metric: str, cli: Cli, truth: Path) -> None:
    fails(cli("evaluate", truth, put(truth.parent / "run.trec", TREC), "-m", metric), metric[:20], "cutoff")


LANGUAGES = [
    "文档", "مستند", "документ", "दस्तावेज़", "เอกสาร", "😀👩‍👩‍👧", "é", "e\u0301x", "\u202eabc", "ﬁ", "İ",
    "=1+1", "#1", "'\"",
]  # fmt: skip


def test_ids_of_every_language(cli: Cli, tmp_path: Path, size: str) -> None:
    truth = put(tmp_path / "t.jsonl", json.dumps({"qid": "питання", "retrieval_gt": [[each] for each in LANGUAGES]}))
    rows = list(enumerate(LANGUAGES, 1))
    files = [
        put(tmp_path / "one.trec", "".join(f"питання Q0 {each} {rank} {-rank} t\n" for rank, each in rows)),
        put(tmp_path / "two.tsv", "qid\tdoc_id\trank\n" + "".join(f'питання\t"{e}"\t{r}\n' for r, e in rows[:-1])),
        put(tmp_path / "three.jsonl", json.dumps({"qid": "питання", "retrieved_ids": LANGUAGES})),
        write(tmp_path / "four.parquet", {"qid": ["питання"], "retrieved_ids": [LANGUAGES]}),
    ]
    found = cli("evaluate", truth, *files, "-m", "hits", "--format", "csv")
    assert found.out == "run,hits\none,14.0\ntwo,13.0\nthree,14.0\nfour,14.0\n"


def test_paths_with_blanks_and_letters(cli: Cli, tmp_path: Path, size: str) -> None:
    folder = tmp_path / "with blank" / "ünï 日本"
    folder.mkdir(parents=True)
    truth, run = put(folder / "t [1].jsonl", TRUTH), put(folder / "r *.trec", TREC)
    assert cli("evaluate", truth, run, *METRICS).status == 0
    fails(cli("evaluate", truth, put(run, swap(TREC, b"2.0 t", b"2.0")), *METRICS), f"{run}:2", "6 columns")


def test_runs_are_named_by_their_stem(cli: Cli, truth: Path) -> None:
    stems = ["bm25[k1=0.9,b=0.4]", "bm25[k1=0.9,b=0.75]", "bm25.v1", "bm25.v2"]
    runs = [put(truth.parent / f"{stem}.trec", TREC) for stem in stems]
    found = cli("evaluate", truth, *runs, "-m", "recall", "--format", "json")
    assert [each["run"] for each in json.loads(found.out)["runs"]] == stems


# --- Paths and files that cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nope.trec", "nope/x.trec", "truth.jsonl/x", "*.nope", "x" * 300, "x/" * 3_000])
def test_no_such_file(name: str, cli: Cli, truth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A message shows the beginning of a long path.
    monkeypatch.chdir(truth.parent)
    fails(cli("evaluate", truth, name, *METRICS), name[:20])
    fails(cli("evaluate", name, truth, *METRICS), name[:20])


def test_an_empty_name_is_no_file(cli: Cli, truth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(truth.parent / "run.trec", TREC)
    truth.rename(truth.parent / ".truth.jsonl")
    monkeypatch.chdir(truth.parent)
    fails(cli("evaluate", ".truth.jsonl", "", *METRICS))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read anything")
def test_no_permission(cli: Cli, truth: Path) -> None:
    locked = truth.parent / "locked"
    locked.mkdir()
    run = put(locked / "run.trec", TREC)
    run.chmod(0)
    fails(cli("evaluate", truth, run, *METRICS), run, "ermission")
    locked.chmod(0)
    try:
        fails(cli("evaluate", truth, run, *METRICS), run, "ermission")
        fails(cli("evaluate", truth, locked, *METRICS), locked, "ermission")
        fails(cli("evaluate", truth, truth, "--per-query", locked / "x.csv", *METRICS))
    finally:
        locked.chmod(0o700)


@pytest.mark.parametrize("target", ["truth.jsonl/x.csv", "folder.csv", "x" * 300 + ".csv", "x.txt", "x"])
def test_unwritable_target(target: str, cli: Cli, truth: Path) -> None:
    (truth.parent / "folder.csv").mkdir()
    run, path = put(truth.parent / "run.trec", TREC), truth.parent / target
    before = sorted(truth.parent.iterdir())
    fails(cli("evaluate", truth, run, "--per-query", path, *METRICS), path)
    assert sorted(truth.parent.iterdir()) == before


@pytest.mark.parametrize("target", ["truth.jsonl", "truth.jsonl/x"])
@pytest.mark.parametrize("command", ["convert", "init", "run"])
def test_a_file_where_a_folder_should_be(command: str, target: str, cli: Cli, truth: Path) -> None:
    path = truth.parent / target
    config = put(truth.parent / "experiment.yaml", YAML)
    put(truth.parent / "run.trec", TREC)
    arguments: dict[str, tuple[object, ...]] = {
        "convert": ("convert", truth, path, "--to", "beir"),
        "init": ("init", path),
        "run": ("run", config, "--output", path),
    }
    fails(cli(*arguments[command]), truth)
    assert truth.read_text(encoding="utf-8") == TRUTH


def test_unknown_table_format_before_anything_is_written(cli: Cli, truth: Path) -> None:
    run, path = put(truth.parent / "run.trec", TREC), truth.parent / "values.csv"
    fails(cli("evaluate", truth, run, "-m", "recall", "--format", "nope", "--per-query", path), "'nope'", "github")
    assert not path.exists()
    fails(cli("check", truth, run, "--format", "nope"), "'nope'")
    fails(cli("metrics", "ndcg", "--format", "nope"), "'nope'")


@pytest.mark.parametrize("command", ["evaluate", "misses", "check"])
def test_every_table_as_csv(command: str, cli: Cli, truth: Path) -> None:
    assert cli(command, truth, put(truth.parent / "run.trec", TREC), "--format", "csv").status == 0


# --- The policy ----------------------------------------------------------------------------------------------------


def measured(cli: Cli, tmp_path: Path, truth: Any, run: Any, metrics: str, **policy: str) -> tuple[Any, Any]:
    """The means and counts of the library, after the command line said the same; or both of their errors."""
    lines = [json.dumps({"qid": qid, "retrieval_gt": groups}) + "\n" for qid, groups in truth.items()]
    path = put(tmp_path / "t.jsonl", "".join(lines))
    rows = [
        f"{qid} Q0 {name} 1 {score} t\n"
        for qid, ranking in run.items()
        for name, score in (ranking if ranking and isinstance(ranking[0], tuple) else zip(ranking, range(0, -99, -1)))
    ]
    file = put(tmp_path / "r.trec", "".join(rows))
    given = [f"{name}={value}" for name, value in policy.items()]
    told = cli("evaluate", path, file, "-m", metrics, "--format", "json", *(x for g in given for x in ("--policy", g)))
    try:
        ours = groupgt.evaluate(truth, file, metrics.split(","), policy=policy)
    except groupgt.GroupgtError as error:
        assert told.status == 2
        assert told.out == ""
        return str(error), told.err
    result = json.loads(told.out)["runs"][0]
    means = {name: None if math.isnan(mean) else mean for name, mean in ours.means.items()}
    assert {name: row["mean"] for name, row in result["metrics"].items()} == means
    assert result["counts"] == ours.counts
    assert {**result["policy"], **policy} == result["policy"]
    return means, ours.counts


AB = {"q1": [["a"], ["b"]]}


@pytest.mark.parametrize("groups", [[], [[]], [[""]], None, [[{"id": "a", "grade": 0}]], [[{"id": "a", "grade": -2}]]])
def test_undefined_queries_are_left_out(groups: Any, cli: Cli, tmp_path: Path, size: str) -> None:
    means, counts = measured(cli, tmp_path, {**AB, "q2": groups}, {"q1": ["a"], "q2": ["a"]}, "recall")
    assert means == {"recall": 0.5}
    assert (counts["undefined"], counts["evaluated"]) == (1, 1)


@pytest.mark.parametrize("groups", [[["a"], []], [["a"], [""]], [["a"], None], [["a", ""]], [["a", None]]])
def test_empty_groups(groups: Any, cli: Cli, tmp_path: Path) -> None:
    for text in measured(cli, tmp_path, {"q1": groups}, {"q1": ["a"]}, "recall"):
        assert "query 'q1'" in text
        assert "empty_groups" in text
    assert measured(cli, tmp_path, {"q1": groups}, {"q1": ["a"]}, "recall", empty_groups="drop")[0] == {"recall": 1}


def test_an_id_twice_in_a_group_counts_once(cli: Cli, tmp_path: Path) -> None:
    means, counts = measured(cli, tmp_path, {"q1": [["a", "a"], ["b"]]}, {"q1": ["a", "x"]}, "ndcg,recall.trec")
    assert means == measured(cli, tmp_path, AB, {"q1": ["a", "x"]}, "ndcg,recall.trec")[0]
    assert counts["repeated_ids"] == 1


def test_flat_ground_truth(cli: Cli, tmp_path: Path) -> None:
    flat = {"q1": ["a", "b"]}
    for text in measured(cli, tmp_path, flat, {"q1": ["a"]}, "recall"):
        assert "query 'q1'" in text
        assert "flat_gt" in text
    assert measured(cli, tmp_path, flat, {"q1": ["a"]}, "recall", flat_gt="and")[0] == {"recall": 0.5}
    assert measured(cli, tmp_path, flat, {"q1": ["a"]}, "recall", flat_gt="or")[0] == {"recall": 1}


def test_missing_results(cli: Cli, tmp_path: Path, size: str) -> None:
    truth, run = {"q1": [["a"], ["b", "c"]], "q2": [["d"]]}, {"q1": ["a", "b", "c"]}
    means, counts = measured(cli, tmp_path, truth, run, "recall,redundancy")
    assert means == {"recall": 0.5, "redundancy": pytest.approx(1 / 3)}
    assert counts["missing"] == 1
    means, counts = measured(cli, tmp_path, truth, run, "recall,redundancy", missing="skip")
    assert means["recall"] == 1
    assert counts["missing"] == 1
    for text in measured(cli, tmp_path, truth, run, "recall", missing="error"):
        assert "query 'q2'" in text


def test_extra_results(cli: Cli, tmp_path: Path, size: str) -> None:
    run = {"q1": ["a", "b"], "q9": ["z"]}
    means, counts = measured(cli, tmp_path, AB, run, "recall")
    assert means == {"recall": 1}
    assert counts["extra"] == 1
    for text in measured(cli, tmp_path, AB, run, "recall", extra="error"):
        assert "'q9'" in text


def test_duplicates(cli: Cli, tmp_path: Path, size: str) -> None:
    run = {"q1": ["a", "a", "b"]}
    ideal = 1 + 1 / math.log2(3)
    for value, ndcg in (("penalize", 1.5 / ideal), ("drop", 1.0), ("keep", (ideal + 0.5) / ideal)):
        means, counts = measured(cli, tmp_path, AB, run, "ndcg", duplicates=value)
        assert means == {"ndcg": pytest.approx(ndcg)}
        assert counts["duplicates"] == 1
    ours, theirs = measured(cli, tmp_path, AB, run, "ndcg", duplicates="error")
    for text in (ours, theirs):
        assert str(tmp_path / "r.trec") in text
        assert "query 'q1'" in text
        assert "'a'" in text
        assert "drop" in text
    for text in measured(cli, tmp_path, AB, run, "ndcg.trec", duplicates="keep"):
        assert "keep" in text
        assert "ndcg.trec" in text


def test_dropped_repeats_close_the_gap_every_time(tmp_path: Path, size: str) -> None:
    path = put(tmp_path / "run.trec", "q1 Q0 a 1 3 t\nq1 Q0 a 2 2 t\nq1 Q0 b 3 1 t\n")
    policy = {"duplicates": "drop"}
    found = {groupgt.evaluate(AB, path, ["mrr"], policy=policy)["mrr"] for _ in range(12)}
    assert found == {0.75}


@pytest.mark.parametrize("value", ["penalize", "drop", "error", "keep"])
def test_duplicates_of_irrelevant_and_extra_results(
    value: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in ({"q1": ["a", "x", "x", "b"]}, {"q1": ["a", "b"], "q9": ["z", "z"]}):
        small = measured(cli, tmp_path, AB, run, "ndcg,recall@2", duplicates=value)
        monkeypatch.setattr(source, "SMALL", 0)
        assert measured(cli, tmp_path, AB, run, "ndcg,recall@2", duplicates=value) == small
        monkeypatch.undo()


def test_ties(cli: Cli, tmp_path: Path, size: str) -> None:
    truth, run = {"q1": [["a"]]}, {"q1": [("a", 1), ("b", 1), ("c", 0)]}
    means, counts = measured(cli, tmp_path, truth, run, "mrr,recall@1", ties="id")
    assert means == {"mrr": 0.5, "recall@1": 0}
    assert counts["ties"] == 1
    assert measured(cli, tmp_path, truth, run, "mrr,recall@1", ties="input")[0] == {"mrr": 1, "recall@1": 1}


def test_lists_keep_their_order() -> None:
    assert groupgt.evaluate({"q": [["a"]]}, {"q": [("a", 0.1), ("b", 0.9)]}, ["mrr"])["mrr"] == 1


def test_numbers_as_ids() -> None:
    assert groupgt.evaluate({1: [[2]]}, {"1": ["2"]}, ["mrr"])["mrr"] == 1
    assert groupgt.evaluate({"1": [["2"]]}, {1: {2: 0.5}}, ["mrr"])["mrr"] == 1
    bad: list[tuple[Any, Any]] = [
        ({"q": [[1.0]]}, {"q": ["1"]}), ({"q": [[True]]}, {"q": ["1"]}), ({1.0: [["a"]]}, {"1": ["a"]}),
        ({"q": [["1"]]}, {"q": [1.0]}), ({"q": [["1"]]}, {"q": [True]}), ({"q": [["1"]]}, {"q": {1.5: 1}}),
    ]  # fmt: skip
    for truth, run in bad:
        with pytest.raises(groupgt.DataError, match=r"1\.0|True|1\.5"):
            groupgt.evaluate(truth, run, ["mrr"])


@pytest.mark.parametrize(
    ("run", "metrics", "kind"),
    [
        ({"q": {"a": math.nan}}, ["mrr"], groupgt.DataError),
        ({"q": {"a": math.inf}}, ["mrr"], groupgt.DataError),
        ({"q": {"a": 10**400}}, ["mrr"], groupgt.DataError),
        ({"q": {"a": "1"}}, ["mrr"], groupgt.DataError),
        ({"q": [("a", math.nan)]}, ["mrr"], groupgt.DataError),
        ({"q": "a"}, ["mrr"], groupgt.DataError),
        (5, ["mrr"], groupgt.DataError),
        ({"q": ["a"]}, ["mrr@0"], groupgt.MetricError),
        ({"q": ["a"]}, ["nope"], groupgt.MetricError),
        ({"q": ["a"]}, ["rbp(q=0.5)"], groupgt.MetricError),
        ({"q": ["a"]}, ["rbp(p=1)"], groupgt.MetricError),
        ({"q": ["a"]}, [5], groupgt.MetricError),
    ],
)
def test_what_is_always_an_error(run: Any, metrics: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        groupgt.evaluate({"q": [["a"]]}, run, metrics)


@pytest.mark.parametrize("k", [0, -1, 1.5, "5", 10**30])
def test_k_of_the_library(k: Any) -> None:
    with pytest.raises(groupgt.GroupgtError):
        groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["mrr"], k=[k])


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("autorag", {"missing": "skip", "duplicates": "keep"}),
        ("trec", {"missing": "skip", "duplicates": "error"}),
    ],
)
def test_presets_are_printed(preset: str, expected: dict[str, str], cli: Cli, truth: Path) -> None:
    found = cli("evaluate", truth, put(truth.parent / "run.trec", TREC), "-m", "recall", "--policy", preset)
    assert found.status == 0
    for name, value in expected.items():
        assert f"{name}={value}" in found.out


@pytest.mark.parametrize("given", ["", "nope", "missing", "missing=", "missing=Skip", "a=b", "=skip", "missing:skip"])
def test_unknown_policy(given: str, cli: Cli, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    fails(cli("evaluate", truth, run, "-m", "recall", "--policy", given), "policy")


# --- Experiment files --------------------------------------------------------------------------------------------

YAML = """\
version: 1
name: small
datasets:
  own: {ground_truth: truth.jsonl}
systems:
  old: {use: results, with: {path: run.trec}}
evaluate:
  metrics: [recall]
  k: [1]
output: {folder: out}
"""

OLD = "\n  old: {use: results, with: {path: run.trec}}"
BAD_YAML: list[tuple[str, str | bytes, str, tuple[str, ...]]] = [
    ("key twice", YAML + "name: other\n", "11:1", ("name", "duplicate", "2:1")),
    ("inner key twice", YAML.replace("k: [1]", "k: [1]\n  k: [2]"), "10:3", ("evaluate.k", "duplicate")),
    ("unknown key", YAML + "nmae: x\n", "11:1", ("nmae", "unknown", "'name'")),
    ("unknown inner key", YAML.replace("k: [1]", "ks: [1]"), "9:3", ("evaluate.ks", "unknown")),
    ("unknown option", YAML.replace("run.trec}", "run.trec, pth: x}"), "6:46", ("pth", "unknown", "path")),
    ("alias", YAML.replace("name: small", "name: &n small") + "groupgt: *n\n", "11:10", ("alias",)),
    ("endless alias", "a: &a [*a]\n", "1:8", ("alias",)),
    ("python tag", YAML.replace("name: small", "name: !!python/name:os.system x"), "2:7", ("tag", "python")),
    ("python call", YAML.replace("name: small", 'name: !!python/object/apply:os.mkdir ["made"]'), "2:7", ("tag",)),
    ("other tag", YAML.replace("name: small", "name: !secret x"), "2:7", ("tag", "!secret")),
    ("unset variable", YAML.replace("small", "${env:GROUPGT_NEVER_SET}"), "2:7", ("GROUPGT_NEVER_SET", ":-")),
    ("unset inner variable", YAML.replace("run.trec", '"${env:GROUPGT_NEVER_SET}.x"'), "6:36", ("GROUPGT_NEVER_SET",)),
    ("not UTF-8", YAML.replace("small", "é").encode("latin-1"), "2:7", ("UTF-8", "0xe9")),
    ("UTF-16", YAML.encode("utf-16"), "1:1", ("UTF-8",)),
    ("NUL", YAML.replace("small", "sm\0ll"), "2:9", ()),
    ("bell", YAML.replace("small", "sm\x07ll"), "2:9", ()),
    ("tab", YAML.replace("  own", "\town"), "4:1", ()),
    ("open bracket", "a: [1, 2", "1:9", ()),
    ("two documents", YAML + "---\n" + YAML, "11:1", ()),
    ("deep", "a: " + "[" * 1_000 + "]" * 1_000, "1:", ("nesting",)),
    ("empty", "", "1:1", ("empty", "groupgt init")),
    ("comment alone", "# nothing\n", "1:1", ("empty",)),
    ("null", "null\n", "1:1", ("mapping",)),
    ("text", "hello\n", "1:1", ("mapping", "'hello'")),
    ("a list", "- a\n- b\n", "1:1", ("mapping", "list")),
    ("a list of lists", "[[1], [2]]\n", "1:1", ("mapping", "list")),
    ("number as name", YAML.replace("small", "5"), "2:7", ("name", "text", "5")),
    ("nothing as name", YAML.replace("name: small", "name:"), "2:6", ("name", "text", "nothing")),
    ("list as name", YAML.replace("small", "[a]"), "2:7", ("name", "text", "a list")),
    ("surrogate as name", YAML.replace("small", '"\\ud800"'), "2:7", ("name",)),
    ("no systems", YAML.replace(OLD, " {}"), "5:10", ("systems", "at least one")),
    ("null systems", YAML.replace(OLD, ""), "5:9", ("systems", "mapping", "nothing")),
    ("list of systems", YAML.replace(OLD, " [bm25]"), "5:10", ("systems", "mapping", "a list")),
    ("null system", YAML.replace(OLD, "\n  old:"), "6:7", ("systems.old", "mapping", "nothing")),
    ("unknown system", YAML.replace("results", "result"), "6:14", ("systems.old.use", "'result'", "'results'")),
    ("list as options", YAML.replace("{path: run.trec}", "[path]"), "6:29", ("systems.old.with", "mapping", "a list")),
    ("number as path", YAML.replace("run.trec", "5"), "6:36", ("path", "text", "5")),
    ("no such run", YAML.replace("run.trec", "nope.trec"), "6:36", ("path", "nope.trec")),
    ("no such truth", YAML.replace("truth.jsonl", "nope.jsonl"), "4:23", ("ground_truth", "nope.jsonl")),
    ("truth of a long name", YAML.replace("truth.jsonl", "x" * 5_000), "4:23", ("ground_truth",)),
    ("text as k", YAML.replace("k: [1]", "k: [x]"), "9:7", ("evaluate.k", "whole number", "'x'")),
    ("0 as k", YAML.replace("k: [1]", "k: [0]"), "9:7", ("evaluate.k", "at least 1", "0")),
    ("huge k", YAML.replace("k: [1]", f"k: [{'9' * 400}]"), "9:7", ("evaluate.k",)),
    ("mapping as k", YAML.replace("k: [1]", "k: {a: 1}"), "9:6", ("evaluate.k", "a mapping")),
    ("true as k", YAML.replace("k: [1]", "k: [true]"), "9:7", ("evaluate.k", "whole number", "true")),
    ("unknown metric", YAML.replace("[recall]", "[recal]"), "8:13", ("evaluate.metrics", "'recal'", "'recall'")),
    ("number as metric", YAML.replace("[recall]", "[5]"), "8:13", ("evaluate.metrics", "text", "5")),
    ("no metrics", YAML.replace("[recall]", "[]"), "8:12", ("evaluate.metrics", "at least one")),
    ("unknown policy", YAML.replace("k: [1]", "policy: {missing: nope}"), "9:21", ("missing", "'nope'")),
    ("unfit policy", YAML.replace("[recall]\n  k: [1]", "[p.trec]\n  policy: {duplicates: keep}"), "", ("keep",)),
    ("number as section", YAML.replace("output: {folder: out}", "output: 5"), "10:9", ("output", "mapping", "5")),
    ("null section", YAML.replace("output: {folder: out}", "output:"), "10:8", ("output", "mapping", "nothing")),
    ("list as key", YAML + "? [a]\n: b\n", "11:3", ("key",)),
    ("version", YAML.replace("version: 1", "version: 2"), "1:10", ("version", "1", "2")),
    ("later groupgt", YAML + 'groupgt: ">=99"\n', "11:10", (">=99",)),
]  # fmt: skip


@pytest.fixture
def experiment(truth: Path) -> Path:
    put(truth.parent / "run.trec", TREC)
    return put(truth.parent / "experiment.yaml", YAML)


@pytest.mark.parametrize("case", BAD_YAML, ids=names(BAD_YAML))
def test_bad_experiment(case: Any, cli: Cli, experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text, place, words = case
    monkeypatch.chdir(experiment.parent)
    monkeypatch.delenv("GROUPGT_NEVER_SET", raising=False)
    put(experiment, text)
    found = cli("run", experiment, "--check")
    fails(found, f"{experiment}:{place}", *words)
    lines = found.err.splitlines()
    assert len(set(lines)) == len(lines)
    assert not (experiment.parent / "made").exists()
    assert not (experiment.parent / "out").exists()


def test_good_experiment(cli: Cli, experiment: Path) -> None:
    assert cli("run", experiment, "--check").status == 0
    for text in ("\ufeff" + YAML, YAML.replace("\n", "\r\n"), "---\n" + YAML + "...\n"):
        assert cli("run", put(experiment, text), "--check").status == 0


def test_all_faults_of_an_experiment_at_once(cli: Cli, experiment: Path) -> None:
    text = YAML.replace("version: 1", "version: 2").replace("small", "[x]").replace("[recall]", "[recal]")
    put(experiment, text.replace("k: [1]", "k: [0]") + "foo: 1\n")
    fails(cli("run", experiment, "--check"), "5 faults", ":1:10", ":2:7", ":8:13", ":9:7", ":11:1")


def test_laughs_are_not_expanded(cli: Cli, experiment: Path) -> None:
    lines = ["a: &a [x, x, x]", *(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]" for i in range(24))]
    found = cli("run", put(experiment, "\n".join(lines)), "--check")
    assert found.status == 2
    assert f"{experiment}:1:4" in found.err


def test_an_experiment_on_bad_data(cli: Cli, experiment: Path) -> None:
    run = put(experiment.parent / "run.trec", swap(TREC, b"2.0", b"1_000"))
    fails(cli("run", experiment), f"{run}:2", "query 'q1'", "'1_000'")
    assert not list(experiment.parent.glob("out/**/*.json"))


# --- As a user does ----------------------------------------------------------------------------------------------


def shell(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "groupgt", *map(str, arguments)]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    rest: dict[str, Any] = {
        "stderr": subprocess.PIPE,
        "encoding": "utf-8",
        "env": environment,
        "timeout": 60,
        "check": False,
    }
    return subprocess.run(command, **rest, **options)  # noqa: PLW1510


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (swap(TREC, b"2.0 t", b"2.0"), (":2", "6 columns", "found 5")),
        (swap(TREC, b"2.0", b"1_000"), (":2", "query 'q1'", "'1_000'")),
        (TREC.decode().encode("utf-16"), (":1", "UTF-16")),
        (GZIP[:-4], ("gzip", "cut off")),
    ],
    ids=["columns", "score", "UTF-16", "gzip"],
)
def test_from_a_shell(data: bytes, words: tuple[str, ...], truth: Path) -> None:
    path = put(truth.parent / "run.trec", data)
    found = shell("evaluate", truth, path, stdout=subprocess.PIPE)
    assert (found.returncode, found.stdout) == (2, "")
    assert all(word in found.stderr for word in (str(path), *words))
    assert "Traceback" not in found.stderr


@pytest.mark.faults
@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="needs /dev/stdin")
@pytest.mark.parametrize("side", ["truth", "run"])
def test_a_pipe_is_read_whole_or_refused(side: str, truth: Path) -> None:
    run = put(truth.parent / "run.trec", TREC)
    plain = shell("evaluate", truth, run, *METRICS, stdout=subprocess.PIPE)
    pipe = "/dev/stdin"
    found = shell(
        "evaluate",
        *((pipe, run) if side == "truth" else (truth, pipe)),
        *METRICS,
        stdout=subprocess.PIPE,
        input=TRUTH if side == "truth" else TREC.decode(),
    )
    assert "Traceback" not in found.stderr
    if found.returncode == 0:
        assert found.stdout == plain.stdout
    else:
        assert (found.returncode, found.stdout) == (2, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_no_room_for_the_table(truth: Path) -> None:
    with Path("/dev/full").open("w") as full:
        found = shell("evaluate", truth, put(truth.parent / "run.trec", TREC), *METRICS, stdout=full)
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    assert "space" in found.stderr


@pytest.mark.faults
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("name", ["values.csv", "values.jsonl", "values.parquet"])
def test_no_room_for_a_file(name: str, truth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    # Where nothing can be written, what was reached cannot be either, and coverage.py would say so.
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    run, path = put(truth.parent / "run.trec", TREC), truth.parent / name
    found = shell(
        "evaluate", truth, run, *METRICS, "--per-query", path, stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9)),
    )  # fmt: skip
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    assert str(path) in found.stderr
    assert sorted(each.name for each in truth.parent.iterdir()) == ["run.trec", "truth.jsonl"]
