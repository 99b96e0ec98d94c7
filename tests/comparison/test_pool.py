"""Pool bias: what is left without a team's own judgments, against ground truth that is rewritten by hand."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.comparison.pool import spreads, teams_of


def data(seed: int) -> tuple[dict[str, list[list[dict[str, Any]]]], dict[str, dict[str, list[str]]]]:
    rng = random.Random(seed)
    docs = [f"d{number}" for number in range(14)]
    truth = {
        f"q{number}": [
            [{"id": name, "grade": rng.choice((0, 1, 2))} for name in rng.sample(docs, 3)]
            for _ in range(rng.randint(1, 3))
        ]
        for number in range(8)
    }
    runs = {name: {qid: rng.sample(docs, 5) for qid in truth} for name in ("a1", "a2", "b", "c")}
    return truth, runs


@pytest.mark.parametrize("metric", ["recall.coverage@5", "ndcg.trec@5", "map.autorag", "bpref"])
@pytest.mark.parametrize("seed", range(6))
def test_without_own_judgments_is_evaluated_on_what_is_left(seed: int, metric: str) -> None:
    truth, runs = data(seed)
    depth, teams = 3, {"a1": "a", "a2": "a", "b": "b", "c": "c"}
    result = groupgt.pool(truth, runs, metric, depth=depth, team=r"([a-c])")
    for name, run in runs.items():
        fewer: dict[str, list[Any]] = {}
        unique, dropped = 0, 0
        for qid, groups in truth.items():
            top = {
                team: {doc for each in teams if teams[each] == team for doc in runs[each][qid][:depth]}
                for team in "abc"
            }
            own = top[teams[name]] - {doc for team in "abc" if team != teams[name] for doc in top[team]}
            left = [[cell for cell in group if cell["id"] not in own] for group in groups]
            unique += sum(cell["id"] in own for group in groups for cell in group)
            had = [any(cell["grade"] > 0 for cell in group) for group in groups]
            has = [any(cell["grade"] > 0 for cell in group) for group in left]
            dropped += sum(had) - sum(has)
            fewer[qid] = [group for group, before, after in zip(left, had, has) if group and (after or not before)]
        pooled = result[name]
        assert (pooled.unique, pooled.dropped) == (unique, dropped)
        expected = groupgt.evaluate(fewer, run, [metric])
        assert pooled.without == pytest.approx(expected[metric], nan_ok=True)
        both = expected.truth.judgments.defined
        whole = groupgt.evaluate(truth, run, [metric]).values[metric][both]
        assert pooled.value == pytest.approx(whole.mean() if len(whole) else math.nan, nan_ok=True)


def test_by_hand() -> None:
    truth = {"q": {"a": 1, "b": 1, "c": 1, "n": 0}}
    result = groupgt.pool(truth, {"one": {"q": ["a", "x", "b"]}, "two": {"q": ["b", "c", "n"]}}, "recall@3")
    one, two = result["one"], result["two"]
    # a is one's own: b of b and c is left. c and n are two's own: b of a and b is left.
    assert (one.value, one.without, one.unique, one.relevant) == (pytest.approx(2 / 3), 0.5, 1, 1)
    assert (two.value, two.without, two.unique, two.relevant) == (pytest.approx(2 / 3), 0.5, 2, 1)
    assert (one.judged, two.judged) == (pytest.approx(2 / 3), 1)
    # x alone is unjudged, at rank 2 of one run.
    assert [(each.doc_id, each.spread, each.systems) for each in result.queue] == [("x", 1 / math.log2(3), ("one",))]


def test_swaps() -> None:
    truth = {f"q{number}": {"a": 1, "b": 1, "c": 1} for number in range(4)}
    runs = {"own": {qid: ["a", "b"] for qid in truth}, "other": {qid: ["c"] for qid in truth}}
    result = groupgt.pool(truth, runs, "recall@2")
    # Without a and b, `own` finds nothing and `other` all.
    assert result["own"].swaps == ("other",)
    assert result["other"].swaps == ()


def test_spread_over_rankings() -> None:
    found = spreads([["j", "x", "y"], ["x", "z"], ["y", "x"]], ["j"], 3)
    # x: ranks 2, 1, 2, so 1 − 1/log2 3; y: ranks 3 and 1, not in the second: 1; z: rank 2 of one: 1/log2 3.
    assert found == {"y": 1.0, "z": pytest.approx(1 / math.log2(3)), "x": pytest.approx(1 - 1 / math.log2(3))}


@pytest.mark.parametrize(
    ("team", "text"),
    [
        ("(", "expected a pattern, found"),
        ("a", "a pattern with a group"),
        (r"(a)", "no team for b"),
        ({"a": "x"}, "no team for b"),
    ],
)
def test_teams_that_are_refused(team: Any, text: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=text):
        teams_of(["a", "b"], team)


def test_one_team_and_other_labellers_are_refused() -> None:
    truth, runs = data(1)
    with pytest.raises(groupgt.ConfigError, match="at least two teams"):
        groupgt.pool(truth, runs, "recall@5", team=dict.fromkeys(runs, "all"))
    with pytest.raises(groupgt.ConfigError, match="matched by id"):
        groupgt.pool(truth, runs, "recall@5", labeller={"use": "parents", "with": {"pattern": "(.*)"}})


def test_one_metric_with_one_cutoff() -> None:
    truth, runs = data(2)
    assert groupgt.pool(truth, runs, "recall.coverage", k=3).cutoff == 3
    assert groupgt.pool(truth, runs, "recall.coverage", k=3).metric == "recall.coverage@3"
    with pytest.raises(groupgt.ConfigError, match="one metric with one cutoff, found recall@3, recall@5"):
        groupgt.pool(truth, runs, "recall", k=[3, 5])


def test_teams_are_read_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "teams.csv"
    path.write_text("run,year,team\na,2024,one\nb,2024,two\nc,2025,one\n", encoding="utf-8")
    assert teams_of(["a", "b", "c"], str(path)) == {"a": "one", "b": "two", "c": "one"}
    with pytest.raises(groupgt.ConfigError, match="no team for d"):
        teams_of(["a", "d"], str(path))
    path.write_text("system,team\na,one\n", encoding="utf-8")
    with pytest.raises(groupgt.DataError, match="expected the columns run and team, found system, team"):
        teams_of(["a"], str(path))
