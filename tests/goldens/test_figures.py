"""Figures worked out by hand or computed from published code, each with its arithmetic or source beside it."""

from __future__ import annotations

from math import log2
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt

EXACT = 1e-12
PRINTED = 5.0001e-5


def value(groups: Any, ranking: list[str], metric: str) -> float:
    return groupgt.evaluate({"q": groups}, {"q": ranking}, [metric])[metric]


EXAMPLE = [["test-1", "test-2"], ["test-3"]]
RESULT = ["test-1", "pred-1", "test-2", "pred-3"]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("precision", 2 / 4),  # test-1 and test-2 of four results
        ("recall", 1 / 2),  # the first of two groups
        ("f1", 1 / 2),  # 2 · ½ · ½ / (½ + ½)
        ("mrr", (1 / 1 + 0) / 2),
        ("map", ((1 / 1 + 2 / 3) / 2 + 0) / 2),  # 5/12
        ("ndcg", (1 + 1 / log2(4)) / (1 + 1 / log2(3) + 1 / log2(4))),  # three ids are listed, so three ones
        ("ndcg", 0.7039180890341347),
    ],
)
def test_autorag_example(metric: str, expected: float) -> None:
    assert value(EXAMPLE, RESULT, metric) == pytest.approx(expected, abs=EXACT)
    assert groupgt.label(EXAMPLE, RESULT).tolist() == [1, 0, 1, 0]


ABC = [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("groups", "ranking", "mrr", "maps", "ndcg", "complete"),
    [
        # mrr.autorag (1 + 1/2)/2
        (ABC, ["a", "c"], (0.75, 1, 1), (0.75, 1), (1, 1), 1),
        # mrr.coverage (1 + 1/3)/(1 + 1/2); map.coverage (1/1 + 2/3)/2; ndcg.coverage (1 + 1/2)/(1 + 1/log2 3)
        (ABC, ["a", "b", "c"], (2 / 3, 1, 8 / 9), (2 / 3, 5 / 6), (1, 1.5 / (1 + 1 / log2(3))), 1),
        # ndcg.autorag: (1 + 1/log2 3)/(1 + 1/log2 3 + 1/2)
        (ABC, ["a", "c", "x", "y"], (0.75, 1, 1), (0.75, 1), ((1 + 1 / log2(3)) / (1.5 + 1 / log2(3)), 1), 1),
        # mrr.coverage 1/(1 + 1/2 + 1/3)
        ([["a"], ["b"], ["c"]], ["a"], (1 / 3, 1, 6 / 11), (1 / 3, 1 / 3), (1, 1 / (1.5 + 1 / log2(3))), 0),
        ([["x", "a"], ["x", "b"]], ["x"], (1, 1, 1), (1, 1), (1, 1), 1),
        ([["a", "b"]], ["a", "x"], (1, 1, 1), (1, 1), (1 / (1 + 1 / log2(3)), 1), 1),
        # ndcg.coverage: 1 at rank 1, the upgrade by 2 at rank 2, of 3 at rank 1
        (
            [[{"id": "a", "grade": 1}, {"id": "b", "grade": 3}]],
            ["a", "b"],
            (1, 1, 1),
            (1, 1),
            (1, (1 + 2 / log2(3)) / 3),
            1,
        ),
    ],
)
def test_conventions_side_by_side(
    groups: Any, ranking: list[str], mrr: Any, maps: Any, ndcg: Any, complete: float
) -> None:
    cells = [{"alternatives": g} if isinstance(g[0], dict) else g for g in groups]
    for convention, expected in zip(("autorag", "trec", "coverage"), mrr):
        assert value(cells, ranking, f"mrr.{convention}") == pytest.approx(expected, abs=EXACT)
    for name, pair in (("map", maps), ("ndcg", ndcg)):
        for convention, expected in zip(("autorag", "coverage"), pair):
            assert value(cells, ranking, f"{name}.{convention}") == pytest.approx(expected, abs=EXACT)
    assert value(cells, ranking, "complete") == complete


