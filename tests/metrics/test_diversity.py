"""Ideal rankings of diversity metrics, and the order that decides between equal gains."""

from __future__ import annotations

import itertools
import random
from math import fsum

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
    steps = diversity._joined([*diversity._greedy_all(judgments.alternative_query, rows, *groups, exact=weighted)])
    assert np.array_equal(apart.query, steps.query)
    assert np.array_equal(apart.rank, steps.rank)
    assert np.array_equal(apart.gain, steps.gain)


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
        monkeypatch.setattr(diversity, "SMALL_DOCUMENTS", small)
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


def test_equal_betas_are_equal_discounts() -> None:
    half, other = diversity._Persistence(0.5), diversity._Persistence(0.25)
    assert half == diversity._Persistence(0.5)
    assert half != other
    assert half != 0.5
    assert len({half, other, diversity._Persistence(0.5)}) == 2


@pytest.mark.parametrize("alone", [False, True])
def test_of_equal_gains_the_greatest_id_comes_first(alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document gains 2 at first. z leaves a and b with ½ + 1 each; else a, b and z would gain 2, 2 and 1."""
    monkeypatch.setattr(diversity, "SMALL_DOCUMENTS", 0 if alone else 512)
    judgments = groupgt.GroundTruth.of({"q": [["a"], ["a", "z"], ["z", "b"], ["b"]]}).judgments
    assert diversity.greedy_ideal(judgments, 0.5).gain.tolist() == [2.0, 1.5, 1.5]


@pytest.mark.parametrize("count", [3, 5])
@pytest.mark.parametrize("seed", [7, 11, 18])
def test_bounds_stay_above_gains(seed: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A further hit is worth a hundredth of the last: gains differ by their last bits, and so do bounds from them."""
    rng = random.Random(seed)
    pool = [f"d{number:02d}" for number in range(30)]
    groups = [rng.sample(pool, rng.randint(1, 30)) for _ in range(count)]
    together = diversity.greedy_ideal(groupgt.GroundTruth.of({"q": groups}).judgments, 0.99).gain.tolist()
    monkeypatch.setattr(diversity, "SMALL_DOCUMENTS", 0)
    alone = diversity.greedy_ideal(groupgt.GroundTruth.of({"q": groups}).judgments, 0.99).gain.tolist()
    assert alone == together[: len(alone)]


def test_weights_add_up_exactly_where_further_hits_are_worth_as_much() -> None:
    """α = 0: x gains .1 + .2 + .3, which rounded once are .6, and step by step .6000000000000001."""
    groups = [{"ids": ["x", name], "weight": weight} for name, weight in (("a", 0.1), ("b", 0.2), ("c", 0.3))]
    judgments = groupgt.GroundTruth.of({"q": groups}).judgments
    weights = judgments.weight.tolist()
    gains = diversity.greedy_ideal(judgments, 0.0, weighted=True).gain.tolist()
    assert gains == [fsum(weights), *sorted(weights, reverse=True)]
    assert gains[0] != weights[0] + weights[1] + weights[2]


def test_parts_are_added_from_the_fewest_hits_on() -> None:
    """x has two hits before it in its first group and one in the others: .9 + .9 + .81, in the order of no group."""
    judgments = groupgt.GroundTruth.of({"q": [["x", "y", "z"], ["x", "z"], ["x", "y"], ["z"], ["y"]]}).judgments
    assert diversity.greedy_ideal(judgments, 0.1).gain.tolist() == [3.0, 1 + 1 + 0.9, 0.9 + 0.9 + 0.81]
    assert 0.9 + 0.9 + 0.81 != 0.81 + 0.9 + 0.9


def test_the_first_rank_is_worth_all_of_its_gain() -> None:
    found = groupgt.evaluate({"q": [["a"], ["b"]]}, {"q": ["a", "b"]}, ["nrbp"])
    worked = found.metrics["nrbp"].explanation(found.labelled.hits, 0)
    assert worked == "((1 - 0.5*0.5) * (1 + 0.5**1)) / 2"
