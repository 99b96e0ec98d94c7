"""Ideal rankings of diversity metrics, and the order that decides between equal gains."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import groupgt
from groupgt.metrics import diversity


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 1.0])
def test_groups_apart_have_the_ideal_that_steps_find(alpha: float, weighted: bool) -> None:
    rng = random.Random(int(alpha * 10))
    names = map("d{}".format, itertools.count())
    sizes = [[rng.randint(1, 9) for _ in range(rng.randint(1, 5))] for _ in range(40)]
    truth = {f"q{number}": [list(itertools.islice(names, size)) for size in own] for number, own in enumerate(sizes)}
    judgments = groupgt.GroundTruth.of(truth).judgments
    rows = np.arange(len(judgments.alternative_query))
    weight = np.array([rng.choice((0.3, 1.0, 2.0)) if weighted else 1.0 for _ in judgments.group_query])
    apart = diversity._apart(judgments, rows, alpha, weight if weighted else None)
    groups = judgments.alternative_group, alpha, weight
    steps = diversity._greedy_all(judgments.alternative_query, rows, *groups, exact=weighted)
    order = np.argsort(steps.query, kind="stable")
    assert np.array_equal(apart.query, steps.query[order])
    assert np.array_equal(apart.rank, steps.rank[order])
    assert np.array_equal(apart.gain, steps.gain[order])


@pytest.mark.parametrize("weights", [(1,), (0.3, 1, 1, 2, 7.5)])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.3, 0.5, 0.99, 1.0])
def test_crowded_queries_have_the_same_ideal(
    alpha: float, weights: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone by bounds, or with all others step by step."""
    rng = random.Random(3)
    pool = [f"d{number}" for number in range(12)]
    truth = {f"q{number}": [rng.sample(pool, rng.randint(1, 6)) for _ in range(3)] for number in range(12)}
    # Very many that are alike, groups of very different sizes, and documents in very many groups.
    truth["alike"] = [[f"e{number}" for number in range(150)], pool, pool, pool[:3], ["e7"]]
    truth["many"] = [rng.sample(pool, 5) for _ in range(40)]
    weighted = {
        qid: [{"ids": group, "weight": 1 if qid == "q3" else rng.choice(weights)} for group in groups]
        for qid, groups in truth.items()
    }

    def gains(small: int) -> dict[int, list[float]]:
        monkeypatch.setattr(diversity, "SMALL", small)
        ideal = diversity.greedy_ideal(groupgt.GroundTruth.of(weighted).judgments, alpha, weighted=True)
        of_query: dict[int, list[float]] = {}
        for query, rank, gain in zip(ideal.query.tolist(), ideal.rank.tolist(), ideal.gain.tolist()):
            of_query.setdefault(query, []).append(gain)
            assert len(of_query[query]) == rank
        return of_query

    alone, together, some = gains(0), gains(1000), gains(10)
    for query, expected in together.items():
        for found in (alone[query], some[query]):
            assert found == expected[: len(found)]
            # What is left out changes no bit of a sum.
            assert sum(expected[len(found) :]) <= expected[0] * 2.0**-53


def test_the_order_of_shared_documents_is_that_of_their_bytes() -> None:
    truth = groupgt.GroundTruth.of({"p": [["b"], ["a"]], "q": [["b", "é"], ["a", "b"], ["z", "𝒂", "ﬀ"]]})
    assert truth.judgments.sharing.tolist() == [False, True]
    assert truth.judgments.sharing_order.tolist() == [0, 0, 1, 3, 0, 1, 2, 5, 4]
