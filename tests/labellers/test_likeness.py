"""How alike texts are, as numbers; and which texts are not known."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest

import groupgt
from groupgt.engines.contents import normal_words
from groupgt.labellers import likeness
from groupgt.labellers.likeness import (
    Normalization,
    TextPairs,
    alternative_texts,
    contained,
    partial_ratio,
    result_texts,
    text_pairs,
    token_recall,
)
from groupgt.model.ground_truth import GroundTruth

Method = Callable[[TextPairs], np.ndarray]


def pairs_of(results: list[str], alternatives: list[str]) -> TextPairs:
    """Every result beside every alternative, results first."""
    result, alternative = np.indices((len(results), len(alternatives))).reshape(2, -1)
    return text_pairs(results, alternatives, result, alternative)


def scores(method: Method, results: list[str], alternatives: list[str]) -> list[list[float]]:
    """A row for each result, a column for each alternative."""
    pairs = pairs_of(results, alternatives)
    found: list[list[float]] = method(pairs)[pairs.pair_of].reshape(len(results), -1).tolist()
    return found


def test_each_two_texts_are_compared_once() -> None:
    pairs = text_pairs(["x", "y", "x"], ["a", "b", "a"], np.array([0, 1, 2, 2]), np.array([0, 1, 2, 1]))
    assert (pairs.results, pairs.alternatives) == (["x", "y"], ["a", "b"])
    assert (pairs.result.tolist(), pairs.alternative.tolist()) == ([0, 0, 1], [0, 1, 1])
    assert pairs.pair_of.tolist() == [0, 2, 0, 1]


def test_nothing_to_compare() -> None:
    for method in (contained, token_recall):
        assert method(pairs_of([], [])).tolist() == []


def test_words_are_contained_whole() -> None:
    assert scores(contained, ["a b c", "ab c"], ["b c", "a", "ab c"]) == [[1, 1, 0], [0, 0, 1]]


def test_the_share_of_words_that_are_found_again() -> None:
    """Each word counts as often as both texts have it; a text without words has none to find."""
    results = ["a b c", "a a d", "e", ""]
    alternatives = ["a", "a a b c", "d e", ""]
    assert scores(token_recall, results, alternatives) == [
        [1, 3 / 4, 0, 0],
        [1, 2 / 4, 1 / 2, 0],
        [0, 0, 1 / 2, 0],
        [0, 0, 0, 0],
    ]


@pytest.mark.parametrize("block", [10, 50, 110])
def test_blocks_of_pairs_have_the_same_words(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a block at a time; 36 pairs are several of these."""
    results, alternatives = [f"a{number} b" for number in range(6)], [f"a{number} b" for number in range(6)]
    monkeypatch.setattr(likeness, "BLOCK", block)
    assert scores(token_recall, results, alternatives) == (np.eye(6) / 2 + 0.5).tolist()


@pytest.mark.skipif(find_spec("rapidfuzz") is None, reason="needs the extra groupgt[text]")
def test_partial_ratios() -> None:
    """Eight of ten letters in a longer result; in a shorter one 2 · 4 ÷ (4 + 10) of the letters of both.

    Where they are as long the best part counts: of bcde its bcd, which is 2 · 3 ÷ (3 + 4).
    """
    assert scores(partial_ratio, ["xx abcdefgh yy zz", "abcd"], ["abcdefghij"]) == [[0.8], [pytest.approx(8 / 14)]]
    assert scores(partial_ratio, ["abcd"], ["bcde", "abcd"]) == [[pytest.approx(6 / 7), 1.0]]


