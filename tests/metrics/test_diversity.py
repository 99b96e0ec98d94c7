"""Ideal rankings of diversity metrics, and the order that decides between equal gains."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import groupgt
from groupgt.metrics import diversity


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 1.0])
def test_groups_apart_have_the_ideal_that_steps_find(alpha: float) -> None:
    rng = random.Random(int(alpha * 10))
    names = map("d{}".format, itertools.count())
    sizes = [[rng.randint(1, 9) for _ in range(rng.randint(1, 5))] for _ in range(40)]
    truth = {f"q{number}": [list(itertools.islice(names, size)) for size in own] for number, own in enumerate(sizes)}
    judgments = groupgt.GroundTruth.of(truth).judgments
    rows = np.arange(len(judgments.alternative_query))
    apart = diversity._apart(judgments, rows, alpha)
    groups = judgments.alternative_group, alpha, len(judgments.group_query)
    steps = diversity._greedy_all(judgments.alternative_query, rows, *groups)
    order = np.argsort(steps.query, kind="stable")
    assert np.array_equal(apart.query, steps.query[order])
    assert np.array_equal(apart.rank, steps.rank[order])
    assert np.array_equal(apart.gain, steps.gain[order])


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 1.0])
def test_crowded_queries_have_the_same_ideal(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone by a heap, or with all others step by step."""
    rng = random.Random(3)
    pool = [f"d{number}" for number in range(12)]
    truth = {f"q{number}": [rng.sample(pool, rng.randint(1, 6)) for _ in range(3)] for number in range(12)}

    def gains(small: int) -> list[tuple[int, int, float]]:
        monkeypatch.setattr(diversity, "SMALL", small)
        ideal = diversity.greedy_ideal(groupgt.GroundTruth.of(truth).judgments, alpha)
        return list(zip(ideal.query.tolist(), ideal.rank.tolist(), ideal.gain.tolist()))

    alone, together, some = gains(0), gains(1000), gains(10)
    assert len(alone) > 40
    assert alone == together == some


def test_the_order_of_shared_documents_is_that_of_their_bytes() -> None:
    truth = groupgt.GroundTruth.of({"p": [["b"], ["a"]], "q": [["b", "é"], ["a", "b"], ["z", "𝒂", "ﬀ"]]})
    assert truth.judgments.sharing.tolist() == [False, True]
    assert truth.judgments.sharing_order.tolist() == [0, 0, 1, 3, 0, 1, 2, 5, 4]
