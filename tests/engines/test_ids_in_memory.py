"""Ids held in memory obey the rule of files: what no file may hold as an id, no list, pair or mapping may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.engines import lists
from groupgt.model import validity

TRUTH = {"q": [["a"]], "r": [["b", "c d"], ["é"]]}
ODD = [
    *("", " ", "  ", "\t", "\u00a0", "\u2003", "\u3000", "\x1c", "a\x00", "a\x1cb", "a\x7f", "x\x85", "é\x9f"),
    *("\u2028", "a\u2029b", "문\u2028서", "док\x9f", "a\ufeff", "😀\ufeff", "x\r", "a\nb", "\ud800", "x" * 65_537),
    *("é" * 32_769,),
]
ENDS = (*range(0xD7F0, 0xD810), *range(0xDFF0, 0xE010), *range(0xFEF0, 0xFF10), 0xFFFF, 0x1F600, 0x10FFFF)
PLAIN = [
    "a",
    "a b",
    "문서 1",
    "док",
    "é",
    "—",
    "x\u200dy",
    "😀",
    "Ａ",
    "\ue000",
    "x" * 65_536,
    "é" * 32_768,
    " a",
    "a ",
]


def shapes(name: str) -> dict[str, Any]:
    """A ranking that holds an id at its second rank, in every shape."""
    return {
        "list": ["a", name],
        "tuple": ("a", name),
        "pairs": [("a", 2.0), (name, 1.0)],
        "scores": {"a": 2.0, name: 1.0},
        "mappings": [{"id": "a"}, {"id": name}],
        "array": np.array(["a", name], dtype=object),
    }


@pytest.mark.parametrize("name", ODD, ids=lambda name: ascii(name)[:12])
def test_what_is_no_id_in_a_file_is_none_in_a_list(name: str) -> None:
    for ranking in shapes(name).values():
        with pytest.raises(groupgt.DataError, match=r"query 'q': the id .* at rank 2 (is|contains)"):
            groupgt.evaluate(TRUTH, {"r": ["b"], "q": ranking}, ["recall"])
    with pytest.raises(groupgt.DataError, match=r"the query id .* (is|contains)"):
        groupgt.evaluate(TRUTH, {"q": ["a"], name: ["a"]}, ["recall"])
    for truth in ({name: [["a"]]}, {"q": [["a", name]]}, {"q": [["a"], [{"id": name}]]}):
        with pytest.raises(groupgt.DataError):
            groupgt.evaluate(truth, {"q": ["a"]}, ["recall"])


@pytest.mark.parametrize("name", PLAIN, ids=lambda name: ascii(name)[:12])
def test_what_is_an_id_in_a_file_is_one_in_a_list(name: str) -> None:
    for ranking in shapes(name).values():
        found = groupgt.evaluate({"q": [["a", "z"], [name]]}, {"q": ranking}, ["recall"])
        assert found["recall"] == 1
        assert groupgt.evaluate({"q": [["a"]]}, {"q": ranking}, ["recall"])["recall"] == 1


def test_the_one_at_fault_among_many_queries_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the borders of what is looked at together may lie."""
    monkeypatch.setattr(lists, "GLANCE_QUERIES", 2)
    for at in range(0, 40, 3):
        run: dict[str, Any] = {f"q{number}": [f"d{number}", "문서"] for number in range(40)}
        run[f"q{at}"] = ["x", "y\x85"]
        for shaped in (run, {**run, "q1": [("d1", 1.0), ("문서", 0.5)], "q2": None} if at not in (1, 2) else run):
            with pytest.raises(groupgt.DataError) as caught:
                groupgt.evaluate({f"q{number}": [[f"d{number}"]] for number in range(40)}, shaped, ["recall"])
            assert caught.value.faults == (
                f"results of query 'q{at}': the id 'y\\x85' at rank 2 contains the control character U+0085",
            )


def test_texts_and_places_are_no_ids() -> None:
    """A result that is named by its text may hold any letter."""
    run = {"q": [{"text": "one\ntwo\u2028"}, {"text": " "}, {"id": "a"}]}
    assert groupgt.evaluate({"q": [["a"]]}, run, ["mrr"])["mrr"] == 1 / 3
    found = groupgt.evaluate({"q": [[{"text": "one\ntwo"}]]}, {"q": [{"text": "one\ntwo"}]}, ["mrr"], labeller="text")
    assert found["mrr"] == 1


@pytest.mark.parametrize("place", ["{}", "{}a", "a{}b", "a{}", "{}漢", "漢{}é", "😀{}"])
def test_a_glance_at_many_ids_is_sure(place: str) -> None:
    """What a glance lets pass is an id, or one of the two blanks that labelling finds by itself."""
    for code in [*range(0x180), *range(0x1670, 0x1690), *range(0x1FF0, 0x2070), *range(0x2FFF, 0x3010), *ENDS]:
        name = place.format(chr(code))
        if validity.has_plain_letters(f"doc_1{name}doc_2"):
            assert validity.id_fault(name) is None or name in validity.BLANK_IDS
        if name.isascii() and name.isprintable():
            assert validity.has_plain_letters(f"doc_1{name}doc_2")
