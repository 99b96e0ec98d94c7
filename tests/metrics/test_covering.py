"""Ideals of `coverage`: two exact solutions have the same bits; a slow search, a greedy loop and closed forms agree."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Callable
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.metrics import covering, ideals
from groupgt.metrics.base import Cut
from groupgt.metrics.covering import Document, Problem, Solution, solve
from groupgt.metrics.language import parse_metric
from tests.reference import Coverage

DISCOUNTS = [(ideals.inverse, lambda rank: rank), (ideals.log2, lambda rank: log2(rank + 1))]

GAINS = st.sampled_from([1.0, 1.0, 2.0, 3.0, 1 / 3, 0.1, 0.7])
WEIGHTS = st.lists(st.sampled_from([1.0, 1.0, 0.5, 1 / 3, 0.3]), min_size=1, max_size=5)


@st.composite
def problems(draw: st.DrawFn, most_documents: int = 8) -> Problem:
    weights = draw(WEIGHTS)
    groups = st.dictionaries(st.integers(0, len(weights) - 1), GAINS, min_size=1)
    documents = draw(st.lists(groups, min_size=1, max_size=most_documents))
    return Problem(tuple(weights), tuple(tuple(sorted(own.items())) for own in documents))


def levels_of(problem: Problem) -> list[list[float]]:
    return [
        sorted({0.0, *(gain for own in problem.documents for group, gain in own if group == number)})
        for number in range(len(problem.weights))
    ]


def slowly(problem: Problem, discount: Callable[[int], float]) -> Coverage:
    """The same problem for the slow reference; documents are named so that byte order is theirs."""
    gains: list[dict[str, float]] = [{} for _ in problem.weights]
    for number, own in enumerate(problem.documents):
        for group, gain in own:
            gains[group][f"d{number:05d}"] = gain
    return Coverage(gains, list(problem.weights), discount)


def discounted(solution: Solution, depth: int, discount: Callable[[np.ndarray], np.ndarray]) -> float:
    """The sum of the gains of a ranking, one after another."""
    summed = 0.0
    for rank, gain in enumerate(solution.gains(depth), 1):
        summed += gain * float(discount(np.array([rank]))[0])
    return summed


@given(problems(), st.sampled_from(DISCOUNTS))
def test_both_exact_solutions_have_the_same_bits(problem: Problem, pair: Any) -> None:
    discount, slow_discount = pair
    plain, arrays = covering._exact(problem, discount), covering._exact_in_arrays(problem, levels_of(problem), discount)
    assert plain.sums == arrays.sums
    reference = slowly(problem, slow_discount)
    for depth in range(1, len(plain.sums) + 1):
        # The sums are those of rankings that exist, to the bit.
        assert discounted(plain, depth, discount) == plain.sums[depth - 1]
        assert discounted(arrays, depth, discount) == plain.sums[depth - 1]
        assert plain.sums[depth - 1] == pytest.approx(reference.search(depth), rel=1e-12)
    assert plain.gains(None) == plain.gains(len(plain.sums)) == plain.gains(len(plain.sums) + 5)
    assert plain.gains(0) == arrays.gains(0) == []


@given(problems())
def test_documents_that_another_outdoes_are_left_out_once(problem: Problem) -> None:
    """Pair by pair, the slow way."""
    levels = levels_of(problem)
    shape = [len(gains) for gains in levels]
    strides = np.array([int(np.prod(shape[group + 1 :])) for group in range(len(shape))])
    kept = []
    for own in set(problem.documents):
        gains = dict(own)
        better = [
            other
            for other in set(problem.documents)
            if other != own and all(dict(other).get(group, 0) >= gain for group, gain in own)
        ]
        if not better:
            kept.append(sum(int(strides[group]) * levels[group].index(gain) for group, gain in gains.items()))
    assert covering._undominated(problem, levels, shape, strides).tolist() == sorted(kept)


@pytest.mark.property
def test_ten_thousand_documents_of_twelve_groups() -> None:
    """4,096 states, and documents each in half of the groups; the ideal is the best pair, or a single one."""
    documents = tuple(tuple((group, 1.0) for group in chosen) for chosen in itertools.combinations(range(12), 6))
    problem = Problem((1.0,) * 12, documents * 10)
    assert solve(problem, ideals.inverse).sums[:3] == [6.0, 6.0 + 6 * 0.5, 9.0]
    # One more group and there are too many states: greedy finds the same two here.
    more = tuple((*own, (12, 1.0)) for own in documents)
    assert solve(Problem((1.0,) * 13, more * 10), ideals.inverse).sums == [7.0, 7.0 + 6 * 0.5]


def test_the_bound_of_states_counts_levels() -> None:
    """Twelve groups of one level have 2^12 states and are exact; a second level in one of them is beyond."""

    def together(*groups: int) -> Document:
        return tuple((group, 1.0) for group in groups)

    weights = (*[1.0] * 10, 1.01, 0.001)
    # The first document gains 5.01; without it two gain 5 each.
    documents = (together(0, 1, 5, 6, 10), together(0, 1, 2, 3, 4), together(5, 6, 7, 8, 9), together(11))
    exact = solve(Problem(weights, documents), ideals.log2)
    assert exact.sums[2] == pytest.approx(5 + 5 / log2(3) + 1.01 / log2(4))
    greedy = solve(Problem(weights, (*documents, ((11, 0.5),))), ideals.log2)
    assert greedy.sums[2] == pytest.approx(5.01 + 3 / log2(3) + 3 / log2(4))


def test_the_bound_of_states_is_4096(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group with 15 gains has 16 levels: 16 · 256 are 4,096 states, and 17 · 241 one more."""
    monkeypatch.setattr(covering, "_exact_in_arrays", lambda *given: "exact")
    monkeypatch.setattr(covering, "_greedy", lambda *given: "greedy")
    for gains, way in (((15, 255), "exact"), ((16, 240), "greedy")):
        documents = tuple(((group, float(gain)),) for group in (0, 1) for gain in range(1, gains[group] + 1))
        assert solve(Problem((1.0, 1.0), documents), ideals.inverse) == way


