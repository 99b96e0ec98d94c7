"""How a definition is shown, word by word."""

from __future__ import annotations

from typing import Any

from groupgt.metrics.base import Definition, Formula, Parameter
from groupgt.metrics.catalogue import CATALOGUE
from groupgt.metrics.description import as_dict, details


def nothing(hits: Any, cut: Any) -> Any:
    raise NotImplementedError


PARAMETERS = (Parameter("p", 0.5, "a number"), Parameter("q", "x", "x or y"))
WHOLE = Definition(
    "mine",
    "What it says.",
    {"autorag": Formula(nothing, "a ÷ b", source="a paper", parameters=PARAMETERS), "trec": Formula(nothing, "a")},
    higher_is_better=False,
    takes_cutoff=False,
    warning="It grows.",
)
PLAIN = Definition("mine", "What it says.", {None: Formula(nothing, "a")})


def test_details_have_a_line_for_everything_there_is_to_say() -> None:
    assert details(WHOLE).splitlines() == [
        "mine: What it says.",
        "",
        "mine.autorag",
        "  a ÷ b",
        "  p: a number; default 0.5",
        "  q: x or y; default x",
        "  source: a paper",
        "",
        "mine.trec",
        "  a",
        "",
        "lower is better",
        "uses the entire ranking and takes no cutoff",
        "also written retrieval_mine",
        "note: It grows.",
    ]
    assert details(PLAIN).splitlines() == ["mine: What it says.", "", "mine", "  a", "", "higher is better"]


def test_what_is_not_said_is_none() -> None:
    shown = as_dict(PLAIN)
    assert (shown["warning"], shown["aliases"], shown["formulas"][0]["source"]) == (None, [], None)
    shown = as_dict(WHOLE)
    assert (shown["warning"], shown["aliases"]) == ("It grows.", ["retrieval_mine"])
    assert [formula["source"] for formula in shown["formulas"]] == ["a paper", None]


def test_aliases_are_those_of_the_metric_whatever_follows_its_name() -> None:
    """`ndcg_burges` stands for `ndcg.trec(gain=exp)`; trec_eval's `ndcg_cut_10` for `ndcg.trec@10`."""
    assert as_dict(CATALOGUE["ndcg"])["aliases"] == ["ndcg_burges", "ndcg_cut_10", "retrieval_ndcg"]
    assert as_dict(CATALOGUE["dcg"])["aliases"] == ["dcg_burges"]
    assert as_dict(CATALOGUE["r_precision"])["aliases"] == ["r-precision", "rprec"]
