"""The reference reproduces figures that were worked out by hand or printed by other tools.

Every expected value has its arithmetic beside it; the discount of rank r is log2(r + 1).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from math import log2
from typing import Any

import pytest

from tests.reference import Coverage, read_truth, reference

EXACT = 1e-12
PRINTED = 5.0001e-5  # half a unit of the fourth printed digit


def graded(**grades: float) -> dict[str, Any]:
    """One group of graded alternatives."""
    return {"alternatives": [{"id": document, "grade": grade} for document, grade in grades.items()]}


def flat(grades: Mapping[str, float]) -> list[dict[str, Any]]:
    """Each document a group of one, as qrels give them."""
    return [graded(**{document: grade}) for document, grade in grades.items()]


# ---- the worked example ------------------------------------------------------------------------------------------

EXAMPLE = [["test-1", "test-2"], ["test-3"]]
EXAMPLE_RESULT = ["test-1", "pred-1", "test-2", "pred-3"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("precision", 2 / 4),  # test-1 and test-2 of four results
        ("recall", 1 / 2),  # the first of two groups
        ("f1", 0.5),  # 2 * .5 * .5 / (.5 + .5)
        ("mrr", (1 / 1 + 0) / 2),  # group 1 at rank 1, group 2 never
        ("map", ((1 / 1 + 2 / 3) / 2 + 0) / 2),  # 5/12: hits of group 1 at ranks 1 and 3
    ],
)
def test_worked_example(name: str, expected: float) -> None:
    assert reference(EXAMPLE, EXAMPLE_RESULT, name, "autorag") == pytest.approx(expected, abs=EXACT)


def test_worked_example_map_is_five_twelfths() -> None:
    assert reference(EXAMPLE, EXAMPLE_RESULT, "map", "autorag") == pytest.approx(5 / 12, abs=EXACT)


def test_worked_example_ndcg_to_the_last_digit() -> None:
    # (1/log2 2 + 1/log2 4) / (1/log2 2 + 1/log2 3 + 1/log2 4), AutoRAG's own code
    assert reference(EXAMPLE, EXAMPLE_RESULT, "ndcg", "autorag") == 0.7039180890341347


# ---- the table of the three conventions --------------------------------------------------------------------------

L3, L4 = log2(3), log2(4)  # the discounts at ranks 2 and 3; log2 2 = 1 at rank 1, log2 5 at rank 4

TABLE: list[tuple[str, list[Any], list[str], dict[str, tuple[float, float]]]] = [
    (
        "both groups at once",
        [["a", "b"], ["c"]],
        ["a", "c"],
        {
            "mrr.autorag": (0.75, (1 + 1 / 2) / 2),
            "mrr.trec": (1, 1),
            "mrr.coverage": (1, (1 + 1 / 2) / (1 + 1 / 2)),
            "map.autorag": (0.75, (1 / 1 + 1 / 2) / 2),  # c: precision 1/2 at rank 2
            "map.coverage": (1, (1 / 1 + 2 / 2) / 2),
            "ndcg.autorag": (1, (1 + 1 / L3) / (1 + 1 / L3)),  # min(3 alternatives, 2 results) ones
            "ndcg.coverage": (1, (1 + 1 / L3) / (1 + 1 / L3)),
            "complete.autorag": (1, 1),
        },
    ),
    (
        "an alternative between the groups",
        [["a", "b"], ["c"]],
        ["a", "b", "c"],
        {
            "mrr.autorag": (0.6667, (1 + 1 / 3) / 2),
            "mrr.trec": (1, 1),
            "mrr.coverage": (0.8889, (1 + 1 / 3) / (1 + 1 / 2)),  # 8/9
            "map.autorag": (0.6667, ((1 / 1 + 2 / 2) / 2 + 1 / 3) / 2),
            "map.coverage": (0.8333, (1 / 1 + 2 / 3) / 2),
            "ndcg.autorag": (1, 1),
            "ndcg.coverage": (0.9197, (1 + 1 / L4) / (1 + 1 / L3)),
            "complete.autorag": (1, 1),
        },
    ),
    (
        "irrelevant results behind",
        [["a", "b"], ["c"]],
        ["a", "c", "x", "y"],
        {
            "mrr.autorag": (0.75, (1 + 1 / 2) / 2),
            "mrr.trec": (1, 1),
            "mrr.coverage": (1, 1),
            "map.autorag": (0.75, (1 + 1 / 2) / 2),
            "map.coverage": (1, 1),
            "ndcg.autorag": (0.7654, (1 + 1 / L3) / (1 + 1 / L3 + 1 / L4)),  # three ones now fit
            "ndcg.coverage": (1, 1),
            "complete.autorag": (1, 1),
        },
    ),
    (
        "one of three groups",
        [["a"], ["b"], ["c"]],
        ["a"],
        {
            "mrr.autorag": (0.3333, 1 / 3),
            "mrr.trec": (1, 1),
            "mrr.coverage": (0.5455, 1 / (1 + 1 / 2 + 1 / 3)),  # 6/11
            "map.autorag": (0.3333, 1 / 3),
            "map.coverage": (0.3333, 1 / 3),
            "ndcg.autorag": (1, 1),  # min(3, 1) ones
            "ndcg.coverage": (0.4693, 1 / (1 + 1 / L3 + 1 / L4)),
            "complete.autorag": (0, 0),
        },
    ),
    (
        "one document for both groups",
        [["x", "a"], ["x", "b"]],
        ["x"],
        {
            "mrr.autorag": (1, 1),
            "mrr.trec": (1, 1),
            "mrr.coverage": (1, (1 + 1) / (1 + 1)),
            "map.autorag": (1, 1),
            "map.coverage": (1, 1),
            "ndcg.autorag": (1, 1),
            "ndcg.coverage": (1, 2 / 2),  # x earns both groups at rank 1
            "novelty_ndcg": (0.6131, 1 / (1 + 1 / L3)),  # x gains once, the ideal twice
            "complete.autorag": (1, 1),
        },
    ),
    (
        "one group of two",
        [["a", "b"]],
        ["a", "x"],
        {
            "mrr.autorag": (1, 1),
            "mrr.trec": (1, 1),
            "mrr.coverage": (1, 1),
            "map.autorag": (1, 1),
            "map.coverage": (1, 1),
            "ndcg.autorag": (0.6131, 1 / (1 + 1 / L3)),
            "ndcg.coverage": (1, 1),
            "complete.autorag": (1, 1),
        },
    ),
    (
        "a better alternative later",
        [graded(a=1, b=3)],
        ["a", "b"],
        {
            "mrr.autorag": (1, 1),
            "mrr.trec": (1, 1),
            "mrr.coverage": (1, 1),
            "map.autorag": (1, (1 / 1 + 2 / 2) / 2),
            "map.coverage": (1, 1),
            "ndcg.autorag": (1, 1),
            "ndcg.coverage": (0.7540, (1 + 2 / L3) / 3),  # 1, then an upgrade by 2; ideal: b first
            "complete.autorag": (1, 1),
        },
    ),
]

ROWS = [
    pytest.param(groups, result, text, printed, exact, id=f"{label}: {text}")
    for label, groups, result, row in TABLE
    for text, (printed, exact) in row.items()
]


@pytest.mark.parametrize(("groups", "result", "text", "printed", "exact"), ROWS)
def test_table_of_conventions(groups: list[Any], result: list[str], text: str, printed: float, exact: float) -> None:
    name, _, convention = text.partition(".")
    assert exact == pytest.approx(printed, abs=PRINTED)
    assert reference(groups, result, name, convention or None) == pytest.approx(exact, abs=EXACT)


@pytest.mark.parametrize(("_label", "groups", "result", "row"), TABLE)
def test_complete_is_the_same_under_coverage(
    _label: str, groups: list[Any], result: list[str], row: dict[str, tuple[float, float]]
) -> None:
    assert reference(groups, result, "complete", "coverage") == row["complete.autorag"][1]


# ---- graded, flattened -------------------------------------------------------------------------------------------

LESSON = [
    ({"d1": 3, "d2": 2, "d4": 1, "d6": 2}, "d1 d3 d5 d2 d7 d8 d4 d9 d10 d6"),
    ({"d1": 3, "d2": 2}, "d3 d1 d7 d2 d5 d4 d8 d9 d10 d6"),
    ({"d1": 3, "d3": 2, "d5": 1}, "d1 d2 d3 d4 d5 d6 d7 d8 d9 d10"),
]


def lesson_mean(name: str, k: int | None = None) -> float:
    values = [reference(flat(grades), ranking.split(), name, "trec", k=k) for grades, ranking in LESSON]
    return sum(value for value in values if value is not None) / len(LESSON)


@pytest.mark.parametrize(
    ("name", "k", "expected"),
    [
        ("mrr", None, 0.8333),  # (1 + 1/2 + 1) / 3
        ("recall", 1, 0.1944),  # (1/4 + 0/2 + 1/3) / 3
        ("recall", 3, 0.4722),  # (1/4 + 1/2 + 2/3) / 3
        ("recall", 5, 0.8333),  # (2/4 + 2/2 + 3/3) / 3
        ("recall", 10, 1.0),  # all are found
        ("precision", 1, 0.6667),  # (1 + 0 + 1) / 3
        ("precision", 3, 0.4444),  # (1/3 + 1/3 + 2/3) / 3
        ("precision", 5, 0.4667),  # (2/5 + 2/5 + 3/5) / 3
        ("precision", 10, 0.3),  # (4/10 + 2/10 + 3/10) / 3
        ("ndcg", 1, 0.6667),  # (3/3 + 0/3 + 3/3) / 3
        ("ndcg", 3, 0.6181),  # q1 3/5.2619, q2 1.8928/4.2619, q3 (3 + 2/2)/4.7619
        ("ndcg", 5, 0.7486),  # q1 3.8614/5.6925, q2 2.7541/4.2619, q3 4.3869/4.7619
        ("ndcg", 10, 0.8020),  # q1 3.8614 + 1/log2 8 + 2/log2 11 = 4.7728, /5.6925
        ("hit_rate", 1, 0.6667),  # the second query misses
        ("hit_rate", 3, 1.0),
        ("hit_rate", 5, 1.0),
        ("hit_rate", 10, 1.0),
    ],
)
def test_graded_lesson(name: str, k: int | None, expected: float) -> None:
    assert lesson_mean(name, k) == pytest.approx(expected, abs=PRINTED)


def test_graded_lesson_ndcg_by_hand() -> None:
    # ideals at 5: 3 + 2/log2 3 + 2/log2 4 + 1/log2 5; 3 + 2/log2 3; 3 + 2/log2 3 + 1/log2 4
    first = (3 + 2 / log2(5)) / (3 + 2 / L3 + 2 / L4 + 1 / log2(5))
    second = (3 / L3 + 2 / log2(5)) / (3 + 2 / L3)
    third = (3 + 2 / L4 + 1 / log2(6)) / (3 + 2 / L3 + 1 / L4)
    assert lesson_mean("ndcg", 5) == pytest.approx((first + second + third) / 3, abs=EXACT)


AXION = ({"doc1": 3, "doc2": 2, "doc3": 1}, ["doc1", "doc4", "doc2", "doc5", "doc3"])


@pytest.mark.parametrize(
    ("gain", "printed", "exact"),
    [
        ("linear", 0.9212, (3 + 2 / L4 + 1 / log2(6)) / (3 + 2 / L3 + 1 / L4)),
        ("exp", 0.9461, (7 + 3 / L4 + 1 / log2(6)) / (7 + 3 / L3 + 1 / L4)),  # 2^3-1, 2^2-1, 2^1-1
    ],
)
def test_graded_axion(gain: str, printed: float, exact: float) -> None:
    assert exact == pytest.approx(printed, abs=PRINTED)
    value = reference(flat(AXION[0]), AXION[1], "ndcg", "trec", {"gain": gain}, k=5)
    assert value == pytest.approx(exact, abs=EXACT)


# ---- the metrics outside the conventions, by hand -----------------------------------------------------------------

PAIR = [["a", "b"], ["c"]]
JUDGED = [graded(a=2), graded(b=1, n=0), graded(o=0, u=-1)]  # a, b relevant; n, o judged non-relevant; u unjudged


@pytest.mark.parametrize(
    ("groups", "result", "name", "params", "k", "expected"),
    [
        (PAIR, ["a", "x", "b"], "hits", {}, None, 2),
        (PAIR, ["a", "x", "b"], "hits", {}, 2, 1),
        (PAIR, ["a", "x", "b", "c"], "r_precision", {}, None, 2 / 3),  # R = 3
        (PAIR, ["a", "x", "b", "c"], "r_precision", {}, 2, 1 / 3),  # the cutoff is tighter than R
        ([graded(a=1, b=3)], ["b", "a"], "dcg", {}, None, 3 + 1 / L3),
        ([graded(a=1, b=3)], ["b", "a"], "dcg", {"gain": "exp"}, None, 7 + 1 / L3),
        ([graded(a=2, b=4)], ["a", "b"], "err", {}, None, 3 / 16 + (1 / 2) * (15 / 16) * (13 / 16)),
        ([graded(a=1)], ["x", "a"], "err", {"max_grade": 1}, None, (1 / 2) * (1 / 2)),
        (PAIR, ["a", "x", "c"], "rbp", {}, None, 0.2 * (1 + 0.8**2)),
        (PAIR, ["a", "x", "c"], "rbp", {"p": 0.5}, 2, 0.5),
        (PAIR, ["a", "b", "c"], "alpha_ndcg", {}, None, (1 + 0.5 / L3 + 1 / L4) / (1 + 1 / L3 + 0.5 / L4)),
        (PAIR, ["a", "b", "c"], "alpha_ndcg", {}, 2, (1 + 0.5 / L3) / (1 + 1 / L3)),
        (PAIR, ["a", "b"], "alpha_dcg", {}, None, (1 + 0.5 / L3) / (2 + 1 / L3)),
        (PAIR, ["a"], "alpha_dcg", {"alpha": 1}, 9, 1 / 2),  # (1 - 1)^0 = 1, then nothing
        (PAIR, ["a"], "err_ia", {}, 3, 1 / (2 * (1 + 1 / 4 + 1 / 12))),  # k stays 3 though n = 1
        (PAIR, ["a"], "err_ia", {}, None, 1 / 2),  # k is n = 1
        (PAIR, ["a", "b"], "nerr_ia", {}, None, (1 + 0.25) / (1 + 1 / 2 + 0.5 / 3)),  # the ideal is not cut
        (PAIR, ["a", "b"], "nerr_ia", {}, 2, (1 + 0.25) / (1 + 1 / 2)),
        (PAIR, ["a", "b"], "nrbp", {}, None, 0.75 / 2 * (1 + 0.5 * 0.5)),
        (PAIR, ["a", "b"], "nnrbp", {}, 1, 1 / (1 + 0.5 + 0.5 * 0.25)),  # the ideal at full length
        (PAIR, ["a", "x", "b", "c"], "map_ia", {}, None, ((1 + 2 / 3) / 2 + 1 / 4) / 2),
        ([["x", "a"], ["x"]], ["x", "a"], "p_ia", {}, 4, 3 / 8),
        ([graded(a=1), graded(b=2)], ["a"], "novelty_ndcg", {}, 1, 1 / (3 + 1 / L3)),  # ideal not cut at 1
        (PAIR, ["a", "b", "c"], "completion_rr", {}, None, 1 / 3),
        (PAIR, ["a", "b", "c"], "completion_rr", {}, 2, 0),
        (PAIR, ["a", "b", "c"], "mrecall", {}, 1, 1),
        (PAIR, ["a", "b", "c"], "mrecall", {}, 2, 0),
        (PAIR, ["a", "b", "c"], "mrecall", {}, None, 1),
        (PAIR, ["a", "b", "c", "x"], "redundancy", {}, None, 1 / 4),  # b
        (JUDGED, ["a", "o", "u", "x"], "judged", {}, None, 2 / 4),
        (JUDGED, ["n", "a", "u", "o", "b"], "bpref", {}, None, ((1 - 1 / 2) + (1 - 2 / 2)) / 2),  # R = N = 2
        (JUDGED, ["a", "n"], "bpref", {}, None, (1 + 0) / 2),
    ],
)
def test_outside_the_conventions(
    groups: list[Any], result: list[str], name: str, params: dict[str, Any], k: int | None, expected: float
) -> None:
    assert reference(groups, result, name, None, params, k) == pytest.approx(expected, abs=EXACT)


def test_alpha_ndcg_breaks_ties_by_greatest_id() -> None:
    # a, b and c gain 2 each. The greatest id, c, goes first and leaves b (2) and then a (1/2 + 1/2).
    groups = [["a", "b"], ["a", "c"], ["b"], ["c"]]
    ideal = 2 + 2 / L3 + 1 / L4
    assert reference(groups, ["a"], "alpha_ndcg") == pytest.approx(2 / ideal, abs=EXACT)


# ---- conventions, inputs and policies ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "convention", "k", "expected"),
    [
        ("precision", "autorag", 9, 3 / 4),  # divides by the four results
        ("precision", "trec", 9, 3 / 9),  # divides by k
        ("precision", "coverage", 9, 2 / 4),  # b meets nothing new
        ("recall", "autorag", 2, 1 / 2),
        ("recall", "trec", 2, 2 / 3),
        ("recall", "coverage", 2, 3 / 4),  # weights 3 and 1
        ("f1", "trec", 9, 2 * (1 / 3) * 1 / (1 / 3 + 1)),
        ("complete", "trec", None, 1),
        ("map", "trec", None, (1 + 1 + 3 / 4) / 3),
        ("map", "coverage", None, (3 * 1 + 1 * 2 / 4) / 4),
        ("mrr", "coverage", None, (3 + 1 / 4) / (3 + 1 / 2)),
        ("mrr", "coverage", 1, 3 / 3),  # the ideal is cut as well
        ("ndcg", "coverage", None, (3 + 1 / log2(5)) / (3 + 1 / L3)),
    ],
)
def test_conventions_part_ways(name: str, convention: str, k: int | None, expected: float) -> None:
    groups = [{"ids": ["a", "b"], "weight": 3}, ["c"]]
    assert reference(groups, ["a", "b", "x", "c"], name, convention, k=k) == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("groups", [[], [[]], [graded(a=0)], [graded(a=-1), []]])
def test_without_a_relevant_alternative_nothing_is_defined(groups: list[Any]) -> None:
    assert reference(groups, ["a"], "recall", "autorag") is None
    assert reference(groups, ["a"], "judged") is None


def test_empty_ranking() -> None:
    assert reference(PAIR, [], "redundancy") is None
    assert reference(PAIR, [], "precision", "autorag") == 0.0
    assert reference(PAIR, [], "p_ia") == 0.0


@pytest.mark.parametrize(
    ("name", "duplicates", "expected"),
    [
        ("precision", "penalize", 1 / 3),  # a . x
        ("precision", "drop", 1 / 2),  # a x
        ("precision", "keep", 1 / 3),  # one distinct of three
        ("ndcg", "penalize", 1 / (1 + 1 / L3)),
        ("ndcg", "keep", 1.0),  # (1 + 1/log2 3) / (1 + 1/log2 3): the repeat is a hit again
        ("map", "penalize", 1.0),
        ("map", "keep", (1 / 1 + 2 / 2) / 2),
    ],
)
def test_duplicate_policies(name: str, duplicates: str, expected: float) -> None:
    value = reference([["a", "b"]], ["a", "a", "x"], name, "autorag", duplicates=duplicates)
    assert value == pytest.approx(expected, abs=EXACT)


def test_an_id_twice_in_a_group_counts_once_with_its_highest_grade() -> None:
    twice = [{"alternatives": [{"id": "a", "grade": 1}, {"id": "a", "grade": 2}, "b"]}]
    assert reference(twice, ["a", "x", "y"], "ndcg", "autorag") == pytest.approx(1 / (1 + 1 / L3), abs=EXACT)
    assert reference(twice, ["a"], "dcg") == 2.0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("err", {"convention": "trec"}, "no conventions"),
        ("err", {"params": {"max_grade": 2}}, "above max_grade"),
        ("bpref", {"k": 5}, "no cutoff"),
        ("rbp", {"params": {"p": 1}}, "p must"),
        ("nrbp", {"params": {"beta": 0}}, "beta must"),
        ("alpha_ndcg", {"params": {"alpha": 1.5}}, "alpha must"),
        ("recall", {"k": 0}, "at least 1"),
        ("recall", {"params": {"gain": "exp"}}, "no parameter"),
        ("recall", {"convention": "trec", "duplicates": "keep"}, "autorag alone"),
        ("recal", {}, "unknown metric"),
    ],
)
def test_errors(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reference([graded(a=3)], ["a"], name, **options)


# ---- the ideals of coverage --------------------------------------------------------------------------------------

SHARING = [
    [["x", "a"], ["x", "b"], ["c", "b"]],
    [graded(a=2, b=8), graded(a=7), graded(c=1)],
    [{"ids": ["a", "b"], "weight": 0.3}, {"ids": ["b", "c"], "weight": 2.5}, ["a", "c"], ["d"]],
    [graded(a=1, b=2, c=3), graded(a=3, b=2, c=1)],
]


@pytest.mark.parametrize("groups", SHARING)
@pytest.mark.parametrize("name", ["mrr", "ndcg"])
@pytest.mark.parametrize("k", [None, 1, 2])
def test_the_best_of_all_permutations_scores_one(groups: list[Any], name: str, k: int | None) -> None:
    documents = sorted({document for group in read_truth(groups)[0] for document in group.members})
    values = [reference(groups, ranking, name, "coverage", k=k) for ranking in itertools.permutations(documents)]
    assert max(value for value in values if value is not None) == 1.0


@pytest.mark.parametrize("k", [None, 1, 2, 3])
def test_the_closed_form_is_the_search_where_nothing_is_shared(k: int | None) -> None:
    sums = Coverage([{"a": 1.0, "b": 3.0}, {"c": 2.0}, {"d": 0.5, "e": 0.25}], [1.0, 2.5, 0.3], lambda r: log2(r + 1))
    assert not sums.shares()
    assert sums.closed_form(k) == pytest.approx(sums.search(k), abs=EXACT)


def test_the_greedy_ideal_breaks_ties_by_smallest_id() -> None:
    # a, b and c add 2 each. a goes first and leaves 1 for b and 1 for c; the exact ideal is b, c: 2 + 2/log2 3.
    groups = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "c": 1.0}, {"b": 1.0}, {"c": 1.0}]
    sums = Coverage(groups, [1.0] * 4, lambda r: log2(r + 1))
    assert sums.greedy(None) == pytest.approx(2 + 1 / L3 + 1 / L4, abs=EXACT)
    assert sums.search(None) == pytest.approx(2 + 2 / L3, abs=EXACT)


def test_beyond_the_states_the_greedy_value_is_capped_at_one() -> None:
    # the four groups above and nine more of one document each: 2^13 states
    groups: list[Any] = [["a", "b"], ["a", "c"], ["b"], ["c"]] + [[f"z{i}"] for i in range(9)]
    value = reference(groups, ["b", "c"] + [f"z{i}" for i in range(9)], "ndcg", "coverage")
    assert value == 1.0
