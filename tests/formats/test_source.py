"""Under a ceiling of memory: what is held counts by its content, decompressed, and by what is made of it."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.formats import source
from groupgt.runtime import zstd

TRUTH = '{"qid": "q1", "retrieval_gt": [["d1"]]}\n'
RUN = "q1 Q0 d1 1 3.0 t\n"
# Some kilobytes, compressed, of more than the megabyte that is allowed.
SIZE = 1_200_000


def lines(line: str, head: str = "") -> bytes:
    return (head + line * (SIZE // len(line))).encode()


RUNS = {
    "jsonl": lines('{"qid": "q9", "doc_id": "d1", "score": 3.0}\n'),
    "nested.jsonl": lines('{"qid": "q9", "retrieved_ids": ["d1", "d2"]}\n'),
    "one_line.jsonl": lines("x", '{"qid": "q1", "retrieved_ids": ["'),
}
TRUTHS = {
    "truth.jsonl": lines('{"qid": "q9", "retrieval_gt": [["d1"]]}\n'),
    "truth.csv": lines("q9,1,d1,1\n", "qid,group,doc_id,grade\n"),
    "qrels": lines("q9 0 d1 1\n"),
    "subtopics": lines("q9 1 d1 1\n"),
}
STREAMED = {"trec": lines("q9 Q0 d1 1 3.0 t\n", RUN), "csv": lines("q9,d1,3.0\n", "qid,doc_id,score\nq1,d1,1\n")}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process holds besides does not count here."""
    monkeypatch.setattr(source, "resident", lambda: 0)
    monkeypatch.setattr("groupgt.engines.columns.reader.resident", lambda: 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        pytest.param(zstd.compress, marks=pytest.mark.property),
        pytest.param(bytes, marks=pytest.mark.property),
    ],
    ids=["gzip", "zstd", "plain"],
)
@pytest.mark.parametrize("name", [*RUNS, *TRUTHS])
def test_content_beyond_the_ceiling(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, truth, run = tmp_path / name, tmp_path / "t.jsonl", tmp_path / "r.trec"
    path.write_bytes(pack({**RUNS, **TRUTHS}[name]))
    truth.write_text(TRUTH)
    run.write_text(RUN)
    paths = (truth, path) if name in RUNS else (path, run)
    named = ("--truth-format", "trec-subtopics") if name == "subtopics" else ()
    told = refused(capsys, "evaluate", *paths, *named, "-m", "recall", "--memory", "1MB")
    assert f"{path}: the content exceeds the memory limit of 1 MB" in told


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
@pytest.mark.parametrize("name", STREAMED)
def test_what_streams_may_be_larger(name: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / f"run.{name}"
    path.write_bytes(pack(STREAMED[name]))
    engine = {"use": "streaming", "with": {"memory": "1MB"}}
    assert groupgt.evaluate({"q1": [["d1"]]}, path, ["recall"], engine=engine)["recall"] == 1


def test_what_python_makes_of_lines_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"qid": "q1", "retrieved_ids": ["d1"]}\n')
    engine = {"use": "streaming", "with": {"memory": "100MB"}}
    monkeypatch.setattr(source, "resident", lambda: 99_000_000)
    assert groupgt.evaluate({"q1": [["d1"]]}, path, ["recall"], engine=engine)["recall"] == 1
    monkeypatch.setattr(source, "resident", lambda: 101_000_000)
    with pytest.raises(groupgt.DataError, match=r"run\.jsonl: the content exceeds the memory limit of 100 MB"):
        groupgt.evaluate({"q1": [["d1"]]}, path, ["recall"], engine=engine)
