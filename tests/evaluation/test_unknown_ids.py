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
