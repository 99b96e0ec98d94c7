"""The page of peers shows what they compute, and which metric of ours gives it."""

from __future__ import annotations

import pytest

from docs.generate import peers, published, same_word
from docs.generate.peers import EXAMPLES, TOOLS

pytestmark = pytest.mark.slow


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


def test_published_formulas_are_those_of_trec_eval_but_for_repeats() -> None:
    for letter in "ABCDE":
        recorded = peers.recorded()["trec_eval"]["values"][letter]
        for word, value in published.values(EXAMPLES[letter]).items():
            assert value == pytest.approx(recorded[word], abs=1e-6), (letter, word)
    assert published.values(EXAMPLES["G"])["NDCG"] == 1


def test_printed_figures_that_do_not_follow_are_listed() -> None:
    axion, lesson = published.PRINTED
    assert axion.value("NDCG", 5) == pytest.approx(0.9212, abs=5e-5)
    assert lesson.value("recall", 1) == pytest.approx(0.1944, abs=5e-5)
    assert lesson.value("MRR", 10) == pytest.approx(lesson.figures["MRR"][10], abs=5e-5)
    assert "| the lesson | recall@1 | 0.3056 | 0.1944 | 0.1944 (`recall.trec@1`) |" in same_word.text()
