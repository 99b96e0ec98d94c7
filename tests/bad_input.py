"""What tests of bad input share: small sound files, and how an error must look to a user."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from groupgt.runtime import zstd

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


PLAIN: dict[tuple[str, str], Outcome] = {}


def plain_outcome(cli: Cli, truth: Path, name: str, data: bytes, size: str) -> Outcome:
    """What a sound run gives, by each reader of files: asked once."""
    if (name, size) not in PLAIN:
        PLAIN[name, size] = cli("evaluate", truth, put(truth.parent / name, data), *METRICS)
        assert PLAIN[name, size].status == 0
    return PLAIN[name, size]


def names(cases: list[Any]) -> list[str]:
    return [str(case[0]) for case in cases]


TABLE = b"qid,group,doc_id,grade\nq1,1,d1,1\nq1,2,d2,2\nq2,1,d3,1\n"


BIG = QRELS + b"".join(b"q3 0 z%d 1\n" % i for i in range(5_000))


GZIP, ZSTD = gzip.compress(BIG, mtime=0), zstd.compress(BIG, options={zstd.CompressionParameter.checksum_flag: 1})


def flipped(data: bytes, at: int) -> bytes:
    out = bytearray(data)
    out[at] ^= 0x10
    return bytes(out)


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