def test_novelty_ndcg_counts_a_document_once() -> None:
    # x meets both groups and gains once: 1/(1 + 1/log2 3)
    assert value([["x", "a"], ["x", "b"]], ["x"], "novelty_ndcg") == pytest.approx(1 / (1 + 1 / log2(3)), abs=EXACT)


def flat(**grades: float) -> list[Any]:
    return [{"alternatives": [{"id": name, "grade": grade}]} for name, grade in grades.items()]


LESSON = {
    "1": (flat(d1=3, d2=2, d4=1, d6=2), ["d1", "d3", "d5", "d2", "d7", "d8", "d4", "d9", "d10", "d6"]),
    "2": (flat(d1=3, d2=2), ["d3", "d1", "d7", "d2", "d5", "d4", "d8", "d9", "d10", "d6"]),
    "3": (flat(d1=3, d3=2, d5=1), ["d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10"]),
}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("mrr", [0.8333]),  # (1 + 1/2 + 1)/3
        ("recall", [0.1944, 0.4722, 0.8333, 1]),
        ("precision", [0.6667, 0.4444, 0.4667, 0.3]),
        ("ndcg", [0.6667, 0.6181, 0.7486, 0.8020]),
        ("hit_rate", [0.6667, 1, 1, 1]),
    ],
)
def test_graded_flattened(metric: str, expected: list[float]) -> None:
    truth = {qid: groups for qid, (groups, _) in LESSON.items()}
    run = {qid: ranking for qid, (_, ranking) in LESSON.items()}
    ks = [1, 3, 5, 10] if len(expected) > 1 else []
    means = groupgt.evaluate(truth, run, [metric], convention="trec", k=ks).means
    assert list(means.values()) == pytest.approx(expected, abs=PRINTED)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # grades 3 0 2 0 1: (3 + 2/log2 4 + 1/log2 6) / (3 + 2/log2 3 + 1/log2 4)
        ("ndcg.trec@5", 0.9212),
        # 7, 3 and 1 in place of 3, 2 and 1
        ("ndcg.trec(gain=exp)@5", 0.9461),
    ],
)
def test_axion(metric: str, expected: float) -> None:
    ranking = ["doc1", "doc4", "doc2", "doc5", "doc3"]
    assert value(flat(doc1=3, doc2=2, doc3=1), ranking, metric) == pytest.approx(expected, abs=PRINTED)


JUDGED = [
    {"alternatives": ["a", "b", {"id": "n1", "grade": 0}, {"id": "n2", "grade": 0}, {"id": "u", "grade": -1}]},
    {"alternatives": ["c"], "weight": 3},
]


