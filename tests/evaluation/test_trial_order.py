"""Trials have no order: none of what is counted over them depends on it, and counts are means over single trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.evaluation.misses import failures_of, middle_rank

TRUTH = {"p": [["a"], ["b"]], "q": [["c"]], "r": [["d"]], "s": [["e"]]}
TRIALS = [
    {"p": ["a", "b"], "q": ["c"], "r": ["x", "y", "d"], "s": ["x"]},
    {"p": ["a", "x", "b"], "q": ["x", "c"], "r": ["d"], "s": ["y"]},
    {"p": ["x", "a"], "q": ["y"], "r": ["x", "d"], "s": ["x", "y"]},
]
ONE = {"p": ["b", "a"], "q": ["x"], "r": ["d"], "s": ["e"]}
# What is shown of a system with trials, alone or beside another.
SHOWN: dict[str, Callable[[Any], object]] = {
    "means": lambda trials: groupgt.evaluate(TRUTH, trials, ["complete@2", "mrr"]).to_dict(per_query=True),
    "comparison": lambda trials: groupgt.compare(TRUTH, {"one": ONE, "agent": trials}, ["complete@2"]).to_dict(),
    "failures": lambda trials: failures_of(evaluated(trials), 2).rows(),
    "misses": lambda trials: groupgt.misses(TRUTH, trials, k=2).to_dict(),
    "misses of several": lambda trials: str(groupgt.misses(TRUTH, {"one": ONE, "agent": trials}, k=2)),
    "depth": lambda trials: groupgt.depth(TRUTH, trials, [0.5, 0.9]).to_dict(),
    "stages": lambda trials: [
        each.to_dict() | {"groups": None}
        for each in (
            groupgt.stages(TRUTH, {"agent": trials, "one": ONE}),
            groupgt.stages(TRUTH, {"one": ONE, "agent": trials}),
        )
    ],
    "outcomes": lambda trials: groupgt.outcomes(TRUTH, trials, {"p": 1, "q": 0, "r": 1, "s": 0}, k=2).to_dict(),
    "figure of depth": lambda trials: groupgt.evaluate(TRUTH, trials, ["mrr"]).plot("depth").rows,
    "figure of first hits": lambda trials: groupgt.evaluate(TRUTH, trials, ["mrr"]).plot("ecdf").rows,
}


def run_of(trials: Sequence[dict[str, list[str]]]) -> groupgt.Run:
    return groupgt.Run.of_trials([groupgt.Run.of(trial) for trial in trials])


def evaluated(trials: Any) -> dict[str, groupgt.Evaluation]:
    runs = {"one": ONE, "agent": trials}
    return {name: groupgt.evaluate(TRUTH, run, ["complete@2"], name=name) for name, run in runs.items()}


@pytest.mark.parametrize("shown", SHOWN)
def test_the_order_of_trials_changes_nothing(shown: str) -> None:
    found = [SHOWN[shown](run_of(order)) for order in permutations(TRIALS)]
    assert all(each == found[0] for each in found[1:])


def test_counts_are_means_over_trials() -> None:
    found = failures_of(evaluated(run_of(TRIALS)), 2)
    # Complete within 2: p and q, then q and r, then r.
    assert found.solved_counts["agent"] == pytest.approx((2 + 2 + 1) / 3)
    # one completes p, r and s. Of these, the agent lacks p in 2 trials of 3, r in 1, s in 3; it has q in 2.
    assert found.between("agent", "one")["only_second"] == pytest.approx((2 + 1 + 3) / 3)
    assert found.between("agent", "one")["only_first"] == pytest.approx(2 / 3)
    # The largest fall first.
    assert found.lost("agent", "one") == ["s", "p", "r"]
    table = groupgt.compare(TRUTH, {"one": ONE, "agent": run_of(TRIALS)}, ["complete@2"], baseline="one").text()
    assert "1.7/4" in table


def test_one_trial_counts_as_a_run() -> None:
    once, run = (failures_of(evaluated(results), 2) for results in (run_of(TRIALS[:1]), TRIALS[0]))
    assert once.to_dict() == run.to_dict()
    assert once.rows() == run.rows()


def test_the_middle_rank_of_two_is_the_later() -> None:
    # Ranks 1 and 3; 2 and never; 4, never and 1.
    assert middle_rank(np.array([[1, 2], [3, 0]])).tolist() == [3, 0]
    assert middle_rank(np.array([[4], [0], [1]])).tolist() == [4]
