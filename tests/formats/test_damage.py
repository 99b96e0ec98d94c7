"""Files that are damaged, empty or of another kind; folders; and what many faults of one file look like."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.runtime import zstd
from tests.bad_input import (
    CSV,
    GZIP,
    METRICS,
    NAN,
    QRELS,
    TABLE,
    TREC,
    TRUTH,
    ZSTD,
    Cli,
    fails,
    flipped,
    put,
    swap,
    write,
)

pytestmark = pytest.mark.slow


def test_bad_beir_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    put(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "?"}\n')
    path = put(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\tx\nq1\td2\t1\nq1\td2\t2\n")
    run = put(tmp_path / "run.trec", TREC)
    found = cli("evaluate", tmp_path, run, *METRICS)
    fails(found, "2 errors", f"{path}:2", "query 'q1'", "'x'", f"{path}:4", "'d2' has grade 2, but 1 at ")


def test_a_folder_that_is_no_ground_truth(cli: Cli, tmp_path: Path) -> None:
    fails(cli("evaluate", tmp_path, put(tmp_path / "run.trec", TREC), *METRICS), tmp_path, "BEIR folder")


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
    ("zstd", "cut in its second frame", ZSTD + zstd.compress(TREC)[:-3]),
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


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
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


@pytest.mark.parametrize("data", [b"", b"\n \n", gzip.compress(b""), zstd.compress(b"")], ids=list("0bgz"))
@pytest.mark.parametrize("side", ["truth", "run"])
def test_empty_file(side: str, data: bytes, cli: Cli, truth: Path, size: str) -> None:
    path = put(truth.parent / "empty", data)
    run = put(truth.parent / "run.trec", TREC)
    found = cli("evaluate", *((truth, path) if side == "run" else (path, run)), "-m", "recall", "--format", "csv")
    if side == "truth":
        fails(found, f"groupgt: {path}: the ground truth is empty; expected at least one query\n")
        assert found.err.count(str(path)) == 1
        return
    assert f"{path}: the file is empty (0 " in found.err
    assert found.status == 0
    assert found.out == "metric,mean,queries\nrecall,0.0,2\n"


def test_noise(cli: Cli, truth: Path, size: str) -> None:
    noise = bytes((7 * i * i + i // 3) % 256 for i in range(600))
    for data in (noise, noise + b"\n" + noise, b"a\rb\n" + noise, b"\x89PNG\r\n\x1a\n\0\0", b"BZh9" + noise):
        path = put(truth.parent / "noise", data)
        fails(cli("evaluate", truth, path, *METRICS), path)
        fails(cli("evaluate", path, path, *METRICS), path)


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
    groups = [["x", "y"] if alike else [f"x{i}", "y"] for i in number]
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
    fails(found, f"{path}: the second column has several values", "--truth-format trec-subtopics if they are subtopics")
    assert len(found.err.splitlines()) == 1
    assert groupgt.read_ground_truth(path, "trec-subtopics").shape == "subtopics"
