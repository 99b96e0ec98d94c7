"""Places that overlap, and what covers them together, over numbers small enough to count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.evaluation.sources import labeller_of
from groupgt.labellers import spans
from groupgt.labellers.base import Results
from groupgt.labellers.spans import Places, first_covered, overlapping
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Ints


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def hits(groups: list[Any], ranking: list[Any], **options: Any) -> list[Any]:
    """A row for each group: which results hit it."""
    labeller = {"use": "spans", "with": options}
    found: list[Any] = groupgt.label(groups, ranking, labeller=labeller, groups=True).tolist()
    return found


def span(start: int, end: int, doc: str = "d") -> dict[str, Any]:
    return {"doc": doc, "start": start, "end": end}


@pytest.mark.parametrize("block", [1, 2, 4_000_000])
def test_each_pair_that_overlaps_comes_once(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """[0, 4) meets what begins where it does, within it and before it, and not what ends or begins at its bounds."""
    monkeypatch.setattr(spans, "BLOCK", block)
    left = Places(ints(0, 0), ints(0, 4), ints(4, 6))
    right = Places(ints(0, 0, 0, 1), ints(0, 2, 4, 0), ints(1, 5, 5, 9))
    pairs = [pair for rows, places in overlapping(left, right) for pair in zip(rows.tolist(), places.tolist())]
    # [4, 6) meets [2, 5), which begins before it, and [4, 5); [0, 9) lies in another document.
    assert sorted(pairs) == [(0, 0), (0, 1), (1, 1), (1, 2)]


@pytest.mark.parametrize("block", [1, 2, 4_000_000])
def test_pieces_cover_their_owners_together(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that two pieces cover count once, and for each owner by itself, however many pairs are looked at a time."""
    monkeypatch.setattr(spans, "BLOCK", block)
    owner, low, high = ints(0, 1, 0, 1, 0), ints(0, 0, 2, 3, 3), ints(4, 3, 6, 5, 8)
    # Owner 0: [0, 4) has 4, with [2, 6) 6, with [3, 8) 8. Owner 1: [0, 3) has 3, with [3, 5) 5.
    for need, rows in (((4, 3), [0, 1]), ((5, 4), [2, 3]), ((6, 5), [2, 3]), ((7, 6), [4]), ((9, 3), [1])):
        row, of = first_covered(owner, low, high, ints(*need))
        assert sorted(row.tolist()) == rows
        assert of.tolist() == [int(owner[place]) for place in row]


def test_results_are_joined_with_the_places_of_their_own_query() -> None:
    """p wants of d and f, q of e: what a query's results say of another document, judged or not, hits nothing."""
    truth = {"p": [[span(0, 10, "d")], [span(0, 10, "f")]], "q": [[span(0, 10, "e")]]}
    run = {qid: [{"id": doc, **span(0, 10, doc)} for doc in "xde"] for qid in "pq"}
    found = groupgt.evaluate(truth, run, ["mrr"], labeller="spans")
    # p meets one of its two groups at rank 2, q its only one at rank 3.
    assert found.values["mrr"].tolist() == [(1 / 2 + 0) / 2, 1 / 3]


def test_what_results_carry_matches_alternatives_of_their_query_alone() -> None:
    """Both queries want of d and of e, the alternatives 0 and 1, 2 and 3; x was not judged."""
    labeller = labeller_of("spans")
    groups = [[span(0, 10, "d")], [span(0, 10, "e")]]
    names = ["d[0:10]", "x[0:10]", "d[0:10]", "e[0:10]", "x[0:10]"]
    carried = Results(ints(0, 0, 1, 1, 1), names, [None] * 5)
    matches = labeller.match(labeller.read(GroundTruth.of({"p": groups, "q": groups})), carried)
    assert (matches.queries.tolist(), matches.keys) == ([0, 1, 1], ["d[0:10]", "d[0:10]", "e[0:10]"])
    assert (matches.starts.tolist(), matches.alternatives.tolist()) == ([0, 1, 2, 3], [0, 2, 3])


