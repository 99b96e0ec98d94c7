"""What gates can detect before a run: by hand, against simulated runs, and in the words of the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from groupgt.cli.main import main
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import p_values
from groupgt.experiment.config import Gate
from groupgt.experiment.detectable import Detectable, detectable, has_limits, share_of_changes
from groupgt.metrics.language import parse_metric
from groupgt.model.hits import Floats
from groupgt.report.detectable import detected
from groupgt.report.run import run_experiment
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

RECALL = parse_metric("recall@2", "coverage")
SURE = Gate("*", "recall@2", max_drop=0.01, unless="not_significant")


def test_a_drop_that_is_enough_for_the_test() -> None:
    """Of 60 complete queries at least 6 must be lost: P(at least 6 of Binomial(60, p)) is 0.8 at p = 0.130."""
    found = detectable(SURE, np.ones(60), RECALL, Settings())
    assert (found.queries, found.mean, found.share) == (60, 1.0, 0.1)
    assert found.one_way == pytest.approx(0.130, abs=0.008)
    assert found.both_ways is not None
    assert found.both_ways > found.one_way


def test_a_bound_without_a_test() -> None:
    """A drop of more than 6 of 60: P(at least 7 of Binomial(60, p)) is 0.8 at p = 0.148."""
    gate = Gate("*", "recall@2", max_drop=0.1)
    assert detectable(gate, np.ones(60), RECALL, Settings()).one_way == pytest.approx(0.148, abs=0.008)


def test_a_gain_is_the_mirror_of_a_drop() -> None:
    gain = Gate("*", "recall@2", min_gain=0.01, must="significant")
    found = detectable(gain, np.zeros(60), RECALL, Settings())
    assert found.one_way == pytest.approx(0.130, abs=0.008)
    # The p of a gain is multiplied by the comparisons: 2 ÷ 2^9 × 10 ≤ 0.05 takes nine queries, at p = 0.186.
    assert detectable(gain, np.zeros(60), RECALL, Settings(), 10).one_way == pytest.approx(0.186, abs=0.008)


def test_nothing_is_detected_in_few_queries() -> None:
    """Five queries that all drop have p = 2 ÷ 2^5; nothing can drop from 0, or rise from 1."""
    assert detectable(SURE, np.ones(5), RECALL, Settings()).one_way is None
    assert detectable(SURE, np.zeros(50), RECALL, Settings()).one_way is None
    assert detectable(Gate("*", "recall@2", min_gain=0), np.ones(50), RECALL, Settings()).one_way is None
    found = detectable(SURE, np.ones(5), RECALL, Settings())
    words = "no drop is large enough for this gate to catch it 8 times in 10, not even a total loss"
    assert detected(SURE, found) == f"with 5 queries, {words}"


def test_a_gate_without_a_test_fails_beyond_its_limit() -> None:
    """The limit is on the measured drop. A true drop of just the limit is measured as a larger one half of the time."""
    text = detected(Gate("*", "recall@2", max_drop=0.1), Detectable(60, 0.8, 0.14, 0.2, 0.1))
    assert text.endswith("catches 0.2 or more. A measured drop beyond 0.1 always fails")


@pytest.mark.property
@pytest.mark.parametrize("test", ["randomization", "t"])
@pytest.mark.parametrize("graded", [False, True])
def test_what_is_promised_is_kept(test: Any, *, graded: bool) -> None:
    """In 2,000 runs of another simulation, in which a query is lost, or changes both ways, or stays."""
    if test == "t":
        pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    random = np.random.default_rng(7)
    values = random.beta(2, 1, 80).round(1) if graded else (random.random(80) < 0.8).astype(float)
    found = detectable(SURE, values, RECALL, Settings(test=test))
    for change, share in ((found.one_way, 0.0), (found.both_ways, 0.1)):
        assert change is not None
        runs = random.choice(values, (2000, 80))
        fate = random.random(runs.shape)
        hit = change / values.mean()
        lost = np.where(fate < hit, runs, 0.0)
        size = np.where(runs > 0, runs, values[values > 0].mean())
        lost += np.where((fate >= hit) & (fate < hit + share * (1 - hit)), size * random.choice([-1, 1], runs.shape), 0)
        p = p_values(test, lost.T, 999, 1)
        detected_in = ((lost.mean(axis=1) > 0.01) & (p <= 0.05)).mean()
        # Of 2,000 runs, 80% have a standard error of 0.9%; of the 1,000 copies it is 1.3%.
        assert 0.75 < detected_in < 0.86


def test_limits_of_metrics() -> None:
    """What is unbounded may drop to 0 and has no best value; where less is better, it is the other way round."""
    assert [has_limits(RECALL, is_gain=is_gain) for is_gain in (False, True)] == [True, True]
    unbounded = parse_metric("dcg@2", "coverage")
    assert [has_limits(unbounded, is_gain=is_gain) for is_gain in (False, True)] == [True, False]


@pytest.mark.parametrize(
    ("runs", "share"),
    [
        ([[1, 0, 1, np.nan], [1, 1, 1, 1]], 1 / 3),
        ([[1, 0]], 0.1),
        ([[1, 0], [1, 0]], 0.1),
        ([[np.nan], [1]], 0.1),
    ],
)
def test_the_share_of_changes(runs: list[list[float]], share: float) -> None:
    columns: list[Floats] = [np.array(run, dtype=np.float64) for run in runs]
    assert share_of_changes(columns) == share


FILE = """
version: 1
name: small
convention: coverage
datasets: {d: {ground_truth: truth.jsonl}}
systems:
  a: {use: results, with: {path: a.jsonl}}
  b: {use: results, with: {path: b.jsonl}}