@pytest.mark.parametrize(
    ("ranking", "metric", "expected"),
    [
        (["a", "b", "x", "c"], "hits@3", 2),
        (["a", "b", "x", "c"], "r_precision", 2 / 3),  # R = 3; a and b stand in the first 3
        (["a", "b", "x", "c"], "redundancy", 1 / 4),  # b meets nothing new
        (["a", "b", "x", "c"], "completion_rr", 1 / 4),
        (["a", "b", "x", "c"], "completion_rr@3", 0),
        (["a", "b", "x", "c"], "mrecall@1", 1),  # one of two groups is met, and one is all that one result can meet
        (["a", "b", "x", "c"], "mrecall@3", 0),  # a and b are of one group: 1 < min(2, 3)
        (["a", "b", "x", "c"], "mrecall", 1),
        (["a", "n1", "u", "x"], "judged", 2 / 4),  # a and n1; u is not judged, x neither
        (["x", "a", "c", "y"], "iprec", 2 / 3),  # 1/2 at rank 2, 2/3 at rank 3
        (["x", "a", "c", "y"], "iprec@1", 0),  # b, the third of R = 3, is not found
        (["a", "x", "c", "y"], "iprec@0.7", 2 / 3),  # ⌊0.7·3 + 0.9⌋ = 2 documents are enough
        (["a", "x", "y", "c"], "iprec@0.4", 2 / 4),  # ⌊0.4·3 + 0.9⌋ = 2 documents are needed
        (["a", "x", "y", "c"], "iprec(version=10)@0.4", 1),  # 1.2 is rounded to 1 document
        (["a", "x", "y", "c"], "iprec(recall=0.5, version=10)", 2 / 4),  # and 1.5 to 2
        (["a", "n1", "u", "x"], "num_ret", 4),
        (["a", "n1", "u", "x"], "num_rel", 3),
        (["a", "u", "n1", "x"], "rbp_residual(p=0.5)@3", 1 - 0.5 * (1 + 0.25)),  # a and n1 are judged
        (["a", "u", "n1", "x"], "unj@5", 2 / 5),  # u and x; nothing stands at rank 5
        (["a", "u", "n1", "x"], "rbp_resid(p=0.5)", 1 / 2**4 + 0.5 * (1 / 2 + 1 / 2**3)),  # u and x, and what follows
        (["a", "u", "n1", "x"], "rbp_resid(p=0.5)@1", 0),  # a is judged
        (["x", "a"], "rbp_resid", 0.9**2 + 0.1),
        # R = 3, N = 2, min(N, R) = 2: a has none above it, c has n1 and n2 above it: 1 − 2/2; b is not found
        (["a", "n1", "n2", "c"], "bpref", (1 + 0) / 3),
        (["a", "n1", "u", "c"], "bpref", (1 + (1 - 1 / 2)) / 3),  # u does not count
        # R = 3: a is first; above c are a and n1, half of them relevant, and u of the pool: 1/4 + (3/4)(3/3)(1/2)
        (["a", "n1", "u", "c"], "infap", (1 + 1 / 4 + 3 / 4 * (1 + 1e-5) / (2 + 2e-5)) / 3),
        # All grades are 1, so the ideal is a, c, b; shared are none of 1, a of 2, a and c of 3, against 1, 2 and 3.
        (["x", "a", "c"], "compat(p=0.5)", (1 / 2 * 1 / 2 + 1 / 4 * 2 / 3) / (1 + 1 / 2 + 1 / 4)),
        (["x", "a", "c"], "recall.coverage@2", 1 / 4),  # weight 1 of 1 + 3
        # weight 3 at rank 1, 1 at rank 2: ideal; here 1/1 + 3/2 of 3/1 + 1/2
        (["a", "c"], "mrr.coverage", 2.5 / 3.5),
        (["x", "a", "c"], "map.coverage", (1 * (1 / 2) + 3 * (2 / 3)) / 4),
        (["x", "a", "b"], "dcg", 1 / log2(3) + 1 / log2(4)),
        # R = (2¹ − 1)/2⁴ at ranks 1 and 2: 1/16 + (15/16)(1/16)/2
        (["a", "b"], "err", 1 / 16 + (15 / 16) * (1 / 16) / 2),
        (["a", "x", "b"], "rbp(p=0.5)", 0.5 * (1 + 0.25)),
        (["a", "x", "b"], "rbp(graded=True, p=0.5)", 0.5 * (1 + 0.25)),  # all grades are 1, which is the highest
        # a: 1; b: ½/log2 3; c: 3/log2 4. Ideal: c 3, then a 1/log2 3, then b ½/log2 4
        (["a", "b", "c"], "alpha_ndcg", (1 + 0.5 / log2(3) + 3 / 2) / (3 + 1 / log2(3) + 0.25)),
        # the total weight is 4
        (["a", "b"], "alpha_dcg@2", (1 + 0.5 / log2(3)) / (4 * (1 + 0.5 / log2(3)))),
        (["a", "b"], "err_ia@2", (1 + 0.25) / (2 * (1 + 0.25))),
        (["a", "b", "c"], "nerr_ia", (1 + 0.5 / 2 + 1 / 3) / (1 + 1 / 2 + 0.5 / 3)),
        # [1 − ½·½]/2 · (1 + ½·½ + ¼·1)
        (["a", "b", "c"], "nrbp", 0.75 / 2 * (1 + 0.25 + 0.25)),
        (["a", "b", "c"], "nnrbp", (1 + 0.25 + 0.25) / (1 + 0.5 + 0.125)),
        # group 1: (1/1 + 2/2)/2; group 2: (1/3)/1
        (["a", "b", "c"], "map_ia", (1 + 1 / 3) / 2),
        (["a", "x"], "p_ia@4", 1 / (4 * 2)),
        # 2^1 − 1 each: (1 + 1/log2 4)/(1 + 1/log2 3)
        (["a", "b", "c"], "novelty_ndcg", 1.5 / (1 + 1 / log2(3))),
        (["a", "b", "x", "c"], "precision.coverage", 2 / 4),
        (["a", "b"], "precision.trec@10", 2 / 10),
        (["a", "b"], "precision.autorag@10", 2 / 2),
        (["a", "b"], "complete.trec", 0),
        (["c", "b"], "complete.coverage", 1),
        (["x", "b"], "hit_rate@1", 0),
        (["a", "c"], "f1.coverage", 1),
        (["a", "x"], "f1.trec", 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3)),
        (["b", "x", "a"], "map.trec", (1 + 2 / 3) / 3),
    ],
)
def test_by_hand(ranking: list[str], metric: str, expected: float) -> None:
    assert value(JUDGED, ranking, metric) == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # "the cat sat" has 2 words (no article), "cat sat down, here." 4 and "a dog barks" 2; the alternative
        # "The cat sat down" 3. In common: 2, 3, 0. The other alternative, "dogs", shares no word: dog is not dogs.
        ("token_precision", (2 / 2 + 3 / 4 + 0) / 3),
        ("token_recall", (2 / 3 + 3 / 3 + 0) / 3),
        # F1: 2·1·(2/3)/(5/3) = 4/5 and 2·(3/4)·1/(7/4) = 6/7
        ("token_f1", (4 / 5 + 6 / 7 + 0) / 3),
        ("retrieval_token_f1@1", 4 / 5),
    ],
)
def test_contents(metric: str, expected: float) -> None:
    truth = {"q": [["a"], [{"text": "dogs"}]]}
    texts = {"a": "The cat sat down", "x": "the cat sat", "y": "cat sat down, here.", "z": "a dog barks"}
    found = groupgt.evaluate(truth, {"q": ["x", "y", "z"]}, [metric], corpus=texts, labeller="text")
    assert found[metric] == pytest.approx(expected, abs=EXACT)