@pytest.mark.skipif(find_spec("rapidfuzz") is None, reason="needs the extra groupgt[text]")
def test_partial_ratios_below_the_least_are_0(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = pairs_of(["xx abcdefgh yy zz", "abcd", "abcdefghij"], ["abcdefghij"])
    for block in (1, 2, 500):
        monkeypatch.setattr(likeness, "BLOCK", block)
        assert partial_ratio(pairs, 0.8).tolist() == [0.8, 0.0, 1.0]
        assert partial_ratio(pairs, 0.81).tolist() == [0.0, 0.0, 1.0]
        assert partial_ratio(pairs, 0.57).tolist() == [0.8, pytest.approx(8 / 14), 1.0]


@pytest.mark.parametrize("letter", ["ก", "ກ", "ཀ", "က", "ក", "ᥐ", "ᨠ", "ᬅ", "ꦄ", "あ", "ア", "㐀", "中", "豈", "𠀀"])
def test_letters_of_scripts_without_blanks_are_words(letter: str) -> None:
    normal = Normalization()(letter)
    assert Normalization()(letter * 2) == f"{normal} {normal}"


@pytest.mark.parametrize("marked", ["กิ", "ກິ", "ཀི", "ကိ", "ကျ", "កិ", "ᨠᩥ", "ᬅᬶ", "ꦄꦶ"])
def test_marks_stay_with_their_letters(marked: str) -> None:
    assert Normalization()(marked * 2) == f"{marked} {marked}"


def test_as_it_is_the_case_is_folded_and_punctuation_dropped() -> None:
    assert Normalization() == Normalization(case_sensitive=False, punctuation=False)
    assert Normalization()("The  ﬁnal\nResult, (42%)!") == "the final result 42"
    assert Normalization()("北京\n是首都。") == "北 京 是 首 都"


# ---- texts that are not known -------------------------------------------------------------------------------------


def unknown(truth: GroundTruth, reference: dict[str, str]) -> list[str]:
    with pytest.raises(groupgt.DataError) as caught:
        alternative_texts(truth, reference, "do this")
    return list(caught.value.faults)


def test_alternatives_without_a_text_are_named() -> None:
    """Each of them where there is something to look into; else the first, and how many more."""
    truth = GroundTruth.of({"q": [["a", "b"], ["c"]], "p": [["d"]]})
    assert unknown(truth, {}) == ["query 'q': no text for the alternative 'a', nor for 3 more; do this"]
    assert unknown(truth, {"b": "x", "d": "y"}) == [
        "query 'q': no text for the alternative 'a'; do this",
        "query 'q': no text for the alternative 'c'; do this",
    ]
    assert unknown(GroundTruth.of({"q": [["a"]]}), {}) == ["query 'q': no text for the alternative 'a'; do this"]


def test_blank_alternatives_where_they_are_allowed() -> None:
    truth = GroundTruth.of({"q": [["a", {"text": "b"}]]})
    assert alternative_texts(truth, {"a": " "}, blank=True) == [" ", "b"]
    assert unknown(truth, {"a": " "}) == ["query 'q': the text of the alternative 'a' is blank"]


def test_results_without_a_text_are_named() -> None:
    truth = GroundTruth.of({"p": [["a"]], "q": [["a"]]})

    def texts(carried: list[str | None], corpus: dict[str, str]) -> list[str]:
        return result_texts(truth, np.array([0, 1, 1]), ["c1", "c2", "c3"], carried, corpus, "it")

    assert texts(["x", None, ""], {"c2": "y", "c3": "z"}) == ["x", "y", ""]
    with pytest.raises(groupgt.DataError) as caught:
        texts([None, "x", None], {"c2": "y"})
    assert list(caught.value.faults) == [
        "results of query 'p': the corpus has no text for the result 'c1'",
        "results of query 'q': the corpus has no text for the result 'c3'",
    ]
    with pytest.raises(groupgt.DataError) as caught:
        texts(["x", None, None], {})
    way = "specify a corpus, or use results with text"
    assert list(caught.value.faults) == [f"results of query 'q': it needs the text of the result 'c2'; {way}"]


def test_words_of_contents_leave_out_articles_and_punctuation() -> None:
    assert normal_words("The cat, an Owl's friend.") == ["cat", "owls", "friend"]
