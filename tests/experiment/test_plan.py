"""`groupgt run --dry-run`: what would be done, and what of it is done already."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.plan import plan
from groupgt.experiment.runner import run_experiment
from groupgt.retrievers.bm25 import BM25
from tests.retrievers.small import small


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


@pytest.mark.slow
def test_whether_a_function_is_asked_singly_is_refused_only_where_it_is_known(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def single(query, k):\n    return ['d1']\n\n\n"
        "def batched(queries, k):\n    return [['d1'] for _ in queries]\n\n\n"
        "def factory(corpus):\n    return single\n"
    )
    for name in ("single", "factory", "batched"):
        file = small(tmp_path, f'mine: {{use: python, with: {{target: "mine:{name}"}}}}')
        file.write_text(file.read_text() + "gate: [{system: mine, metric: latency_p95_ms, max: 60000}]\n")
        assert plan(file).unchecked == ["systems.mine.use: python runs your code"]
        if name == "batched":
            for run, kind in ((plan, groupgt.ConfigError), (run_experiment, groupgt.RetrieverError)):
                with pytest.raises(kind, match="this retriever is asked in batches"):
                    run(file, allow_code=True)
        else:
            assert plan(file, allow_code=True).unchecked == []
            assert run_experiment(file, allow_code=True).gates[0].passed
