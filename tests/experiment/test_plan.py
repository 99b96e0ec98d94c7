"""`groupgt run --dry-run`: what would be done, and what of it is done already."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupgt.experiment.plan import plan
from groupgt.report.run import run_experiment
from groupgt.retrievers.bm25 import BM25


def test_the_plan_says_what_is_kept(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row[-1] for row in plan(sweep)[1]] == ["retrieve"] * 4 + ["combine"] * 2
    run_experiment(sweep, only=["bm25[k1=0.9*"])
    monkeypatch.setattr(BM25, "retrieve", None)
    assert [row[-1] for row in plan(sweep)[1]] == ["cached"] * 2 + ["retrieve"] * 2 + ["combine"] * 2


def test_the_plan_retrieves_nothing(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BM25, "retrieve", None)
    headers, rows, _ = plan(experiment)
    assert headers[0] == "dataset"
    assert [row[1] for row in rows] == ["plain", "shallow"]
    assert rows[0][3:] == [60, 188, 6, 2 + 30, "retrieve"]
