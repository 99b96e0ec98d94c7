"""The best: by the primary metric, by AutoRAG's strategies, under a latency ceiling."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.experiment.best import BestRule, scores
from groupgt.experiment.outcome import Outcome
from groupgt.metrics.language import parse_metric
from groupgt.report.run import run_experiment
from tests.experiment.faulty_files import Fault, check_one
from tests.snapshots import Snapshot

# Three systems, two metrics.
MEANS = [[0.6, 0.2], [0.5, 0.4], [0.1, 0.5]]
BY_RANK = BestRule("rank", ["recall"], [parse_metric("recall")], None)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("mean", [0.4, 0.45, 0.3]),  # (.6 + .2) / 2, (.5 + .4) / 2, (.1 + .5) / 2
        ("rank", [1 + 1 / 3, 1 / 2 + 1 / 2, 1 / 3 + 1]),  # ranks 1 and 3, 2 and 2, 3 and 1
        # first: (.6 − .1) / .5 = 1 and 0; second: .4 / .5 = .8 and .2 / .3; third: 0 and 1
        ("normalized_mean", [0.5, (0.8 + 2 / 3) / 2, 0.5]),
    ],
)
def test_strategies(strategy: str, expected: list[float]) -> None:
    assert scores(strategy, MEANS, [True, True]) == pytest.approx(expected, abs=1e-12)


def test_ties_share_the_mean_of_their_ranks() -> None:
    # Two share ranks 1 and 2: each has rank 1.5.
    assert scores("rank", [[0.5], [0.5], [0.1]], [True]) == pytest.approx([1 / 1.5, 1 / 1.5, 1 / 3])
    assert BY_RANK.chosen({"a": [0.5], "b": [0.5], "c": [0.1]}) == ["a", "b"]


def test_less_can_be_better() -> None:
    assert scores("rank", [[3.0], [1.0]], [False]) == [0.5, 1.0]
    assert scores("primary", [[3.0], [1.0]], [False]) == [-3.0, -1.0]


def test_a_system_without_a_mean_has_no_score() -> None:
    found = scores("rank", [[math.nan, 0.5], [0.4, 0.3]], [True, True])
    assert math.isnan(found[0])
    assert found[1] == 2.0
    assert BY_RANK.chosen({"a": [math.nan], "b": [0.4]}) == ["b"]
    assert BY_RANK.chosen({"a": [math.nan]}) == []


@given(st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.5]), min_size=3, max_size=3), min_size=1, max_size=8))
def test_ranks_agree_with_pandas_rule(means: list[list[float]]) -> None:
    """The rule AutoRAG takes from pandas: `rank(ascending=False)` averages the places of equal values."""
    found = scores("rank", means, [True] * 3)
    for system, row in enumerate(means):
        total = 0.0
        for column, value in enumerate(row):
            others = sorted((each[column] for each in means), reverse=True)
            places = [place for place, other in enumerate(others, 1) if other == value]
            total += 1 / (sum(places) / len(places))
        assert found[system] == pytest.approx(total, abs=1e-12)


@pytest.mark.slow
def test_in_a_file(swept: Path) -> None:
    by_rank = run_experiment(swept, changes=["evaluate.best=rank"])
    means = {name: list(each.means.values()) for name, each in by_rank.evaluations["handbook"].items()}
    values = scores("rank", list(means.values()), [True] * 4)
    assert by_rank.leaders["handbook"] == [name for name, value in zip(means, values) if value == max(values)]
    one = run_experiment(swept, changes=["evaluate.best={strategy: mean, metrics: recall@5}"])
    recalls = {name: each["recall@5"] for name, each in one.evaluations["handbook"].items()}
    assert recalls[str(one.best["handbook"])] == max(recalls.values())


@pytest.mark.slow
def test_a_latency_ceiling(swept: Path, first: Outcome) -> None:
    none = run_experiment(swept, changes=["evaluate.best={max_latency_ms: 1.0e-9}"])
    assert none.best == {"handbook": None}
    every = run_experiment(swept, changes=["evaluate.best={max_latency_ms: 60000}"])
    assert every.best == first.best
    assert every.folder is not None
    assert "best by" not in (every.folder / "table.txt").read_text(encoding="utf-8")
    assert str(every.best["handbook"]) in (every.folder / "timings.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_means_of_what_should_be_little_are_not_added(swept: Path) -> None:
    change = "evaluate.metrics=[recall, ndcg, redundancy]"
    with pytest.raises(groupgt.ConfigError, match="redundancy"):
        run_experiment(swept, changes=[change, "evaluate.best=mean"])
    assert run_experiment(swept, changes=[change, "evaluate.best=rank"]).best["handbook"]


# --- Of files.

FAULTS: list[Fault] = [
    (
        "best: not evaluated",
        [("recall@1, ndcg@3]", "recall@1, ndcg@5]")],
        "46:25",
        "evaluate.best.metrics.1",
        "expected one of the metrics: recall@1, recall@3, ndcg@1",
    ),
    (
        "best: mean of what should be little",
        [("rank\n    metrics: [recall@1,", "mean\n    metrics: [redundancy@1,")],
        "46:14",
        "evaluate.best.metrics",
        "lower is better for redundancy@1; omit them",
    ),
    (
        "best: mean of all",
        [("rank\n    metrics: [recall@1, ndcg@3]", "normalized_mean")],
        "45:5",
        "evaluate.best.metrics",
        "lower is better for redundancy@1, redundancy@3; omit them",
    ),
    (
        "best: primary and metrics",
        [("strategy: rank", "strategy: primary")],
        "46:14",
        "evaluate.best.metrics",
        "the primary strategy uses only `evaluate.primary`; remove this key",
    ),
    ("best: no latency", [("max_latency_ms: 10000", "max_latency_ms: 0")], "47:21", "evaluate.best.", "number above 0"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_one_fault_is_one_line_at_its_place(folder: Path, fault: Fault) -> None:
    check_one(folder, fault)


def test_systems_that_tie_over_all_data_sets_are_named_together(tmp_path: Path, snapshot: Snapshot) -> None:
    rows = {"qa": [{"qid": f"q{number}", "retrieval_gt": [["a"]]} for number in range(4)]}
    for system, found in (("one", "a"), ("other", "a"), ("third", "x")):
        rows[system] = [{"qid": f"q{number}", "retrieved_ids": [found]} for number in range(4)]
    for name, some in rows.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some), encoding="utf-8")
    text = (
        "version: 1\nname: ties\nconvention: coverage\n"
        "datasets: {left: {ground_truth: qa.jsonl}, right: {ground_truth: qa.jsonl}}\n"
        "systems:\n  one: {use: results, with: {path: one.jsonl}}\n  other: {use: results, with: {path: other.jsonl}}\n"
        "#  third: {use: results, with: {path: third.jsonl}}\n"
        "evaluate: {metrics: [recall@2], primary: recall@2}\n"
    )
    (tmp_path / "two.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "three.yaml").write_text(text.replace("#  third", "  third"), encoding="utf-8")
    two, three = (run_experiment(tmp_path / f"{name}.yaml") for name in ("two", "three"))
    assert two.overall_leaders == ["one", "other"]
    # A mean over data sets, which nothing tests, is in no sentence.
    assert "data sets" not in three.text()
    snapshot(three.text())
    assert three.overall_leaders == ["one", "other"]
    assert three.overall == three.to_dict()["best"] == "one"
    by_rank = run_experiment(tmp_path / "three.yaml", changes=["evaluate.best=rank"])
    snapshot(by_rank.text())
