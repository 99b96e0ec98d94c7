"""The page of peers shows what they compute, and which metric of ours gives it."""

from __future__ import annotations

import pytest

from docs.generate import peers, same_word
from docs.generate.peers import EXAMPLES, TOOLS


def test_the_page_is_what_the_code_writes() -> None:
    assert same_word.PATH.read_text(encoding="utf-8") == same_word.text(), "python -m docs.generate.same_word"


def test_every_tool_is_recorded_with_version_and_date() -> None:
    recorded = peers.recorded()
    assert list(recorded) == list(TOOLS)
    for name, held in recorded.items():
        assert held["version"]
        assert held["date"] >= "2026-11-22"
        assert set(held["values"]) == {each for each in EXAMPLES if TOOLS[name].lists or EXAMPLES[each].run}


@pytest.mark.peers
@pytest.mark.parametrize("name", TOOLS)
def test_recorded_values_are_those_of_the_tool(name: str) -> None:
    found = peers.computed(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    tool, recorded = TOOLS[name], peers.recorded()[name]["values"]
    for letter, by_word in recorded.items():
        assert found["values"][letter] == pytest.approx(by_word, abs=1.5 * 10**-tool.digits), letter


@pytest.mark.parametrize(
    ("word", "name", "metric", "but_for"),
    [
        ("NDCG", "trec_eval", "`ndcg.trec@3`", []),
        ("NDCG", "AutoRAG", "`ndcg.autorag@3` with `duplicates=keep`", []),
        ("NDCG", "AutoRAG-Research", "`novelty_ndcg@3`", []),
        ("MRR", "ranx", "`mrr.trec@3` with `ties=input`", []),
        ("recall", "FreshStack", "`recall.coverage@3`", []),
        ("MAP", "ndeval", "`map_ia`", ["F"]),
    ],
)
def test_what_a_word_is_called_here(word: str, name: str, metric: str, but_for: list[str]) -> None:
    assert same_word.same(word, TOOLS[name], peers.recorded()[name]["values"]) == (metric, but_for)


def test_a_value_that_is_none_of_ours_is_told() -> None:
    values = {letter: {"recall": 0.123} for letter in "AB"}
    assert same_word.same("recall", TOOLS["ranx"], values) == ("", ["A", "B"])
