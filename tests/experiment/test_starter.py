"""The starter experiment runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

import groupgt
from groupgt.experiment.starter import write_starter
from groupgt.report.run import run_experiment


@pytest.mark.slow
def test_the_starter_runs_and_replaces_nothing(tmp_path: Path) -> None:
    write_starter(tmp_path / "new")
    outcome = run_experiment(tmp_path / "new" / "experiment.yaml")
    assert 0 < outcome.evaluations["mine"]["content-words"]["ndcg@3"] <= 1
    assert outcome.passed
    assert outcome.evaluations["mine"]["all-words"]["ndcg@3"] != outcome.evaluations["mine"]["content-words"]["ndcg@3"]
    with pytest.raises(groupgt.ConfigError, match="already exists"):
        write_starter(tmp_path / "new")