@pytest.mark.parametrize(("discount", "slow_discount"), DISCOUNTS)
@pytest.mark.parametrize("seed", range(4))
def test_greedy_beyond_that_bound(seed: int, discount: Any, slow_discount: Any) -> None:
    rng = random.Random(seed)
    weights = tuple(rng.choice((1.0, 0.5, 0.25)) for _ in range(15))
    documents = tuple(
        tuple(sorted((group, rng.choice((1.0, 2.0, 0.5))) for group in rng.sample(range(15), rng.randint(1, 5))))
        for _ in range(40)
    )
    problem = Problem(weights, documents)
    found, reference = solve(problem, discount), slowly(problem, slow_discount)
    for depth in (1, 2, 5, len(found.sums)):
        assert found.sums[depth - 1] == pytest.approx(reference.greedy(depth), rel=1e-12)
        assert discounted(found, depth, discount) == found.sums[depth - 1]
    assert found.sums[-1] == pytest.approx(reference.greedy(None), rel=1e-12)


@pytest.mark.parametrize("few", [0, 512])
def test_a_problem_is_that_of_one_query_alone(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """a is in both groups of q, b in the second, of weight 2; p and r, before and behind q, do not matter."""
    monkeypatch.setattr(covering, "FEW_PAIRS", few)
    groups = [["a"], {"ids": ["b", "a"], "weight": 2}]
    judgments = groupgt.GroundTruth.of({"p": [["a"], ["z"]], "q": groups, "r": [["y"], ["z"], ["a"]]}).judgments
    problem = covering.problem_of(judgments, 1, None)
    assert problem.documents == (((0, 1.0), (1, 1.0)), ((1, 1.0),))
    assert [weight / problem.weights[0] for weight in problem.weights] == [1.0, 2.0]


def test_a_ranking_ends_where_nothing_more_is_gained() -> None:
    """Two documents that are alike, and one that gains less of the same group: one of them is enough."""
    documents: tuple[Document, ...] = (((0, 2.0),), ((0, 2.0),), ((0, 1.0),))
    for solved in (covering._greedy, covering._exact, solve):
        solution = solved(Problem((0.5,), documents), ideals.inverse)
        assert (list(solution.sums), solution.gains(None)) == ([1.0], [1.0])  # 0.5 · 2 at rank 1


def test_equal_problems_of_queries_are_solved_alike_and_alone() -> None:
    groups = [["x", "a"], ["x", "b"], ["y"]]
    truth = {f"q{number}": groups if number % 2 else [["x", "a"], ["b"]] for number in range(6)}
    run = {qid: ["a", "x", "y"] for qid in truth}
    asked = ["mrr.coverage", "mrr.coverage@1", "ndcg.coverage@2", "ndcg.coverage(gain=exp)"]
    together = groupgt.evaluate(truth, run, asked)
    for number, qid in enumerate(truth):
        alone = groupgt.evaluate({qid: truth[qid]}, {qid: run[qid]}, asked)
        assert [alone.values[text][0] for text in asked] == [together.values[text][number] for text in asked]


def test_no_ideal_keeps_its_prefixes() -> None:
    """A query of 1,500 groups keeps one sum a rank, and nothing of its problem."""
    rng = random.Random(5)
    groups = [[f"d{rng.randrange(1500)}" for _ in range(3)] for _ in range(1500)]
    truth = groupgt.GroundTruth.of({"q": groups})
    hits = groupgt.evaluate(truth, {"q": ["d1"]}, ["recall"]).labelled.hits
    whole, cut = Cut.at(hits, None), Cut.at(hits, 10)
    assert hits.judgments.sharing_order.any()
    tracemalloc.start()
    covering.coverage_ideal(hits.judgments, None, ideals.inverse, whole)
    covering.coverage_ideal(hits.judgments, None, ideals.inverse, cut)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 200_000


def test_explanations_of_large_problems_evaluate_to_their_ideal() -> None:
    """Beyond what plain Python solves, gains are walked back from the sums."""
    rng = random.Random(9)
    groups = [[f"d{n:02d}" for n in range(40) if rng.random() < 0.4 or n == g] for g in range(8)]
    metric = parse_metric("mrr.coverage")
    found = groupgt.evaluate({"q": groups}, {"q": ["d01", "d02", "d03"]}, [metric])
    explained = metric.explanation(found.labelled.hits, 0)
    assert eval(explained) == pytest.approx(found.values[str(metric)][0], abs=1e-12)


def test_problems_read_as_columns_are_those_read_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    for _ in range(60):
        names = [f"d{number}" for number in range(rng.randint(1, 9))]
        groups = [
            [{"id": name, "grade": rng.choice((0, 1, 1, 2))} for name in rng.sample(names, rng.randint(1, len(names)))]
            for _ in range(rng.randint(1, 4))
        ]
        judgments = groupgt.GroundTruth.of({"p": [["z"]], "q": groups}).judgments
        few = [covering.problem_of(judgments, 1, gain) for gain in (None, "linear")]
        with monkeypatch.context() as patch:
            patch.setattr(covering, "FEW_PAIRS", 0)
            assert [covering.problem_of(judgments, 1, gain) for gain in (None, "linear")] == few
