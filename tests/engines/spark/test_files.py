"""Files that Spark reads are held to the rules of all other readers; what they refuse, Spark refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import groupgt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRUTH = {"q1": [["d1"], ["d2"]], "q2": [["d3"]]}
TREC = b"q1 Q0 d1 1 3.0 t\nq1 Q0 x 2 2.0 t\nq1 Q0 d2 3 1.0 t\nq2 Q0 y 1 2.0 t\nq2 Q0 d3 2 1.5 t\n"
CSV = b"qid,doc_id,score\nq1,d1,3.0\nq1,x,2.0\nq1,d2,1.0\nq2,y,2.0\nq2,d3,1.5\n"
GOOD = [
    ("trec", TREC.replace(b"\n", b"\r\n")),
    ("trec", b"\xef\xbb\xbf\n" + TREC.replace(b" t\n", b"\tt a b c d\n").replace(b"x 2", b"x 2.0")),
    ("csv", CSV.replace(b"\n", b"\r\n").replace(b"x", b'"x,y"')),
    ("csv", b"\xef\xbb\xbf" + CSV.replace(b"x", b'"x""y"')),
]
BAD = {
    "two lines joined": ("trec", TREC.replace(b"2.0 t\n", b"2.0 t", 1)),
    "a blank in an id": ("trec", TREC.replace(b"x 2", b"x y 2")),
    "no rank": ("trec", TREC.replace(b"x 2", b"x 0.9")),
    "a bare CR": ("trec", TREC.replace(b"x 2", b"x\ry 2")),
    "CR alone": ("trec", TREC.replace(b"\n", b"\r")),
    "five columns": ("trec", TREC.replace(b"2.0 t", b"2.0", 1)),
    "a BOM later on": ("trec", TREC + b"\xef\xbb\xbf" + TREC.replace(b"q", b"r")),
    "NEL": ("trec", TREC.replace(b"d2", "d\x85".encode())),
    "U+001C": ("trec", TREC.replace(b"d2", b"d\x1c")),
    "a surplus cell": ("csv", CSV.replace(b"x,", b"Smith, J,")),
    "a cell too few": ("csv", CSV.replace(b"x,2.0", b"x")),
    "a bare CR in CSV": ("csv", CSV.replace(b"x", b"x\ry")),
    "no number": ("csv", CSV.replace(b"1.5", b"1_5")),
    "an empty id": ("csv", CSV.replace(b",x,", b",,")),
    "U+2028": ("csv", CSV.replace(b"x", "x\u2028".encode())),
}


def test_files_are_read_as_meant(spark: SparkSession, tmp_path: Path) -> None:
    for number, (kind, data) in enumerate(GOOD):
        path = tmp_path / f"run{number}.{kind}"
        path.write_bytes(data)
        found = groupgt.evaluate(TRUTH, path, ["mrr"], run_format=kind, engine="spark")
        assert found["mrr"] == groupgt.evaluate(TRUTH, path, ["mrr"], run_format=kind)["mrr"]
        assert found["mrr"] == pytest.approx(((1 + 1 / 3) / 2 + 1 / 2) / 2)


@pytest.mark.parametrize("name", BAD)
def test_what_other_readers_refuse(name: str, spark: SparkSession, tmp_path: Path) -> None:
    kind, data = BAD[name]
    path = tmp_path / f"run.{kind}"
    path.write_bytes(data)
    for engine in ("auto", "streaming", "spark"):
        with pytest.raises(groupgt.DataError):
            groupgt.evaluate(TRUTH, path, ["mrr"], run_format=kind, engine=engine)