def test_graded_rbp_divides_by_the_highest_grade_of_all_queries() -> None:
    truth: Any = {
        "q1": [[{"id": "a", "grade": 1}, {"id": "b", "grade": 2}, {"id": "n", "grade": -1}]],
        "q2": [[{"id": "c", "grade": 4}]],
    }
    metrics = ["rbp(graded=True, p=0.5)", "rbp(graded=True, p=0.5)@2", "rbp(graded=True, p=0.5, level=2)"]
    run = {"q1": ["a", "n", "b"], "q2": ["x", "c"]}
    found = groupgt.evaluate(truth, run, metrics)
    # 1/4 at rank 1 and 2/4 at rank 3; 4/4 at rank 2
    assert found.values[metrics[0]].tolist() == [0.5 * (1 / 4 + 2 / 4 * 1 / 4), 0.5 * 1 / 2]
    assert found.values[metrics[1]].tolist() == [0.5 * 1 / 4, 0.5 * 1 / 2]
    # a is not relevant from grade 2 on
    assert found.values[metrics[2]].tolist() == [0.5 * 2 / 4 * 1 / 4, 0.5 * 1 / 2]
    # A grade counts the same where only some of the queries are evaluated.
    one = groupgt.evaluate(groupgt.GroundTruth.of(truth).select([0]).select([0]), run, metrics)
    assert [one[metric] for metric in metrics] == [found.values[metric][0] for metric in metrics]


