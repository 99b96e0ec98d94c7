"""Warnings of results that look like those of something else."""

from __future__ import annotations

import pytest

import groupgt


def test_nearly_matching_ids_are_shown_as_a_pair() -> None:
    for ours, theirs in (("Doc-1", "doc-1"), ("doc", "doc "), ("\u00e9", "e\u0301"), ("7", "7.0"), ("7", "007")):
        with pytest.warns(groupgt.GroupgtWarning, match="nearly match"):
            groupgt.evaluate({"q": [[ours]]}, {"q": [theirs]}, ["recall"])
    with pytest.warns(groupgt.GroupgtWarning, match="query ids nearly match"):
        groupgt.evaluate({"Q": [["a"]]}, {"q": ["a"]}, ["recall"])


def test_results_of_another_corpus_are_pointed_out() -> None:
    truth = {f"q{number}": [[f"d{number}"]] for number in range(12)}
    with pytest.warns(groupgt.GroupgtWarning, match="from the same corpus"):
        groupgt.evaluate(truth, {qid: ["elsewhere"] for qid in truth}, ["recall"])


CHUNKS = {"c1": ("d", 0, 40), "c2": ("d", 40, 80), "c3": ("d", 80, 400)}


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 2),
        ({"joint": True}, 1),
        ({"min_overlap": 0.3}, 1),
        ({"of": "union"}, 3),
    ],
)
def test_alternatives_that_no_result_can_hit_are_told(options: dict[str, object], count: int) -> None:
    spans = [(0, 80), (90, 200), (350, 900), (0, 100)]  # of which chunks cover halves, all, 50 of 550, and 40 of 100
    truth = {"q": [[{"doc": "d", "start": start, "end": end} for start, end in spans]]}
    labeller = {"use": "spans", "with": {"chunks": CHUNKS, "min_overlap": 0.5, **options}}
    with pytest.warns(groupgt.GroupgtWarning, match=rf"{count} of 4 alternatives can be hit by no result, such as"):
        groupgt.evaluate(truth, {"q": ["c3"]}, ["recall"], labeller=labeller)


def test_texts_that_are_longer_than_every_passage_are_told() -> None:
    truth = {"q": [[{"text": "one two three four"}, {"text": "one two"}]]}
    labeller = {"use": "text", "with": {"corpus": {"c": "one two three"}}}
    with pytest.warns(groupgt.GroupgtWarning, match="1 of 2 alternatives can be hit by no result, such as .*'q'; comp"):
        groupgt.evaluate(truth, {"q": ["c"]}, ["recall"], labeller=labeller)
