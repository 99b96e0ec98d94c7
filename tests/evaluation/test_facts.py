"""What is said of the convention autorag: perfect rankings below 1, and where AutoRAG's own policy says otherwise."""

from __future__ import annotations

import random
from itertools import combinations, permutations

import pytest

import groupgt
from groupgt.evaluation.facts import below_one
from tests.snapshots import Snapshot

FILLER = [f"x{number}" for number in range(9)]


def perfect(groups: list[list[str]]) -> list[list[str]]:
    """Every ranking of as few documents as meet all groups, in any order, followed by others."""
    documents = sorted({name for group in groups for name in group})
    for size in range(1, len(documents) + 1):
        chosen = [
            picked for picked in combinations(documents, size) if all(set(picked) & set(group) for group in groups)
        ]
        if chosen:
            return [[*order, *FILLER] for picked in chosen for order in permutations(picked)]
    raise AssertionError("no ranking meets all groups")


@pytest.mark.parametrize("seed", range(60))
def test_a_perfect_ranking_scores_below_1_just_where_it_is_said(seed: int) -> None:
    draw = random.Random(seed)
    names = list("abcd") if seed % 2 else list("abcdefgh")
    groups: list[list[str]] = []
    for _ in range(draw.randint(1, 3)):
        groups.append(draw.sample(names, draw.randint(1, 2)))
        if not seed % 2:  # no document in two groups
            names = [name for name in names if name not in groups[-1]]
    shares = len({name for group in groups for name in group}) < sum(map(len, groups))
    texts = ["mrr", "map", "ndcg", "mrr@2", "map@3", "ndcg@1", "ndcg@2", "ndcg@5", "recall@9", "complete"]
    run = {str(number): ranking for number, ranking in enumerate(perfect(groups))}
    lists = groupgt.evaluate(dict.fromkeys(run, groups), run, texts)
    coverage = groupgt.evaluate(dict.fromkeys(run, groups), run, texts, convention="coverage")
    truth = groupgt.evaluate({"q": groups}, {"q": []}, ["recall"]).truth
    for text in texts:
        name, _, cutoff = text.partition("@")
        best, covered = (max(result.values[text].tolist()) for result in (lists, coverage))
        said = bool(below_one(truth.judgments, name, int(cutoff) if cutoff else None)[0])
        if said:
            assert best < 1 - 1e-9, (groups, text)
            assert covered == pytest.approx(1), (groups, text)
        elif not shares:
            assert best == pytest.approx(1) or covered < 1, (groups, text)


def test_the_line_says_for_how_many_queries_and_names_coverage(snapshot: Snapshot) -> None:
    truth = {"one": [["a"]], "either": [["a", "b"]], "both": [["a"], ["b"]], "shared": [["a"], ["a", "b"]]}
    run = {qid: ["a", "b"] for qid in truth}
    text = groupgt.evaluate(truth, run, ["recall@2", "mrr", "ndcg@2", "map"]).text()
    snapshot(text)
    text = groupgt.evaluate_runs(truth, {"r": run, "s": run}, ["mrr"]).text()
    assert text.count("below 1 in mrr for 1 of 4 queries") == 1
    assert "below 1" not in groupgt.evaluate({"one": [["a"]]}, {"one": ["a"]}, ["mrr", "ndcg", "map"]).text()
    assert "below 1" not in groupgt.evaluate(truth, run, ["mrr", "ndcg", "map"], convention="coverage").text()
    assert "below 1" not in groupgt.evaluate(truth, run, ["recall", "precision", "mrr.trec"]).text()
    assert "below 1" not in groupgt.evaluate(truth, run, ["mrr", "mrr.coverage"]).text()


OFFER = "--policy autorag"
TRUTH = {"q1": [["a"]], "q2": [["b"]]}


@pytest.mark.parametrize(
    ("run", "metric", "offered"),
    [
        ({"q1": ["a"]}, "recall", True),  # a query without results
        ({"q1": ["x"]}, "recall", False),  # all means are 0 under both
        ({"q1": ["a", "x", "a"], "q2": ["b"]}, "map", True),  # the repeat hits again
        ({"q1": ["a", "x", "a"], "q2": ["b"]}, "recall", False),
        ({"q1": {"a": 0.5, "c": 0.5}, "q2": ["b"]}, "recall@1", True),  # by id, c comes first
        ({"q1": {"a": 0.5, "A": 0.5}, "q2": ["b"]}, "recall@1", False),  # the order is the same
        ({"q1": ["a"], "q2": ["b"]}, "recall", False),
    ],
)
def test_autorag_s_policy_is_offered_just_where_a_mean_differs(
    run: dict[str, object], metric: str, offered: bool
) -> None:
    evaluation = groupgt.evaluate(TRUTH, run, [metric])
    theirs = groupgt.evaluate(TRUTH, run, [metric], policy="autorag")
    assert (evaluation[metric] != theirs[metric]) is offered
    assert (OFFER in evaluation.text()) is offered
    assert OFFER not in theirs.text()
    assert OFFER not in groupgt.evaluate(TRUTH, run, [metric], convention="coverage").text()


def test_the_offer_names_the_runs(snapshot: Snapshot) -> None:
    runs = {"whole": {"q1": ["a"], "q2": ["b"]}, "half": {"q1": ["a"]}, "other": {"q2": ["b"]}}
    two = dict(list(runs.items())[:2])
    snapshot(groupgt.evaluate_runs(TRUTH, two, ["recall"]).text())
    snapshot(groupgt.evaluate_runs(TRUTH, runs, ["recall"]).text())


def test_what_stands_below_means_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from groupgt.evaluation import facts

    labelled: list[groupgt.Run] = []
    carrier_of = facts.carrier_of
    monkeypatch.setattr(facts, "carrier_of", lambda run: labelled.append(run) or carrier_of(run))
    ties = {"q": [("x", 1.0), ("a", 1.0)], "p": ["a", "a"]}
    evaluation = groupgt.evaluate({"q": [["a"]], "p": [["a"], ["b"]]}, ties, ["recall@1", "ndcg@2"])
    assert labelled == []
    assert [evaluation.text() for _ in range(3)].count(evaluation.text()) == 3
    groupgt.evaluation.runs.Evaluations.of([evaluation], ["autorag"]).text()
    assert len(labelled) == 1
