"""The catalogue says everything about every metric, and what it says is so."""

from __future__ import annotations

import pytest

import groupgt
from groupgt.metrics import sets
from groupgt.metrics.base import Definition
from groupgt.metrics.catalogue import ALIASES, CATALOGUE, TREC_EVAL
from groupgt.metrics.description import as_dict, details


@pytest.mark.parametrize("definition", CATALOGUE.values(), ids=lambda each: each.name)
def test_every_definition_is_whole(definition: Definition) -> None:
    assert definition.summary.endswith(".")
    assert set(definition.formulas) in ({None}, {"autorag", "trec", "coverage"})
    assert all(formula.text for formula in definition.formulas.values())
    for parameters in definition.parameters.values():
        for parameter in parameters:
            text = f"{definition.name}({parameter.name}={parameter.default})"
            convention = next(c for c, own in definition.parameters.items() if own == parameters)
            assert groupgt.parse_metric(text, convention or "autorag").parameters == ()
    shown = details(definition)
    assert definition.name in shown
    assert as_dict(definition)["name"] == definition.name


def test_the_documented_metrics_are_there() -> None:
    conventional = {"precision", "recall", "f1", "hit_rate", "complete", "mrr", "map", "ndcg"}
    relevance = {"hits", "r_precision", "dcg", "err", "rbp", "judged", "bpref"}
    groups = {"completion_rr", "mrecall", "redundancy", "novelty_ndcg"}
    diversity = {"alpha_ndcg", "alpha_dcg", "err_ia", "nerr_ia", "nrbp", "nnrbp", "map_ia", "p_ia"}
    contents = {"token_precision", "token_recall", "token_f1"}
    others = relevance | groups | diversity | contents
    assert {name for name, each in CATALOGUE.items() if None not in each.formulas} == conventional
    assert {name for name, each in CATALOGUE.items() if None in each.formulas} == others


def test_aliases_lead_somewhere() -> None:
    for alias in (*ALIASES, *(f"{name}_10" for name in TREC_EVAL)):
        assert groupgt.parse_metric(alias).name in CATALOGUE
    assert not set(ALIASES) & set(CATALOGUE)


def test_only_redundancy_is_better_when_lower() -> None:
    assert [name for name, each in CATALOGUE.items() if not each.higher_is_better] == ["redundancy"]


def test_the_same_hits_serve_all_metrics() -> None:
    result = groupgt.evaluate({"q": [["a"], ["b"]]}, {"q": ["a", "x"]}, ["hits", "recall"])
    assert sets.hits_found(result.labelled.hits, groupgt.parse_metric("hits").cut(result.labelled.hits)).tolist() == [
        1.0
    ]