def test_the_geometric_mean_of_average_precision() -> None:
    truth = {"q1": [["a"], ["b"]], "q2": [["c"]], "q3": [["d"]]}
    run = {"q1": ["a", "x", "b"], "q2": ["x", "c"], "q3": ["x"]}
    # AP is (1 + 2/3)/2, 1/2, and 0, which counts as 0.00001
    expected = ((1 + 2 / 3) / 2 * (1 / 2) * 1e-5) ** (1 / 3)
    assert groupgt.evaluate(truth, run, ["gm_map"])["gm_map"] == pytest.approx(expected, abs=EXACT)


def test_queries_without_an_answer() -> None:
    rows = {"qid": ["a", "b", "c"], "retrieval_gt": [[["x"]], [], []], "answerable": [True, False, False]}
    run = {"a": {"x": 0.9}, "b": {"y": 0.4, "z": 0.3}}
    found = groupgt.evaluate(pl.DataFrame(rows, strict=False), run, ["abstains", "false_returns", "abstains@0.4score"])
    # Query b has two results, one of them with a score of at least .4; c has none
    assert found["abstains"] == 1 / 2
    assert found["false_returns"] == (2 + 0) / 2
    assert found["abstains@0.4score"] == 1 / 2


def test_harmful_results() -> None:
    truth = groupgt.GroundTruth.of(
        {"q1": [["a"], ["b"]], "q2": [["c"]], "q3": [["d"]]}, harmful_ids={"q1": ["x"], "q3": ["y"]}
    )
    found = groupgt.evaluate(
        truth, {"q1": ["a", "x", "b", "x"], "q2": ["x"]}, ["harmful", "harmful@2", "clean", "clean@1"]
    )
    # Of q1's four results two are x, one of the first two and not the first; q2 names nothing, and q3 has no results:
    # its empty ranking has no share, and is clean.
    assert found["harmful"] == 2 / 4
    assert found["harmful@2"] == 1 / 2
    assert found["clean"] == (0 + 1) / 2
    assert found["clean@1"] == (1 + 1) / 2


def test_every_metric_has_a_value_by_hand() -> None:
    from groupgt.metrics.catalogue import CATALOGUE

    text = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in CATALOGUE if f'"{name}' not in text] == []


def test_what_the_docs_warn_of() -> None:
    # map.autorag divides by the hits found: losing the late hit raises it.
    assert value([["a", "b"]], ["a", "x", "x2", "b"], "map") == pytest.approx((1 + 2 / 4) / 2)
    assert value([["a", "b"]], ["a", "x", "x2", "y"], "map") == 1
    # ndcg.autorag forgives short lists: the ideal is cut at their length.
    assert value(ABC, ["a"], "ndcg") == 1
    assert value(ABC, ["a"], "recall") == 0.5
    # map.coverage does not see how many groups one document covers.
    assert value([["x"], ["x"]], ["x"], "map.coverage") == value([["x"]], ["x"], "map.coverage") == 1


def test_the_ideal_of_coverage_may_upgrade_before_it_meets() -> None:
    """a, b, c gains 7 + 2, 1, 1 in the best order, though b (an upgrade) delays the new group c."""
    groups = [
        {"alternatives": [{"id": "a", "grade": 2}, {"id": "b", "grade": 8}]},
        {"alternatives": [{"id": "a", "grade": 7}]},
        {"alternatives": [{"id": "c", "grade": 1}]},
    ]
    assert value(groups, ["a", "b", "c"], "ndcg.coverage") == 1
    assert value(groups, ["a", "b", "c"], "map.coverage") == pytest.approx((1 + 1 + 2 / 3) / 3)


def test_a_maximum_coverage_problem_greedy_would_miss() -> None:
    """Greedy takes x (3 groups) and needs three results; y and z meet all four in two."""
    groups = [["x", "y"], ["x", "y"], ["x", "z"], ["z"]]
    # y: 2, z: 2/log2 3 against x: 3, z: 1/log2 3: the second is better at depth 2 for ndcg, and is the ideal
    assert value(groups, ["x", "z"], "ndcg.coverage") == 1
    assert value(groups, ["y", "z"], "ndcg.coverage") == pytest.approx((2 + 2 / log2(3)) / (3 + 1 / log2(3)))
    assert value(groups, ["y", "z"], "completion_rr") == 1 / 2