def test_results_that_carry_no_place_are_refused() -> None:
    """A page is one place; no character is none."""
    run = [{"id": "a", **span(5, 5)}]
    with pytest.raises(groupgt.DataError, match=r"result 'd\[5:5\]': expected an end after its start, found 5 to 5"):
        hits([[span(0, 10)]], run)
    assert hits([[span(5, 6)]], run, unit="pages") == [[1]]


def test_the_share_that_results_must_cover_together_is_rounded_up() -> None:
    """.61 of 10 characters are 6.1, which 6 do not reach and 7 do; pages have both their ends."""
    results = [{"id": "a", **span(0, 4)}, {"id": "b", **span(2, 6)}, {"id": "c", **span(6, 7)}]
    assert hits([[span(0, 10)]], results, joint=True, min_overlap=0.6) == [[0, 1, 0]]
    assert hits([[span(0, 10)]], results, joint=True, min_overlap=0.61) == [[0, 0, 1]]
    pages = [{"id": "a", **span(1, 1)}, {"id": "b", **span(2, 3)}]
    assert hits([[span(1, 4)]], pages, joint=True, min_overlap=0.75, unit="pages") == [[0, 1]]


def test_a_chunk_table_gives_the_same_matches_to_every_query() -> None:
    """q wants [0, 5) and [0, 10) of the document, p its last half: both have the only chunk that is of it."""
    truth = GroundTruth.of({"p": [[span(5, 10)]], "q": [[span(0, 5)], [span(0, 10)]]})
    for chunks in ({"c": ("d", 0, 10)}, {"x": ("other", 0, 10), "c": ("d", 0, 10), "y": ("another", 0, 10)}):
        labeller = labeller_of({"use": "spans", "with": {"chunks": chunks}})
        assert isinstance(labeller, spans.Spans)
        matches = labeller.match(labeller.read(truth), None)
        assert (matches.keys, matches.queries.tolist()) == (["c", "c"], [0, 1])
        assert matches.bounds == [0, 1, 2]
        assert (matches.starts.tolist(), matches.alternatives.tolist()) == ([0, 1, 3], [0, 1, 2])
        assert (matches.low.tolist(), matches.high.tolist()) == ([5, 0, 0], [10, 5, 10])


def test_chunks_of_documents_that_nobody_judged_hit_nothing() -> None:
    chunks = {"x": ("other", 0, 10), "d1": ("d", 0, 10), "e1": ("e", 0, 10)}
    truth = [[span(0, 10, "d")], [span(0, 10, "e")]]
    assert hits(truth, ["x", "e1", "d1"], chunks=chunks) == [[0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("options", [{}, {"chunks": {"a": ("d", 0, 4)}}])
def test_a_query_that_wants_nothing_is_not_defined(options: dict[str, Any]) -> None:
    labeller = {"use": "spans", "with": options}
    found = groupgt.evaluate({"q": []}, {"q": [{"id": "a", **span(0, 4)}]}, ["recall"], labeller=labeller)
    assert np.isnan(found.values["recall"]).all()


@pytest.mark.parametrize(("of", "share"), [("alternative", 4 / 8), ("result", 4 / 6), ("union", 4 / 10)])
def test_what_the_share_is_of(of: str, share: float) -> None:
    """[1, 7) and [3, 11) have 4 in common: of 8, of 6, and of the 6 + 8 − 4 of both."""
    results = [{"id": "a", **span(1, 7)}]
    assert hits([[span(3, 11)]], results, of=of, min_overlap=share - 1e-6) == [[1]]
    assert hits([[span(3, 11)]], results, of=of, min_overlap=share + 1e-6) == [[0]]


def test_the_least_share_is_a_millionth() -> None:
    """One character of a million is enough for it, and one of a million and one is not."""
    results = [{"id": "a", **span(0, 1)}]
    assert hits([[span(0, 1_000_000)], [span(0, 1_000_001)]], results, min_overlap=1e-6) == [[1], [0]]
