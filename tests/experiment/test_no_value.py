"""Systems without a value, a latency or a cost: gates on them fail, and the page and the folder are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupgt.report.run import run_experiment

FILE = """
version: 1
name: e
datasets: {{d: {{ground_truth: t.jsonl}}}}
systems:
  a: {{use: results, with: {{path: a.jsonl}}}}
  priced: {{use: results, with: {{path: priced.jsonl}}}}
evaluate: {{metrics: [{metrics}], policy: {{missing: skip}}}}
output: {{folder: o, formats: [report, json]}}
gate: [{gate}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = {
        "t": {"retrieval_gt": [["a"]]},
        "a": {"retrieved_ids": ["x"]},
        "priced": {"retrieved_ids": ["a"], "cost": 0.5},
    }
    for name, row in rows.items():
        lines = [json.dumps({"qid": f"q{number}", **row}) + "\n" for number in range(4)]
        Path(f"{name}.jsonl").write_text("".join(lines))
    return tmp_path


@pytest.mark.parametrize("gate", ["{system: a, metric: cost_mean, max: 1}", "{system: '*', metric: cost_mean, max: 1}"])
def test_a_gate_on_a_cost_that_results_do_not_state_fails(gate: str, folder: Path) -> None:
    Path("e.yaml").write_text(FILE.format(metrics="recall@1", gate=gate))
    outcome = run_experiment("e.yaml")
    by_system = {result.system: result for result in outcome.gates}
    assert (by_system["a"].passed, by_system["a"].problem, outcome.passed) == (False, "no measurement", False)
    assert "was not measured, because the results do not contain it" in by_system["a"].reason
    if "priced" in by_system:
        assert (by_system["priced"].passed, by_system["priced"].value) == (True, 0.5)


def test_a_page_has_null_for_a_metric_without_a_value(folder: Path) -> None:
    """The ground truth names no harmful passage, so `clean`, the primary metric, is undefined for all."""
    metrics = "clean@2, recall@1"
    Path("e.yaml").write_text(FILE.format(metrics=metrics, gate="{system: a, metric: clean@2, min: 0.5}"))
    outcome = run_experiment("e.yaml", changes=["compare={baseline: a}"])
    assert not outcome.passed
    assert outcome.folder is not None
    assert (outcome.folder / "report.html").stat().st_size > 10_000
    system, _ = json.loads((outcome.folder / "results.json").read_text())["datasets"]["d"]["systems"]
    assert system["metrics"]["clean@2"]["mean"] is None
