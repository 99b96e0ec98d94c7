"""Weights in alpha_ndcg and alpha_dcg: by hand, and what they leave as it is."""

from __future__ import annotations

import random
from math import log2
from typing import Any

import numpy as np
import pytest

import groupgt
from tests.agreement import random_query

METRICS = ["alpha_ndcg", "alpha_ndcg@3", "alpha_ndcg(alpha=0.3)", "alpha_dcg", "alpha_dcg@3"]
OTHERS = ["err_ia", "nerr_ia", "nnrbp", "nrbp", "map_ia", "p_ia"]


def weighted(groups: list[Any], weight: float) -> list[Any]:
    return [{**(group if isinstance(group, dict) else {"alternatives": group}), "weight": weight} for group in groups]


def test_by_hand() -> None:
    """Aspects of weight 0.7 and 0.3; the run finds the lesser first, and twice.

    Gains: 0.3, 0.3 · ½, 0.7 at ranks 1, 2, 3. The ideal: 0.7, then d2 or d3 of the lesser 0.3, then 0.15.
    """
    truth = {"q": [{"ids": ["d1"], "weight": 0.7}, {"ids": ["d2", "d3"], "weight": 0.3}]}
    result = groupgt.evaluate(truth, {"q": ["d2", "d3", "d1"]}, ["alpha_ndcg", "alpha_ndcg@1", "alpha_dcg@2"])
    reached = 0.3 + 0.15 / log2(3) + 0.7 / 2
    assert result["alpha_ndcg"] == pytest.approx(reached / (0.7 + 0.3 / log2(3) + 0.15 / 2), abs=1e-15)
    assert result["alpha_ndcg@1"] == pytest.approx(0.3 / 0.7, abs=1e-15)
    # (0.7 + 0.3) · (1 + ½/log2 3)
    assert result["alpha_dcg@2"] == pytest.approx((0.3 + 0.15 / log2(3)) / (1 + 0.5 / log2(3)), abs=1e-15)
    assert "(0.3/log2(1+1) + 0.15/log2(2+1) + 0.7/log2(3+1)) / (0.7/log2(1+1)" in result.explain("q", "alpha_ndcg")


def test_a_ranking_may_be_better_than_the_greedy_ideal() -> None:
    """Each group counts once (α = 1). Greedy takes x for 4 + 1.01 and is left with 3 of b; b and c have 5 each.

    A weight near 1 is none that rounding could have put in another order: the share stays above 1.
    """
    groups = [["x", "b"], ["x", "b"], ["b"], ["b"], ["b"], ["x", "c"], ["x", "c"], ["c"], ["c"], ["c"]]
    truth = {"q": [*groups, {"ids": ["x"], "weight": 1.01}]}
    found = groupgt.evaluate(truth, {"q": ["b", "c"]}, ["alpha_ndcg(alpha=1)@2"])["alpha_ndcg(alpha=1)@2"]
    assert found == pytest.approx((5 + 5 / log2(3)) / (5.01 + 3 / log2(3)), rel=1e-12)
    assert found > 1.1


def test_a_document_of_several_groups_gains_their_weights() -> None:
    """x stands in both groups: 2 + 1 at rank 1; b is worth 1 · ½ then, a 2 · ½."""
    truth = {"q": [{"ids": ["x", "a"], "weight": 2}, {"ids": ["x", "b"], "weight": 1}]}
    result = groupgt.evaluate(truth, {"q": ["x", "b", "a"]}, ["alpha_ndcg"])
    assert result["alpha_ndcg"] == pytest.approx((3 + 0.5 / log2(3) + 1 / 2) / (3 + 1 / log2(3) + 0.5 / 2), abs=1e-15)


def batch() -> dict[str, tuple[list[Any], list[str]]]:
    rng = random.Random(11)
    return {f"q{number}": random_query(rng) for number in range(200)}


def columns(groups: Any, metrics: list[str]) -> dict[str, Any]:
    run = {qid: ranking for qid, (_, ranking) in batch().items()}
    return groupgt.evaluate(groups, run, metrics).values


def test_weights_of_1_change_no_bit_beside_others() -> None:
    """A query whose weights are all 1 has its bits whatever weights other queries have."""
    plain = {qid: weighted(groups, 1) for qid, (groups, _) in batch().items()}
    mixed = {qid: weighted(groups, 2.7) if at % 2 else groups for at, (qid, groups) in enumerate(plain.items())}
    before, after = columns(plain, METRICS), columns(mixed, METRICS)
    for name in METRICS:
        assert before[name][::2].tobytes() == after[name][::2].tobytes(), name


def test_equal_weights_and_metrics_without_weights_stay_as_they_are() -> None:
    plain = {qid: weighted(groups, 1) for qid, (groups, _) in batch().items()}
    heavy = {qid: weighted(groups, 2.7) for qid, groups in plain.items()}
    before, after = columns(plain, [*METRICS, *OTHERS]), columns(heavy, [*METRICS, *OTHERS])
    for name in METRICS:
        np.testing.assert_allclose(before[name], after[name], rtol=0, atol=1e-12)
    for name in OTHERS:
        assert before[name].tobytes() == after[name].tobytes(), name


@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_extreme_weights_neither_vanish_nor_overflow(weight: float) -> None:
    truth = {"q": [{"ids": ["a", "x"], "weight": weight}, {"ids": ["b", "x"], "weight": weight}]}
    result = groupgt.evaluate(truth, {"q": ["x", "a"]}, ["alpha_ndcg", "alpha_dcg@1"])
    assert result["alpha_ndcg"] == pytest.approx((2 + 0.5 / log2(3)) / (2 + 0.5 / log2(3) + 0.5 / 2))
    assert result["alpha_dcg@1"] == 1


def test_weights_that_nearly_agree_do_not_pass_1() -> None:
    rng = random.Random(2)
    truth = {
        f"q{at}": [{"ids": [f"d{n}"], "weight": 1 + rng.randint(0, 3) * 2.0**-52} for n in range(6)]
        for at in range(200)
    }
    run = {qid: rng.sample([f"d{n}" for n in range(6)], 6) for qid in truth}
    result = groupgt.evaluate(truth, run, ["alpha_ndcg", "alpha_dcg"])
    assert result.values["alpha_ndcg"].max() == 1
    assert result.values["alpha_dcg"].max() <= 1
