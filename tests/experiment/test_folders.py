"""A result folder says what its run said: builds, an audit, intervals for these queries, distances and warnings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from groupgt.errors import GroupgtWarning
from groupgt.experiment.outcome import Outcome
from groupgt.report.run import run_experiment
from groupgt.results.folder import ResultFolder
from groupgt.results.merge import merged, settings_of
from tests.conftest import Cli

pytestmark = pytest.mark.slow

QUERIES = 20
# How many queries each build of an index loses.
LOST = (2, 14, 6)
FILE = """
version: 1
name: kept
convention: coverage
datasets: {one: {ground_truth: truth.jsonl, audit: AUDIT}}
systems:
  a: {use: results, with: {path: a.jsonl}}
  b: {use: results, scores: ascending, with: {path: b.jsonl}}
evaluate: {metrics: [recall@1, mrr@2]}
compare: {baseline: a, metrics: [recall@1], resamples: 500}
output: {folder: out, formats: [json, csv]}
cache: null
"""


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def ran(folder: Path, number: str = "build", *, settings: str = "", audit: bool = False, corpus: str = "") -> Outcome:
    """Run an experiment whose system `b` has three builds, with distances as scores, and some queries without rows."""
    truth = [{"qid": f"q{n}", "retrieval_gt": [[f"d{n}"]]} for n in range(QUERIES)]
    lines(folder / "truth.jsonl", truth)
    lines(folder / "audit.jsonl", [*truth[:9], {"qid": "q9", "retrieval_gt": [["z"]]}, *truth[10:15]])
    lines(folder / "a.jsonl", [{"qid": f"q{n}", "retrieved_ids": [f"d{n}"]} for n in range(QUERIES)])
    rows = [
        {"qid": f"q{n}", "doc_id": name, "score": distance}
        for lost in LOST
        for n in range(QUERIES)
        for name, distance in ((f"d{n}", 0.2), ("z", 0.1 if n < lost else 0.3))
    ]
    lines(folder / "b.jsonl", [{**row, number: place // (2 * QUERIES)} for place, row in enumerate(rows)])
    audited = ", audit: audit.jsonl, assume_random: true" if audit else ""
    text = FILE.replace(", audit: AUDIT", audited + corpus)
    (folder / "kept.yaml").write_text(text.replace("resamples: 500", f"resamples: 500{settings}"))
    return run_experiment(folder / "kept.yaml")


@pytest.mark.parametrize(
    ("number", "how"),
    [
        ("build", {}),
        ("trial", {}),
        ("trial", {"settings": ", these_queries: true"}),
        ("trial", {"audit": True}),
        ("build", {"settings": ", test: t, alpha: 0.2"}),
    ],
)
def test_every_way_to_a_folder_gives_the_comparison_of_its_run(
    number: str, how: dict[str, Any], tmp_path: Path, cli: Cli
) -> None:
    if "test: t" in how.get("settings", ""):
        pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    outcome = ran(tmp_path, number, **how)
    said = outcome.comparison["one"].to_dict()
    for command in ("report", "compare"):
        told = cli(command, outcome.folder, "--format", "json")
        assert told.status == 0, told.err
        again = json.loads(told.out)
        again = again["one"] if command == "report" else again
        of_run = sorted(json.loads(json.dumps(said))["rows"], key=lambda row: row["system"])
        assert sorted(again["rows"], key=lambda row: row["system"]) == of_run
        assert again["failures"]["solved"] == said["failures"]["solved"]
        assert set(said["warnings"]) <= set(again["warnings"])
    if find_spec("scipy") is not None:
        assert cli("power", outcome.folder).status == 0


def test_an_audit_decides_everywhere_or_is_refused(tmp_path: Path, cli: Cli) -> None:
    plain = ran(tmp_path, "trial").folder
    audited = ran(tmp_path, "trial", audit=True).folder
    assert plain is not None
    assert audited is not None
    for order in ((plain, audited), (audited, plain)):
        told = cli("report", *order)
        assert told.status != 0
        assert "audit" in told.err
    again = ran(tmp_path, "trial", audit=True).folder
    told = cli("report", "--history", plain, audited, again, "--format", "json")
    rows = json.loads(told.out)["one"]
    # `a` has 1 on every query, so only the audit counts: 14 of its 15 queries.
    assert [row["recall.coverage@1"] for row in rows] == [1.0, pytest.approx(14 / 15), pytest.approx(14 / 15)]
    assert [(row["change"], row["note"]) for row in rows] == [(None, ""), (None, "other audit"), (0, "")]


def test_declared_builds_of_an_earlier_version_are_builds(tmp_path: Path, cli: Cli) -> None:
    outcome = ran(tmp_path)
    p_value = outcome.comparison["one"]["b"]["recall@1"].p_value
    (kept,) = Path(str(outcome.folder)).glob("runs/one/b.jsonl")
    kept.write_text(kept.read_text().replace('"build"', '"trial"'))
    manifest = Path(str(outcome.folder)) / "manifest.json"
    written = json.loads(manifest.read_text())
    del written["warnings"]
    written["config"]["systems"]["b"]["trials"] = {"n": 3, "of": "builds"}
    manifest.write_text(json.dumps(written))
    folder = ResultFolder.read(Path(str(outcome.folder)))
    assert merged([folder], settings_of([folder]))["one"]["b"]["recall@1"].p_value == p_value
    told = json.loads(cli("compare", outcome.folder, "--format", "json").out)
    assert [row["against_baseline"]["p_value"] for row in told["rows"] if row["system"] == "b"] == [p_value]
    assert "kept no warnings" in cli("report", outcome.folder).out
    # Without its results there are means of builds, which say nothing of others.
    kept.unlink()
    (tmp_path / "b.jsonl").unlink()
    report = cli("report", outcome.folder)
    assert report.status == 0
    assert p_value > 0.1
    assert "does not contain the run of 'b'" in report.out
    assert "no p-values for b, because values of individual builds are not stored" in report.out
    assert "significantly" not in report.out


def test_a_gate_on_a_significant_gain_over_earlier_builds(tmp_path: Path) -> None:
    """Against the same values as trials of one index, the gain is significant; other builds may lose nothing."""
    former = {number: ran(tmp_path, number) for number in ("trial", "build")}
    # As an experiment declares them.
    for outcome in former.values():
        manifest = Path(str(outcome.folder)) / "manifest.json"
        written = json.loads(manifest.read_text())
        written["config"]["systems"]["b"]["trials"] = {"n": 3, "of": "builds" if outcome is former["build"] else "runs"}
        manifest.write_text(json.dumps(written))
    gate = "gate: [{system: b, metric: recall@1, min_gain: 0.05, against: previous, must: significant}]\n"
    (tmp_path / "kept.yaml").write_text(
        FILE.replace(", audit: AUDIT", "").replace("path: b.jsonl", "path: c.jsonl") + gate
    )
    lines(tmp_path / "c.jsonl", [{"qid": f"q{n}", "doc_id": f"d{n}", "score": 0.1} for n in range(QUERIES)])
    results = {
        number: run_experiment(tmp_path / "kept.yaml", against=former[number].folder).gates[0] for number in former
    }
    assert {number: each.passed for number, each in results.items()} == {"trial": True, "build": False}
    assert "the gain is not significant" in results["build"].reason
    # Of a former run that did not keep its results, there is one mean of all builds.
    (tmp_path / "b.jsonl").unlink()
    for kept in tmp_path.glob("out/kept/*/runs/one/b.*"):
        kept.unlink()
    results = {
        number: run_experiment(tmp_path / "kept.yaml", against=former[number].folder).gates[0] for number in former
    }
    assert {number: each.passed for number, each in results.items()} == {"trial": True, "build": False}
    assert results["build"].problem == "no builds"


def test_a_report_repeats_the_warnings_of_its_folders(tmp_path: Path, cli: Cli) -> None:
    lines(tmp_path / "corpus.jsonl", [{"doc_id": f"d{n}", "contents": f"text {n}"} for n in range(QUERIES - 1)])
    with pytest.warns(GroupgtWarning, match="not in the corpus"):
        outcome = ran(tmp_path, corpus=", corpus: corpus.jsonl")
    told = " ".join(cli("report", outcome.folder).out.split())
    assert "1 ground truth id is not in the corpus, so it can never be retrieved: 'd19'" in told
    assert all(each.text in told for each in outcome.warnings["one"])
    assert "kept no warnings" not in told


def test_a_first_run_stores_the_baseline_of_the_next(tmp_path: Path, cli: Cli) -> None:
    ran(tmp_path)
    gate = "gate: [{system: b, metric: recall@1, max_drop: 0, against: previous}]\n"
    (tmp_path / "kept.yaml").write_text(FILE.replace(", audit: AUDIT", "").replace("folder: out", "folder: new") + gate)
    run = ("run", tmp_path / "kept.yaml", "--against", tmp_path / "new", "--allow-no-previous")
    first = cli(*run)
    assert first.status == 0
    assert "1 gate was skipped, because there is no previous result to compare with" in first.out
    second = cli(*run)
    assert second.status == 0
    assert "recall@1 drops at most 0 from the previous run" in second.out
    assert "skipped" not in second.out
