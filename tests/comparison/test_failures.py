"""Which groups runs cover, which queries each system completes, headroom: small cases by hand, large by a slow loop."""

from __future__ import annotations

import random

import pytest

import groupgt
from groupgt.comparison.headroom import headroom_of
from groupgt.evaluation.misses import failures_of

TRUTH = {"p": [["a", "b"], ["c"]], "q": [["d"]], "r": [["e"]], "s": [["f"]], "t": []}
ONE = {"p": ["b", "x", "c"], "q": ["d"], "r": ["x"], "s": ["x", "x", "f"]}
TWO = {"p": ["a", "b"], "q": ["x", "d"], "r": ["x", "e"], "s": ["x"]}


def evaluations(**runs: dict[str, list[str]]) -> dict[str, groupgt.Evaluation]:
    return {name: groupgt.evaluate(TRUTH, run, ["recall.coverage@2", "complete"]) for name, run in runs.items()}


def test_who_solves_what() -> None:
    every = evaluations(one=ONE, two=TWO)
    whole = failures_of(every)
    assert whole.only("one") == ["p", "s"]
    assert whole.only("two") == ["r"]
    assert (whole.every_count, whole.none_count) == (1, 0)
    assert whole.nobody == []
    assert whole.between("one", "two") == {"both": 1, "only_first": 2, "only_second": 1, "neither": 0}
    cut = failures_of(every, 2)
    assert (cut.only("one"), cut.only("two"), cut.nobody) == ([], ["r"], ["p", "s"])
    assert (cut.every_count, cut.none_count) == (1, 2)


def test_rows_of_one_query() -> None:
    headers, rows = failures_of(evaluations(one=ONE, two=TWO)).rows()
    names = ["first_hits", "covered", "missed", "completion_rank", "redundancy"]
    found = {row[0]: [row[headers.index(name)] for name in names] for row in rows if row[1] == "p"}
    # `two` returns a and b: the second is relevant and meets nothing new.
    assert found == {"one": ["1 3", 2, 0, 3, 0.0], "two": ["1 0", 1, 1, None, 0.5]}


def test_the_hardest_groups_come_first() -> None:
    found = failures_of(evaluations(one=ONE, two=TWO), 2).hardest()
    # Within 2: c and f are met by none (c at 3 of one system, f at 3 of one: by position), e by one.
    assert [(group.qid, group.group, sum(place.is_covered for place in group.places.values())) for group in found] == [
        ("p", "group 2", 0),
        ("s", "group 1", 0),
        ("r", "group 1", 1),
    ]


def test_headroom_by_hand() -> None:
    every = evaluations(one=ONE, two=TWO)
    found = {each.metric: each for each in headroom_of(every, failures_of(every, 2))}
    # recall@2 of p q r s: one 1/2 1 0 0, two 1/2 1 1 0; the best of each 1/2 1 1 0.
    recall = found["recall.coverage@2"]
    assert (recall.best, recall.mean, recall.per_query, recall.queries) == ("two", 2.5 / 4, 2.5 / 4, 4)
    # complete: one 1 1 0 1, two 0 1 1 0; the best of each 1 1 1 1.
    assert (found["complete"].best, found["complete"].mean, found["complete"].per_query) == ("one", 0.75, 1.0)
    # The union of both within 2 meets group 1 of p, q, r: (1/2 + 1 + 1 + 0) / 4; complete q and r.
    assert (recall.union_recall, recall.union_complete) == (2.5 / 4, 0.5)
    # Different ones within 2: b x a of p, d x of q, x e of r, x of s.
    assert recall.union_size == (3 + 2 + 2 + 1) / 4
    # Given 2 results each, one meets 1/2 1 0 0, two 1/2 1 1 0.
    assert recall.single_recall == 2.5 / 4


def test_weights_count_in_the_union() -> None:
    truth = {"q": [{"alternatives": ["a"], "weight": 3}, ["b"]]}
    every = {name: groupgt.evaluate(truth, {"q": ids}, ["recall"]) for name, ids in (("one", ["a"]), ("two", ["x"]))}
    assert headroom_of(every, failures_of(every))[0].union_recall == 0.75


def test_a_slow_loop_agrees() -> None:
    rng = random.Random(11)
    ids = [f"d{n}" for n in range(12)]
    truth = {f"q{n}": [rng.sample(ids, rng.randint(1, 3)) for _ in range(rng.randint(1, 4))] for n in range(60)}
    runs = {name: {qid: rng.sample(ids, rng.randint(0, 8)) for qid in truth} for name in ("a", "b", "c")}
    every = {name: groupgt.evaluate(truth, run, ["recall.coverage@4"]) for name, run in runs.items()}
    found = failures_of(every, 4)
    _, rows = found.rows()
    assert [row[:2] for row in rows] == [[name, qid] for name in runs for qid in truth]
    for name, qid, _, _, covered, _, first_hits, _, solved, _ in rows:
        top = runs[name][qid][:4]
        ranks = [min((top.index(each) + 1 for each in group if each in top), default=0) for group in truth[qid]]
        assert (first_hits, covered) == (" ".join(map(str, ranks)), len(ranks) - ranks.count(0))
        assert solved == all(ranks)
        others = [run[qid][:4] for label, run in runs.items() if label != name]
        elsewhere = any(all(any(each in group for each in other) for group in truth[qid]) for other in others)
        assert (qid in found.only(name)) == (all(ranks) and not elsewhere)
    for group in found.hardest(10**6):
        for name, run in runs.items():
            ranked = [rank for rank, each in enumerate(run[group.qid], 1) if each in group.alternatives]
            assert group.places[name].rank == (min(ranked) if ranked else None)
    union = {qid: set().union(*(run[qid][:4] for run in runs.values())) for qid in truth}
    recalls = [sum(bool(union[qid] & set(group)) for group in groups) / len(groups) for qid, groups in truth.items()]
    assert headroom_of(every, found)[0].union_recall == pytest.approx(sum(recalls) / len(recalls), abs=1e-12)


def test_rows_hold_every_query_and_system() -> None:
    headers, rows = failures_of(evaluations(one=ONE, two=TWO), 2).rows()
    assert headers[:3] == ["run", "qid", "cutoff"]
    assert rows[0] == ["one", "p", "2", 2, 1, 1, "1 0", None, 0, 0.0]
    assert len(rows) == 8  # t has no ground truth


def test_missing_queries_are_failures_or_left_out() -> None:
    some = {"p": ["a", "c"]}
    counted = {
        missing: failures_of(
            {"some": groupgt.evaluate(TRUTH, some, ["recall"], policy={"missing": missing})}
        ).counted.tolist()
        for missing in ("zero", "skip")
    }
    assert counted == {"zero": [True, True, True, True, False], "skip": [True, False, False, False, False]}


def test_the_cutoff_is_that_of_the_primary_metric() -> None:
    """However many other metrics and cutoffs are listed."""
    alone = groupgt.compare(TRUTH, {"one": ONE, "two": TWO}, ["recall@1"], resamples=10)
    among = groupgt.compare(
        TRUTH, {"one": ONE, "two": TWO}, ["ndcg@10", "mrr", "recall@1"], primary="recall@1", resamples=10
    )
    assert alone.failures is not None
    assert among.failures is not None
    assert alone.failures.cutoff == among.failures.cutoff == 1
    assert alone.failures.to_dict() == among.failures.to_dict()
    budget = groupgt.compare(TRUTH, {"one": ONE, "two": TWO}, ["mrr", "recall@5"], resamples=10)
    assert budget.failures is not None
    assert budget.failures.cutoff is None
