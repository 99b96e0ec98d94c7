"""Rows of the tables of bad and good input, as one process meets them: `python -m tests.formats.outcomes [polars]`.

One line of JSON each: what the row is called, the status, and what was printed. With `polars` it is imported first.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from groupgt.cli.main import main
from tests.bad_input import TREC, TRUTH, put
from tests.formats import test_bad_csv, test_bad_json, test_bad_trec

FILLED = ("-m", "recall@1,mrr,ndcg", "--format", "csv")


def rows() -> Iterator[tuple[str, str, bytes | str, str]]:
    """What each row is called, which side it is, its content, and the name of its file."""
    for side, file, table in (
        ("run", "run.trec", [*test_bad_trec.BAD_RUNS, *test_bad_trec.GOOD_RUNS]),
        ("run", "run.csv", [*test_bad_csv.BAD_CSV, *test_bad_csv.GOOD_CSV]),
        ("truth", "qrels", [*test_bad_trec.BAD_QRELS, *test_bad_trec.GOOD_QRELS]),
        ("truth", "truth.csv", test_bad_csv.BAD_TABLES),
        ("truth", "truth.jsonl", test_bad_json.BAD_JSON_TRUTH),
    ):
        for name, data, *_ in table:
            yield f"{file}: {name}", side, data, file
    for name, line, *_ in test_bad_json.BAD_JSON_RUNS:
        yield f"run.jsonl: {name}", "run", line + "\n", "run.jsonl"
    for name, groups, *_ in test_bad_json.BAD_GROUPS:
        yield f"groups: {name}", "truth", '{"qid": "q1", "retrieval_gt": ' + groups + "}\n", "groups.jsonl"


def outcome(side: str, data: bytes | str, file: str, folder: Path) -> tuple[object, str, str]:
    """The status and what was printed, where the row is one side of an evaluation."""
    path = put(folder / file, data)
    truth, run = put(folder / "t.jsonl", TRUTH), put(folder / "r.trec", TREC)
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        try:
            main(["evaluate", *map(str, (truth, path) if side == "run" else (path, run)), *FILLED])
        except SystemExit as end:
            status = end.code or 0
    return status, out.getvalue(), err.getvalue().replace(str(folder), "FOLDER")


if __name__ == "__main__":
    if sys.argv[1:] == ["polars"]:
        import polars  # noqa: F401
    with tempfile.TemporaryDirectory() as temporary:
        for name, *row in rows():
            print(json.dumps([name, *outcome(row[0], row[1], row[2], Path(temporary))]))
    print(json.dumps("polars" in sys.modules))