evaluate: {metrics: [recall@2, dcg@2], depth: 5}
compare: {baseline: a, resamples: 500}
gate:
  - {system: b, metric: recall@2, max_drop: 0.01, against: previous, unless: not_significant}
  - {system: "*", metric: recall@2, max_drop: 0.01, unless: not_significant, slice: {kind: odd}}
  - {system: b, metric: dcg@2, min_gain: 0.1}
  - {system: b, metric: recall@2, min: 0.75}
  - {system: b, metric: recall@2, max: 0.5}
  - {system: b, metric: recall@2, min: 0.9}
output: {folder: out, formats: [json]}
"""


def written(folder: Path, lost: int) -> Path:
    """An experiment on 60 queries: `a` has all of them, and `b` all but some."""
    truth, rows = [], {"a": [], "b": []}  # type: ignore[var-annotated]
    for place in range(60):
        kind = "odd" if place % 2 else "even"
        truth.append({"qid": f"q{place}", "query": f"{place}?", "retrieval_gt": [["x"]], "kind": kind})
        rows["a"].append({"qid": f"q{place}", "retrieved_ids": ["x"]})
        rows["b"].append({"qid": f"q{place}", "retrieved_ids": ["y" if place < lost else "x"]})
    for name, lines in {"truth": truth, **rows}.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "small.yaml").write_text(FILE, encoding="utf-8")
    return folder / "small.yaml"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    main(["run", *words, "--dry-run"])
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if line.startswith("gate")]


def test_a_dry_run_says_what_gates_can_detect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, lost=12)
    lines = said(capsys, str(file))
    # From the files, without any run: 48 of 60 are 0.8.
    start = "gate 1 (recall@2, max_drop 0.01, against previous, unless not_significant), b on d: with 60 queries, "
    assert lines[0].startswith(f"{start}this gate catches a true drop of 0.1")
    assert (
        "or more (8 times in 10) if queries only get worse. If 10% of queries also change in both directions, "
        in lines[0]
    )
    assert lines[0].endswith(" or more. A measured drop beyond 0.01 passes unless significant")
    assert lines[1].startswith("gate 2 (recall@2, kind odd, max_drop 0.01, unless not_significant), * on d: with 30 ")
    assert lines[2] == "gate 3 (dcg@2, min_gain 0.1), b on d: its sensitivity is unknown, because dcg has no best value"
    assert (
        lines[3] == "gate 4 (recall@2, min 0.75), b on d: fails if the mean drops by more than 0.0500 (it was 0.8000)"
    )
    fails = "fails at the earlier mean of 0.8000; passes if the mean"
    assert lines[4] == f"gate 5 (recall@2, max 0.5), b on d: {fails} drops by at least 0.3000"
    assert lines[5] == f"gate 6 (recall@2, min 0.9), b on d: {fails} rises by at least 0.1000"


def test_it_is_told_from_earlier_runs_and_what_changed_between_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    run_experiment(written(tmp_path, lost=9))
    run_experiment(file := written(tmp_path, lost=12))
    # Three of 60 queries differ between the two runs; only rankings are stored, and measured again.
    (line, *_) = said(capsys, str(file), "--against", str(tmp_path / "out"))
    snapshot(line)
    # Without its own files, what a system does now is unknown, and what it did is not.
    text = file.read_text(encoding="utf-8").replace("a: {use", "c: {use").replace("baseline: a", "baseline: c")
    file.write_text(text.replace("path: a.jsonl", "path: b.jsonl"), encoding="utf-8")
    snapshot(said(capsys, str(file))[0])


def test_without_values_it_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, lost=12)
    corpus = '{"doc_id": "x", "contents": "one"}\n{"doc_id": "y", "contents": "two"}\n'
    (tmp_path / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    text = FILE.replace("truth.jsonl}", "truth.jsonl, corpus: corpus.jsonl}")
    file.write_text(text.replace("b: {use: results, with: {path: b.jsonl}}", "b: bm25"), encoding="utf-8")
    first, second, *_ = said(capsys, str(file))
    assert first.endswith("b on d: its sensitivity is unknown, because this system has no earlier run")
    assert "* on d: with 30 queries, this gate catches a true drop of" in second
    # Results that are elsewhere are not fetched before a run.
    file.write_text(FILE.replace("path: b.jsonl", "path: s3://bucket/b.jsonl"), encoding="utf-8")
    assert said(capsys, str(file))[0].endswith(
        "this system has no earlier run, and groupgt does not read its results before a run"
    )


def test_audited_differences_are_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, lost=12)
    audit = (tmp_path / "truth.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[::2]
    (tmp_path / "audit.jsonl").write_text("".join(audit), encoding="utf-8")
    text = FILE.replace("truth.jsonl}", "truth.jsonl, audit: audit.jsonl, assume_random: true}")
    file.write_text(text, encoding="utf-8")
    assert said(capsys, str(file))[0].endswith("is unknown, because an audit corrects the differences")


def test_power_says_it_of_a_result_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot
) -> None:
    pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    for lost in (9, 12):
        folder = run_experiment(written(tmp_path, lost=lost), changes=["output.formats=[csv]"]).folder
    capsys.readouterr()
    main(["power", str(folder)])
    told = capsys.readouterr()
    assert "b against a: 60 queries have" in told.out.replace("\u00a0", " ")
    lines = [line for line in told.out.splitlines() if line.startswith("gate")]
    assert "b on d: with 60 queries, this gate catches a true drop of 0.1" in lines[0]
    snapshot(lines[0])
    assert len(lines) == 6
    # One system has no power, but gates.
    main(["power", str(folder), "--system", "b"])
    assert capsys.readouterr().out.splitlines() == lines
    # Data for other programs stay alone.
    main(["power", str(folder), "--format", "json"])
    told = capsys.readouterr()
    assert json.loads(told.out)["power"] == 0.8
    assert [line.removeprefix("groupgt: ") for line in told.err.splitlines()] == lines
