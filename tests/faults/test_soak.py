"""Some rounds of the sweep that `python -m tests.soak` runs for an hour, and a folder with a thousand results."""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pytest

from groupgt.comparison.settings import Settings
from groupgt.report.run import run_experiment
from groupgt.results.folder import folders_of, read_folders
from groupgt.results.merge import history
from groupgt.store.stamped import TIME
from tests.soak import WARM, Held, growth, rounds, scratch

ROUNDS = 10
FILE = """\
version: 1
name: small
datasets:
  own: {ground_truth: truth.jsonl}
systems:
  one: {use: results, with: {path: one.jsonl}}
evaluate: {k: [2], metrics: [recall]}
output: {folder: out, formats: [csv]}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what a process holds in /proc")
def test_a_sweep_over_and_over_holds_no_more() -> None:
    with scratch() as folder:
        assert growth(list(islice(rounds(folder), ROUNDS))) == []


def test_what_grows_is_told() -> None:
    flat = [Held(100, 5, 1, 0)] * WARM + [Held(1000, 7, 1, 0)] * 8
    assert growth(flat) == []
    assert growth([*flat, *[Held(1049, 7, 1, 0)] * 8]) == []
    assert growth([*flat, *[Held(2_000_000, 8, 2, 3)] * 8]) == [
        "handles: 7 → 8", "threads: 1 → 2", "temporary: 0 → 3", "memory: 0 → 2 MB",
    ]  # fmt: skip


def test_a_thousand_result_folders(tmp_path: Path) -> None:
    """All are found in order and read, the newest is named, and the next one is written behind them."""
    (tmp_path / "small.yaml").write_text(FILE, encoding="utf-8")
    for name, column, value in (("truth", "retrieval_gt", [["a"]]), ("one", "retrieved_ids", ["a", "b"])):
        rows = [{"qid": f"q{number}", column: value} for number in range(5)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = run_experiment(tmp_path / "small.yaml").folder
    assert first is not None
    start = datetime.now(UTC) - timedelta(days=1001)
    names = [f"{start + timedelta(days=day):{TIME}}-{'fe'[day % 2]}{day:03d}" for day in range(999)]
    for name in reversed(names):
        shutil.copytree(first, first.parent / name, copy_function=os.link)
    found = folders_of([first.parent])
    assert [path.name for path in found] == [*names, first.name]
    _, table = history(read_folders(found), Settings())["own"]
    assert [row[0] for row in table] == [*names, first.name]
    assert {row[5] for row in table} == {1.0}
    last = run_experiment(tmp_path / "small.yaml", changes=["evaluate.k=[1]"]).folder
    assert last is not None
    assert folders_of([first.parent / "latest"]) == [last]
    assert len(folders_of([first.parent])) == 1001
