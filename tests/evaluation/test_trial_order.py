"""Trials have no order: none of what is counted over them depends on it, and counts are means over single trials."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.evaluation.curves import cumulative
from groupgt.evaluation.misses import failures_of, middle_rank
from groupgt.evaluation.trials import Spread, changing_queries, noise_in

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
    "check": lambda trials: groupgt.check(TRUTH, trials).to_dict(),
    "figure of groups": lambda trials: groupgt.evaluate(TRUTH, trials, ["mrr"]).plot("groups").spec,
    "figure of first hits": lambda trials: groupgt.evaluate(TRUTH, trials, ["mrr"]).plot("ecdf").rows,
}


# Trials that differ in repeats, ties, harmful and judged results, unknown queries and missing ones.
MESSY_TRUTH = groupgt.read_ground_truth(
    pl.DataFrame(
        {
            "qid": [*TRUTH, "n"],
            "retrieval_gt": [*TRUTH.values(), []],
            "answerable": [True] * 4 + [False],
            "harmful_ids": [["x"], [], [], ["y"], []],
            "nonrelevant": [[], ["z"], [], [], []],
        }
    )
)
MESSY: list[dict[str, Any]] = [
    {"p": ["a", "a", "x"], "q": [("c", 0.5), ("z", 0.5)], "r": ["d"], "extra": ["a"], "n": [("a", 0.1)]},
    {"p": ["x", "b"], "q": [("z", 2.0), ("c", 1.0)], "s": ["y", "e", "y"], "n": [("a", 3.0)]},
    {"p": ["b", "a", "x"], "q": [("c", 1.0)], "r": ["u", "v", "w", "d"], "s": ["e"]},
]
CALLS: list[dict[str, Any]] = [
    {"p": [{"id": "a", "call": 1}, {"id": "b", "call": 3}], "q": [{"id": "c", "call": 2}]},
    {"p": [{"id": "x", "call": 1}, {"id": "a", "call": 2}], "q": [{"id": "c", "call": 1}]},
]
METRICS = ["recall@2", "mrr", "clean@2"]
MESSY_SHOWN: dict[str, Callable[[Any], object]] = {
    "evaluation": lambda trials: groupgt.evaluate(MESSY_TRUTH, trials, METRICS).to_dict(),
    "counts": lambda trials: groupgt.evaluate(MESSY_TRUTH, trials, METRICS).counts,
    "text": lambda trials: groupgt.evaluate(MESSY_TRUTH, trials, METRICS).text(),
    "misses": lambda trials: groupgt.misses(MESSY_TRUTH, trials, k=2).to_dict(),
    "text of misses": lambda trials: groupgt.misses(MESSY_TRUTH, trials, k=2).text(),
    "comparison": lambda trials: groupgt.compare(MESSY_TRUTH, {"one": ONE, "agent": trials}, METRICS).text(),
    "summary": lambda trials: groupgt.compare(MESSY_TRUTH, {"one": ONE, "agent": trials}, METRICS).summary(),
    "check": lambda trials: groupgt.check(MESSY_TRUTH, trials).to_dict(),
    "identify": lambda trials: groupgt.identify(TRUTH, trials, "0.5", ["recall", "mrr", "map"]).to_dict(),
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


@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
@pytest.mark.parametrize("shown", MESSY_SHOWN)
def test_the_order_of_messy_trials_changes_nothing(shown: str) -> None:
    found = [MESSY_SHOWN[shown](run_of(order)) for order in permutations(MESSY)]
    assert all(each == found[0] for each in found[1:])


@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_counts_are_those_of_the_worst_trial() -> None:
    found = groupgt.evaluate(MESSY_TRUTH, run_of(MESSY), METRICS).counts
    # One query with a repeat: p in the first trial, s in the second. Every query has results in some trial.
    assert (found["duplicates"], found["extra"], found["missing"]) == (1, 1, 0)
    # Of repeats in one trial, only the first counts.
    (_, of_s) = groupgt.misses(MESSY_TRUTH, run_of(MESSY), k=3).harmful or []
    assert of_s == {"qid": "s", "rank": 1, "id": "y", "returned_trials": 1, "trials": 3}
    harmful = groupgt.misses(MESSY_TRUTH, run_of(MESSY), k=2).harmful
    # x is second in trial 1 after its repeat counts (rank 3), first in trial 2; y is first and third in trial 2.
    assert harmful == [
        {"qid": "p", "rank": 1, "id": "x", "returned_trials": 1, "trials": 3},
        {"qid": "s", "rank": 1, "id": "y", "returned_trials": 1, "trials": 3},
    ]


def test_thresholds_pool_all_trials() -> None:
    rows = {"qid": ["p", "n"], "retrieval_gt": [[["a"]], []], "answerable": [True, False]}
    truth = groupgt.read_ground_truth(pl.DataFrame(rows))
    trials = [{"p": [("a", 0.9)], "n": [("x", 0.2)]}, {"p": [("a", 0.4)], "n": [("x", 0.6)]}]
    found = [groupgt.thresholds(truth, run_of(order), [1.0]).to_dict() for order in (trials, trials[::-1])]
    assert found[0] == found[1]
    # Above .6 no trial of n has a result; of p, only the first trial keeps one.
    last = found[0]["thresholds"][-1]
    assert (last["recall"], last["answered"]) == (0.5, 0.5)


def test_searches_are_means_over_trials() -> None:
    found = [groupgt.evaluate(TRUTH, run_of(order), ["recall"]).to_dict()["calls"] for order in (CALLS, CALLS[::-1])]
    assert found[0] == found[1]
    # After call 1: nothing and c. After call 2: a and c, and a and c.
    assert [each["covered"] for each in found[0]] == [1, 2, 2.5]


def test_a_system_with_trials_has_no_single_run() -> None:
    found = groupgt.evaluate(TRUTH, run_of(TRIALS), ["mrr"])
    assert isinstance(found, groupgt.Repeated)
    assert isinstance(groupgt.evaluate(TRUTH, ONE, ["mrr"]), groupgt.Evaluation)
    assert not hasattr(found, "run")
    assert not hasattr(found, "labelled")
    assert [each.name for each in found.each] == [found.name] * 3


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


@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
@pytest.mark.parametrize("metric", ["clean@1", "abstains"])
def test_a_metric_without_a_defined_query_has_no_value_in_trials_either(metric: str) -> None:
    trials = run_of(TRIALS)
    found = groupgt.evaluate(TRUTH, trials, ["mrr", metric])
    assert np.isnan(found.means[metric])
    assert "–" in found.text()
    compared = groupgt.compare(TRUTH, {"one": ONE, "agent": trials}, ["mrr", metric], baseline="one")
    assert compared.means["agent"][metric] is None
    assert compared.text()


def test_means_that_differ_by_rounding_are_tied() -> None:
    # Recall of ten groups: .2, and 0, 0 and .6 over three trials, whose mean is .19999999999999998.
    truth = {"q": [[f"d{n}"] for n in range(10)]}
    trials = run_of([{"q": ["x"]}, {"q": ["x"]}, {"q": [f"d{n}" for n in range(6)]}])
    runs = {"once": {"q": ["d0", "d1"]}, "trials": trials}
    table = groupgt.compare(truth, runs, ["recall@10"])
    assert table.is_best("once", "recall@10")
    assert table.is_best("trials", "recall@10")
    assert "Both runs have the same mean on recall@10" in groupgt.evaluate_runs(truth, runs, ["recall@10"]).text()


def test_queries_that_differ_in_two_trials() -> None:
    # 1, 2 and 1 queries.
    assert changing_queries(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])) == pytest.approx(4 / 3)


def test_variances_do_not_depend_on_the_order_of_trials_in_the_last_bit() -> None:
    values = np.random.default_rng(3).random((7, 40))
    for is_build in (False, True):
        spreads = {Spread.of(np.roll(values, by, axis=0), bounded=True, is_build=is_build) for by in range(7)}
        assert len(spreads) == 1
    assert len({noise_in(np.roll(values, by, axis=0)) for by in range(7)}) == 1


def test_a_rank_of_0_is_never_reached() -> None:
    assert cumulative(np.array([2, 0, 2, 5]), np.ones(4)) == [(1, 0.0), (2, 0.5), (5, 0.75)]


def test_a_check_counts_the_worst_trial(tmp_path: Path) -> None:
    """Only trial 2 has repeats (p), rising scores (p, q), a query without hits (q), and lacks r."""
    trials = [
        {"p": [("a", 3), ("b", 2)], "q": [("c", 2), ("x", 1)], "r": [("d", 1)]},
        {"p": [("a", 1), ("a", 2)], "q": [("x", 1), ("y", 2)], "z": [("a", 1)]},
    ]
    rows = [
        {"qid": qid, "trial": number, "retrieved_ids": [doc for doc, _ in row], "scores": [score for _, score in row]}
        for number, trial in enumerate(trials)
        for qid, row in trial.items()
    ]
    file = tmp_path / "run.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    checked = groupgt.check({qid: TRUTH[qid] for qid in "pqr"}, file)
    found = {each.what: (each.count, each.example) for each in checked.findings[str(file)] if each.count}
    assert found == {
        "queries with results": (3, ""),
        "results for these queries": (5, "1 to 2 a query, median 2"),
        "judged queries without results (missing)": (1, "r"),
        "queries without ground truth (extra)": (1, ""),
        "queries with a repeated result": (1, ""),
        "queries with a repeated relevant result": (1, ""),
        "queries with no hits": (1, "q"),
        "queries whose scores rise along the ranking": (2, "declare distances with scores=ascending"),
    }
    assert list(checked.fails.values()) == [1, 2]


def test_ids_are_compared_with_the_results_of_all_trials() -> None:
    """Each trial alone has 1 of 12 relevant ids, and hits for 1 of 12 queries. All together have them all."""
    truth = {f"q{n}": [[f"d{n}"]] for n in range(12)}
    trials = [{qid: [f"d{n}" if n == trial else "other"] for n, qid in enumerate(truth)} for trial in range(12)]
    assert groupgt.evaluate(truth, run_of(trials), ["mrr"])["mrr"] == pytest.approx(1 / 12)
    assert groupgt.check(truth, run_of(trials)).fails == {}
    with pytest.warns(groupgt.GroupgtWarning, match="11 of 12 relevant ids"):
        groupgt.evaluate(truth, run_of(trials[:1] * 2), ["mrr"])


def test_a_figure_of_groups_counts_means_over_trials() -> None:
    # Of the groups p1, p2, q, r and s, 4, 4 and 2 are found. Without r, which every trial finds: 3, 3 and 1.
    drawn = groupgt.evaluate(TRUTH, run_of(TRIALS), ["mrr"]).plot("groups")
    assert drawn.text == "Groups covered, of 5: results 3.3."
    assert groupgt.misses(TRUTH, run_of(TRIALS)).plot().text == "Groups covered, of 4: results 2.3."


def test_queries_of_all_and_of_no_system_are_means_over_pairs_of_trials() -> None:
    """Complete at 2 are p in 1 of 3 trials, q and r in 2, s in none; one completes p, r and s."""
    found = failures_of(evaluated(run_of(TRIALS)), 2)
    assert found.every_count == pytest.approx(1 / 3 + 2 / 3)
    assert found.none_count == pytest.approx(1 / 3)  # q
    several = groupgt.misses(TRUTH, {"one": ONE, "agent": run_of(TRIALS)}, k=2).text()
    assert "agent 1.7. 0.3 queries are complete in no run." in several


def test_misses_of_one_system_are_means_over_trials() -> None:
    """Of the groups p1, p2, q, r and s, trials cover 3, 1, 2, 2 and 0 at 2, and find 3, 2, 2, 3 and 0 anywhere."""
    found = groupgt.misses(TRUTH, run_of(TRIALS), k=2)
    assert found.incomplete == pytest.approx(7 / 3)
    text = found.text()
    assert "completes 1.7 of 4 queries at 2 in an average trial. It misses 2.3 of 5 groups: 1.7 are not" in text
    assert "p  1.3 of 2 groups" in text
    # Within 2, only trial 2 returns harmful passages, for p and s; within 3, each trial also does for p.
    harmful = [groupgt.misses(MESSY_TRUTH, run_of(MESSY), k=k).harmful_queries for k in (2, 3)]
    assert harmful == pytest.approx([2 / 3, 4 / 3])


def test_a_count_over_trials_has_the_noise_of_its_metric() -> None:
    """Complete at 2 are p in 1 of 3 trials, q and r in 2, s in none: 0.4167. In one of two: 2/3, 1, 1 and 0."""
    alone = groupgt.evaluate(TRUTH, run_of(TRIALS), ["complete(pass_at=2)@2"])
    assert alone["complete(pass_at=2)@2"] == pytest.approx((2 / 3 + 1 + 1) / 4)
    noisy = groupgt.evaluate(TRUTH, run_of(TRIALS), ["complete@2"])
    rows = [
        [line.split() for line in each.text().split("\n") if line.startswith("results ")] for each in (alone, noisy)
    ]
    assert rows[0] == rows[1]
    assert rows[0][0][:3] == ["results", "complete@2", "0.4167"]
    both = groupgt.evaluate(TRUTH, run_of(TRIALS), ["complete(pass_at=2)@2", "complete@2"]).text()
    assert both.count("\nresults ") == 1
    compared = groupgt.compare(TRUTH, {"one": run_of([ONE] * 2), "agent": run_of(TRIALS)}, ["complete(pass_at=2)@2"])
    assert "Two runs of agent" in compared.text()
    assert "Two runs of agent" in compared.summary()


@pytest.mark.parametrize("name", ["pass_at", "pass_all"])
def test_one_trial_of_a_single_run_is_its_plain_value(name: str) -> None:
    found = groupgt.evaluate(TRUTH, ONE, [f"complete({name}=1)@2", "complete@2"])
    assert found.means[f"complete({name}=1)@2"] == found["complete@2"] == 0.75
    assert f"complete.autorag({name}=1)@2 = 1.0000" in found.explain("p")
    with pytest.raises(groupgt.MetricError, match="expected at least 2 trials, found a single run"):
        groupgt.evaluate(TRUTH, ONE, [f"complete({name}=2)@2"])
