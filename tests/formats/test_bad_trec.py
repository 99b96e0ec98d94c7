"""TREC runs and qrels that are bad, or only look so: each case goes through all readers of text files."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from groupgt.formats import source
from groupgt.runtime import zstd
from tests.bad_input import LONG, METRICS, QRELS, TREC, Cli, Outcome, fails, names, plain_outcome, put, swap

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
    ("zstd", zstd.compress(TREC)),
    ("gzip in two members", gzip.compress(TREC[:20]) + gzip.compress(TREC[20:])),
    ("zstd in two frames", zstd.compress(TREC[:20]) + zstd.compress(TREC[20:])),
    ("gzip padded with zeros", gzip.compress(TREC) + b"\0" * 20),
    ("gzip with a BOM", gzip.compress(b"\xef\xbb\xbf" + TREC)),
    ("zstd with a BOM", zstd.compress(b"\xef\xbb\xbf" + TREC)),
    ("gzip with CRLF", gzip.compress(TREC.replace(b"\n", b"\r\n"))),
]  # fmt: skip


@pytest.fixture
def plain(cli: Cli, truth: Path, size: str) -> Outcome:
    """What the file gives that the others mean."""
    return plain_outcome(cli, truth, "run.trec", TREC, size)


@pytest.mark.parametrize("case", BAD_RUNS, ids=names(BAD_RUNS))
def test_bad_run(case: Any, cli: Cli, truth: Path, size: str) -> None:
    _, data, line, words = case
    path = put(truth.parent / "run.trec", data)
    fails(cli("evaluate", truth, path, *METRICS), f"{path}:{line}", *words)


@pytest.mark.parametrize("case", GOOD_RUNS, ids=names(GOOD_RUNS))
def test_run_read_as_meant(case: Any, cli: Cli, truth: Path, plain: Outcome) -> None:
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
    plain = cli("evaluate", truth, put(truth.parent / "run.trec", TREC), *METRICS)
    path = put(truth.parent / "commented.trec", b"# a comment\n" + TREC)
    assert cli("evaluate", truth, path, *METRICS).out == plain.out
    fails(cli("evaluate", truth, put(path, TREC + b"q2 # a comment\n"), *METRICS), "6 columns", "found 4")


def first_by_default(*cases: str) -> list[Any]:
    """The first of some cases; the others with the marker property."""
    return [cases[0], *(pytest.param(case, marks=pytest.mark.property) for case in cases[1:])]


@pytest.mark.parametrize("command", ["explain", "explain --format json", "misses", "check", "evaluate"])
@pytest.mark.parametrize(
    "case", first_by_default("blank line first", "two blanks after every query", "CRLF", "BOM", "tabs")
)
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


@pytest.mark.parametrize("case", first_by_default("blank line first", "two blanks before every rank", "CRLF", "BOM"))
@pytest.mark.parametrize("to", ["trec", "csv", "jsonl", "parquet"])
def test_convert_reads_alike(case: str, to: str, cli: Cli, truth: Path, plain: Outcome) -> None:
    path = put(truth.parent / "run.trec", dict(GOOD_RUNS)[case])
    assert cli("convert", path, truth.parent / "again", "--to", to).status == 0
    again = put(path, (truth.parent / "again").read_bytes())
    assert cli("evaluate", truth, again, *METRICS).out == plain.out


def test_no_match_and_a_doubtful_line(cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "run.trec", b"\n" + TREC.replace(b"d", b"D"))
    found = cli("evaluate", truth, path, *METRICS)
    assert found.status == 0
    assert "'d1' in the ground truth, 'D1' in the results" in found.err


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
    ("judged twice", swap(QRELS, b"d2 2", b"d1 1"), 2, ("query 'q1'", "'d1'", "twice", "qrels.txt:1)")),
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
    ("zstd", zstd.compress(QRELS)),
]


@pytest.mark.parametrize("case", BAD_QRELS, ids=names(BAD_QRELS))
def test_bad_qrels(case: Any, cli: Cli, tmp_path: Path, size: str) -> None:
    _, data, line, words = case
    path = put(tmp_path / "qrels.txt", data)
    fails(cli("evaluate", path, put(tmp_path / "run.trec", TREC), *METRICS), f"{path}:{line}", *words)


@pytest.mark.parametrize("case", GOOD_QRELS, ids=names(GOOD_QRELS))
def test_qrels_read_as_meant(case: Any, cli: Cli, tmp_path: Path, size: str) -> None:
    path, run = put(tmp_path / "qrels.txt", QRELS), put(tmp_path / "run.trec", TREC)
    plain = cli("evaluate", path, run, *METRICS, "--convention", "autorag")
    assert plain.status == 0
    assert cli("evaluate", put(path, case[1]), run, *METRICS, "--convention", "autorag") == plain


def test_fractional_relevance_counts(cli: Cli, tmp_path: Path) -> None:
    path = put(tmp_path / "qrels.txt", b"q1 0 d1 0.5\nq1 0 d2 1.5\n")
    run = put(tmp_path / "run.trec", TREC)
    found = cli("evaluate", path, run, "-m", "dcg", "--format", "csv")
    assert float(found.out.splitlines()[1].split(",")[1]) == pytest.approx(0.5 + 1.5 / 2)
