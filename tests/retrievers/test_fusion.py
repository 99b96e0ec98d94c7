"""Fusion is its definition: a slow reference, worked examples, and what must hold of any lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.options import options_from
from groupgt.retrievers.base import Answers
from groupgt.retrievers.fusion import Convex, Normalization, ReciprocalRank, convex, reciprocal_rank
from tests.retrievers import reference

pytestmark = pytest.mark.slow

EXACT = 1e-12
NORMALIZATIONS = get_args(Normalization)
QIDS = ("q1", "q2", "q3")
Input = dict[str, list[tuple[str, float]]]


@dataclass(frozen=True)
class Case:
    """Some inputs, and what is asked of their fusion."""

    inputs: list[Input]
    weights: list[float]
    least: list[float]
    depth: int | None
    k: int


def answers(results: Input) -> Answers:
    """An input as the package takes it."""
    ids = {qid: [name for name, _ in own] for qid, own in results.items()}
    return Answers(ids, {qid: [score for _, score in own] for qid, own in results.items()})


# Few ids and few scores: repeats, ties and lists without a common document come often.
SCORE = st.one_of(st.sampled_from([-4.0, 0.0, 0.5, 0.5, 1.0]), st.floats(-4, 4, allow_subnormal=False))
RESULTS = st.lists(st.tuples(st.sampled_from("abcdefg"), SCORE), max_size=7)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 5))
    inputs = [{qid: draw(RESULTS) for qid in QIDS} for _ in range(count)]
    weights = draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.5]), min_size=count, max_size=count).filter(any))
    least = draw(st.lists(st.sampled_from([-4.0, -5.5]), min_size=count, max_size=count))
    return Case(inputs, weights, least, draw(st.none() | st.integers(1, 6)), draw(st.integers(1, 9)))


def rrf_of(case: Case, constant: int) -> Answers:
    options = ReciprocalRank(k=constant, weights=case.weights, depth=case.depth)
    return reciprocal_rank(options, [answers(each) for each in case.inputs], [None] * len(case.inputs), case.k)


def convex_of(case: Case, normalization: str) -> Answers:
    options = Convex(normalization=normalization, weights=case.weights, depth=case.depth)
    return convex(options, [answers(each) for each in case.inputs], case.least, case.k)


def agrees(case: Case, found: Answers, whole: Answers, expected: reference.Fused) -> None:
    """Scores are the expected ones, order is theirs, exact ties go by the rule, and less depth is a prefix."""
    assert found.scores is not None
    assert whole.scores is not None
    for qid in QIDS:
        ids, scores = whole.ids[qid], whole.scores[qid]
        assert sorted(ids) == sorted(expected[qid])
        for name, score in zip(ids, scores, strict=True):
            assert score == pytest.approx(expected[qid][name], abs=EXACT, rel=EXACT)
        places = [reference.place(name, qid, case.inputs, case.depth or case.k) for name in ids]
        keys = [(-score, own) for score, own in zip(scores, places)]
        assert keys == sorted(keys)
        assert found.ids[qid] == ids[: case.k]
        assert found.scores[qid] == scores[: case.k]


@given(cases(), st.integers(0, 100))
def test_rrf_is_its_definition(case: Case, constant: int) -> None:
    case = replace(case, depth=case.depth or case.k)
    expected = reference.rrf(case.inputs, constant, case.weights, case.depth or case.k)
    agrees(case, rrf_of(case, constant), rrf_of(replace(case, k=1000), constant), expected)


@given(cases(), st.sampled_from(NORMALIZATIONS))
def test_convex_is_its_definition(case: Case, normalization: str) -> None:
    case = replace(case, depth=case.depth or case.k)
    expected = reference.convex(case.inputs, normalization, case.weights, case.least, case.depth or case.k)
    agrees(case, convex_of(case, normalization), convex_of(replace(case, k=1000), normalization), expected)


@given(cases())
def test_without_a_depth_of_its_own_a_fusion_takes_what_the_file_asks_for(case: Case) -> None:
    case = replace(case, depth=None)
    assert same(rrf_of(case, 60), rrf_of(replace(case, depth=case.k), 60))


def same(one: Answers, other: Answers) -> bool:
    return (one.ids, one.scores) == (other.ids, other.scores)


def by_document(found: Answers) -> dict[tuple[str, str], float]:
    assert found.scores is not None
    return {
        (qid, name): score for qid, ids in found.ids.items() for name, score in zip(ids, found.scores[qid], strict=True)
    }


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_inputs_changes_no_score(case: Case, random: object) -> None:
    case = replace(case, k=1000, depth=5)
    order = list(range(len(case.inputs)))
    random.shuffle(order)  # type: ignore[attr-defined]
    other = replace(
        case,
        inputs=[case.inputs[number] for number in order],
        weights=[case.weights[number] for number in order],
        least=[case.least[number] for number in order],
    )
    assert by_document(rrf_of(case, 60)) == by_document(rrf_of(other, 60))
    for normalization in NORMALIZATIONS:
        assert by_document(convex_of(other, normalization)) == pytest.approx(
            by_document(convex_of(case, normalization)), abs=EXACT
        )


def rescaled(results: Input, factor: float, shift: float) -> Input:
    return {qid: [(name, factor * score + shift) for name, score in own] for qid, own in results.items()}


# Scores that a factor and a shift do not merge into one.
COARSE = st.lists(st.tuples(st.sampled_from("abcdefg"), st.integers(-8, 8).map(lambda n: n / 2)), max_size=7)


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(QIDS, COARSE)), min_size=1, max_size=3), st.integers(0, 2))
def test_the_unit_of_an_inputs_scores_does_not_matter(inputs: list[Input], which: int) -> None:
    case = Case(inputs, [1.0] * len(inputs), [-4.0] * len(inputs), None, 1000)
    for factor, shift in ((3.7, 11.0), (1e-200, 0.0), (1e200, 0.0), (4e307, 0.0)):
        other = [rescaled(each, factor, shift) if number == which else each for number, each in enumerate(inputs)]
        for normalization in ("min_max", "z_score"):
            found = by_document(convex_of(replace(case, inputs=other), normalization))
            assert found == pytest.approx(by_document(convex_of(case, normalization)), abs=1e-9)


@given(st.fixed_dictionaries(dict.fromkeys(QIDS, COARSE)))
def test_theoretical_from_the_lowest_score_is_min_max(results: Input) -> None:
    for qid in QIDS:
        own = {qid: results[qid]}
        if not own[qid]:
            continue
        least = min(score for _, score in own[qid])
        inputs = [answers(own)]
        one = convex(Convex(normalization="theoretical", least=[least]), inputs, [None], 10)
        assert same(one, convex(Convex(), inputs, [None], 10))


@given(cases())
def test_one_input_keeps_its_order(case: Case) -> None:
    ranked = {qid: list(dict(own).items()) for qid, own in case.inputs[0].items()}
    found = reciprocal_rank(ReciprocalRank(), [answers(ranked)], [None], 1000)
    assert found.ids == {qid: [name for name, _ in own] for qid, own in ranked.items()}


@given(cases())
def test_an_input_without_weight_changes_no_score(case: Case) -> None:
    case = replace(case, k=1000, depth=7)
    more = replace(
        case,
        inputs=[*case.inputs, {qid: [("a", 9.0), ("z", 1.0)] for qid in QIDS}],
        weights=[*case.weights, 0.0],
        least=[*case.least, 0.0],
    )
    before, after = by_document(rrf_of(case, 1)), by_document(rrf_of(more, 1))
    assert {key: after[key] for key in before} == before
    assert {after[key] for key in after if key not in before} <= {0.0}


# ---- by hand -----------------------------------------------------------------------------------------------------

LEFT: Input = {"q": [("a", 9.0), ("b", 6.0), ("c", 5.0)]}
RIGHT: Input = {"q": [("b", 0.9), ("d", 0.4), ("a", 0.1)]}


def shown(found: Answers) -> list[tuple[str, float]]:
    assert found.scores is not None
    return list(zip(found.ids["q"], found.scores["q"], strict=True))


def check(found: Answers, expected: Sequence[tuple[str, float]]) -> None:
    assert [name for name, _ in shown(found)] == [name for name, _ in expected]
    assert [score for _, score in shown(found)] == pytest.approx([score for _, score in expected], abs=EXACT)


def test_rrf_by_hand() -> None:
    found = reciprocal_rank(ReciprocalRank(k=60), [answers(LEFT), answers(RIGHT)], [None, None], 10)
    # ranks: a 1 and 3, b 2 and 1, c 3 and none, d none and 2
    check(found, [("b", 1 / 62 + 1 / 61), ("a", 1 / 61 + 1 / 63), ("d", 1 / 62), ("c", 1 / 63)])


def test_weighted_rrf_by_hand() -> None:
    options = ReciprocalRank(k=1, weights=[3, 1])
    # a: 3/2 + 1/4; b: 3/3 + 1/2; c: 3/4; d: 1/3
    check(
        reciprocal_rank(options, [answers(LEFT), answers(RIGHT)], [None, None], 10),
        [("a", 1.75), ("b", 1.5), ("c", 0.75), ("d", 1 / 3)],
    )


def test_depth_cuts_the_inputs_and_k_the_result() -> None:
    inputs = [answers(LEFT), answers(RIGHT)]
    # the first two of each: a, b and b, d
    check(
        reciprocal_rank(ReciprocalRank(k=0, depth=2), inputs, [None, None], 2),
        [("b", 1 / 2 + 1 / 1), ("a", 1.0)],
    )


def test_min_max_by_hand() -> None:
    # left (9, 6, 5) becomes (1, 1/4, 0), right (.9, .4, .1) becomes (1, 3/8, 0); halves of the sums
    check(
        convex(Convex(), [answers(LEFT), answers(RIGHT)], [None, None], 10),
        [("b", (1 / 4 + 1) / 2), ("a", (1 + 0) / 2), ("d", 3 / 16), ("c", 0.0)],
    )


def test_theoretical_by_hand() -> None:
    # left ÷ 9, for the least of bm25 is 0; right (s + 1) ÷ 1.9, for that of a cosine is −1; weights .25 and .75
    options = Convex(normalization="theoretical", weights=[1, 3])
    check(
        convex(options, [answers(LEFT), answers(RIGHT)], [0.0, -1.0], 10),
        [
            ("b", 0.25 * 6 / 9 + 0.75),
            ("a", 0.25 + 0.75 * 1.1 / 1.9),
            ("d", 0.75 * 1.4 / 1.9),
            ("c", 0.25 * 5 / 9),
        ],
    )


def test_z_score_by_hand() -> None:
    inputs: list[Input] = [{"q": [("a", 3.0), ("b", 1.0)]}, {"q": [("b", 8.0), ("c", 5.0), ("d", 2.0)]}]
    # first: mean 2, deviation 1: a 1, b −1, others −1; second: mean 5, deviation √6: b 3/√6, c 0, d −3/√6, a −3/√6
    far = 3 / math.sqrt(6)
    check(
        convex(Convex(normalization="z_score"), [answers(each) for each in inputs], [None, None], 10),
        [("b", (far - 1) / 2), ("a", (1 - far) / 2), ("c", (0 - 1) / 2), ("d", (-1 - far) / 2)],
    )


def test_equal_scores_go_by_the_first_input_that_has_them() -> None:
    first, second = answers({"q": [("x", 1.0), ("y", 1.0)]}), answers({"q": [("z", 1.0), ("a", 1.0)]})
    # x and z have 1/61, y and a 1/62
    assert reciprocal_rank(ReciprocalRank(), [first, second], [None, None], 10).ids["q"] == ["x", "z", "y", "a"]
    # equal scores normalize to 1 each, halved
    assert shown(convex(Convex(), [first, second], [None, None], 3)) == [("x", 0.5), ("y", 0.5), ("z", 0.5)]


def test_a_repeated_id_counts_where_it_stands_first() -> None:
    inputs = [answers({"q": [("a", 4.0), ("b", 3.0), ("a", 2.0), ("c", 0.0)]})]
    # c keeps rank 4
    check(reciprocal_rank(ReciprocalRank(k=0), inputs, [None], 10), [("a", 1.0), ("b", 1 / 2), ("c", 1 / 4)])
    check(convex(Convex(), inputs, [None], 10), [("a", 1.0), ("b", 0.75), ("c", 0.0)])


def test_nothing_found_is_nothing_fused() -> None:
    nothing = answers({"q": []})
    assert shown(reciprocal_rank(ReciprocalRank(), [nothing, nothing], [None, None], 10)) == []
    for normalization in NORMALIZATIONS:
        assert shown(convex(Convex(normalization=normalization), [nothing, nothing], [0.0, 0.0], 10)) == []


# ---- faults ------------------------------------------------------------------------------------------------------


def test_convex_needs_scores() -> None:
    with pytest.raises(groupgt.RetrieverError, match="one input has no scores; use rrf"):
        convex(Convex(), [answers(LEFT), Answers({"q": ["a"]})], [None, None], 10)


def test_theoretical_needs_the_least_of_each() -> None:
    inputs = [answers(LEFT), answers(RIGHT)]
    with pytest.raises(groupgt.RetrieverError, match="minimum score for each input"):
        convex(Convex(normalization="theoretical"), inputs, [0.0, None], 10)
    assert convex(Convex(normalization="theoretical", least=[0, 0]), inputs, [0.0, None], 10).ids["q"]


def test_a_score_below_the_least_is_an_error() -> None:
    with pytest.raises(groupgt.RetrieverError, match=r"at least 0.5 from input 2, found 0.4 \(query 'q'\)"):
        convex(Convex(normalization="theoretical", least=[0, 0.5]), [answers(LEFT), answers(RIGHT)], [None, None], 10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"depth": 0}, "depth: expected a whole number of at least 1, found 0"),
        ({"weights": [1, -1]}, "weights.1: expected a number of at least 0, found -1"),
        ({"weights": [0, 0]}, "at least one above 0"),
        ({"weights": [1, math.inf]}, "weights.1: expected a number, found inf"),
        ({"weights": [math.nan]}, "weights.0: expected a number, found nan"),
        ({"normalization": "minmax"}, "did you mean 'min_max'"),
        ({"least": [0.0]}, "`least` applies only to theoretical normalization, not min_max"),
    ],
)
def test_options_are_checked(options: dict[str, object], words: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=words):
        options_from(Convex, options)
    if "normalization" not in options and "least" not in options:
        with pytest.raises(groupgt.ConfigError, match=words):
            options_from(ReciprocalRank, options)


def test_the_constant_of_rrf_is_checked() -> None:
    with pytest.raises(groupgt.ConfigError, match="k: expected a whole number from 0 to 1,000,000,000, found -1"):
        options_from(ReciprocalRank, {"k": -1})
