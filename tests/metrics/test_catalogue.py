"""The catalogue says everything about every metric, and what it says is so."""

from __future__ import annotations

import pytest

import groupgt
from groupgt.metrics.base import Definition
from groupgt.metrics.catalogue import ABSENT, ALIASES, CATALOGUE, MEANT, TREC_EVAL
from groupgt.metrics.description import as_dict, details
from groupgt.metrics.language import parse_metric, parse_metrics
from groupgt.metrics.values import check_policy
from groupgt.model.policy import Policy


@pytest.mark.parametrize("definition", CATALOGUE.values(), ids=lambda each: each.name)
def test_every_definition_is_whole(definition: Definition) -> None:
    assert definition.summary.endswith(".")
    assert set(definition.formulas) in ({None}, {"autorag", "trec", "coverage"})
    assert all(formula.text for formula in definition.formulas.values())
    for convention, formula in definition.formulas.items():
        for parameter in formula.parameters:
            text = f"{definition.name}({parameter.name}={parameter.default})"
            assert groupgt.parse_metric(text, convention or "autorag").parameters == ()
            is_bounded = parameter.choices or not all(map(parameter.holds, (-1, 1e9)))
            assert is_bounded, f"{text}: its range accepts every number, though it expects {parameter.expected}"
    shown = details(definition)
    assert definition.name in shown
    assert as_dict(definition)["name"] == definition.name


def test_aliases_lead_somewhere() -> None:
    for alias in (*ALIASES, *(f"{name}_10" for name in TREC_EVAL)):
        assert groupgt.parse_metric(alias).name in CATALOGUE
    for meant in MEANT.values():
        assert groupgt.parse_metric(meant).name in CATALOGUE
    assert not set(ALIASES) & set(CATALOGUE)
    assert not set(ABSENT) & {*ALIASES, *MEANT, *CATALOGUE}


def test_a_micro_average_is_the_ratio_of_two_means() -> None:
    """The way out that the refusal of recall_micro names: 2 of 4 relevant documents, and a mean recall of 2/3."""
    truth, run = {"q1": [["a"], ["b"], ["c"]], "q2": [["d"]]}, {"q1": ["a"], "q2": ["d"]}
    found = groupgt.evaluate(truth, run, ["hits@5", "num_rel", "recall.trec@5"])
    assert found["hits@5"] / found["num_rel"] == 2 / 4
    assert found["recall.trec@5"] == (1 / 3 + 1) / 2
    # Of three results, two are relevant; of the first two places of both queries, one each.
    found = groupgt.evaluate(truth, {"q1": ["a", "x"], "q2": ["d"]}, ["hits", "num_ret", "precision.trec@2"])
    assert found["hits"] / found["num_ret"] == 2 / 3
    assert found["precision.trec@2"] == 2 / 4


def test_the_same_hits_serve_all_metrics() -> None:
    result = groupgt.evaluate({"q": [["a"], ["b"]]}, {"q": ["a", "x"]}, ["hits", "recall"])
    assert groupgt.parse_metric("hits").values(result.labelled.hits).tolist() == [1.0]


def test_texts_that_were_not_read_are_told() -> None:
    hits = groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["recall"]).labelled.hits
    with pytest.raises(groupgt.MetricError, match="token_f1 compares text: evaluate with a corpus"):
        parse_metric("token_f1").values(hits)


@pytest.mark.parametrize(
    ("metric", "grade", "words"),
    [
        ("ndcg(gain=exp)", 1001, "query 'p': the gain 2\\^grade - 1 supports grades up to 1000, found 1001"),
        ("err", 5, "query 'p': err expects grades up to max_grade=4, found 5; write err\\(max_grade=5\\)"),
    ],
)
def test_grades_beyond_what_a_formula_takes(metric: str, grade: int, words: str) -> None:
    truth = {"q": [["a"]], "p": [[{"id": "b", "grade": grade}, "c"]]}
    for convention in ("trec", "coverage"):
        with pytest.raises(groupgt.MetricError, match=words):
            groupgt.evaluate(truth, {"q": ["a"]}, [metric], convention=convention)
    at_most = {"q": [["a"]], "p": [[{"id": "b", "grade": grade - 1}]]}
    assert groupgt.evaluate(at_most, {"q": ["a"], "p": ["b"]}, [metric], convention="trec")[metric] > 0


def test_a_policy_that_does_not_go_with_a_metric() -> None:
    with pytest.raises(groupgt.ConfigError, match=r"recall\.trec: .* requires the autorag convention; choose"):
        groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["recall", "recall.trec"], policy={"duplicates": "keep"})


def test_condensed_lists_are_of_ids() -> None:
    drop = Policy(unjudged="drop")
    with pytest.raises(
        groupgt.ConfigError, match="unjudged=drop works on ids, but these metrics compare text: omit token_f1"
    ):
        check_policy(drop, parse_metrics(["token_f1@5", "recall"], "autorag"))
