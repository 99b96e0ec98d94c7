"""The order of results is written once in each carrier; on ties, repeats and other names all give the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.engines.base import Labelled
from groupgt.engines.carriers import all_rankings, carrier_of, local_carrier_of, renamed
from groupgt.engines.choice import Engine
from groupgt.engines.columns import reader
from groupgt.evaluation.sources import labeller_of
from groupgt.model.policy import Policy

QIDS = ("q", "r", "unjudged")
# Bytes order them otherwise than letters would.
DOCS = ("a", "b", "B", "é", "z", "𝛼", "\uff5a")
ROWS = st.lists(
    st.tuples(st.sampled_from(QIDS), st.sampled_from(DOCS), st.sampled_from((-1.5, -0.0, 0.0, 2.0))), max_size=24
)
GROUPS = st.lists(st.lists(st.sampled_from(DOCS), min_size=1, max_size=3, unique=True), min_size=1, max_size=3)
POLICIES = st.builds(
    Policy, duplicates=st.sampled_from(("penalize", "drop", "keep")), ties=st.sampled_from(("id", "input"))
)
# Several documents have one parent, so that results repeat once they are renamed.
LABELLERS = {"id": "id", "parents": {"use": "parents", "with": {"mapping": {doc: doc.lower() for doc in DOCS}}}}
Rows = list[tuple[str, str, float]]


def as_lists(rows: Rows) -> groupgt.Run:
    rankings: dict[str, list[str]] = {}
    scores: dict[str, list[float]] = {}
    for qid, doc, score in rows:
        rankings.setdefault(qid, []).append(doc)
        scores.setdefault(qid, []).append(score)
    return groupgt.Run.of(rankings, scores=scores)


def as_columns(rows: Rows) -> groupgt.Run:
    schema = {"qid": pl.String, "doc_id": pl.String, "score": pl.Float64}
    return groupgt.read_run(pl.DataFrame(rows, schema=schema, orient="row"))


def by_hand(rows: Rows, policy: Policy) -> dict[str, list[str]]:
    """A stable sort by score, under `ties=id` by bytes of the id before it; of repeats the first, where asked."""
    found: dict[str, list[str]] = {}
    ordered = list(rows)
    if policy.ties == "id":
        ordered.sort(key=lambda row: row[1].encode(), reverse=True)
    ordered.sort(key=lambda row: -row[2])
    for qid, doc, _ in ordered:
        found.setdefault(qid, []).append(doc)
    return {qid: list(dict.fromkeys(ids)) if policy.duplicates == "drop" else ids for qid, ids in found.items()}


def as_nested(rows: Rows, policy: Policy) -> groupgt.Run:
    """One row per query, whose order rules."""
    rankings = by_hand(rows, replace(policy, duplicates="keep"))
    columns = {"qid": list(rankings), "retrieved_ids": list(rankings.values())}
    return groupgt.read_run(pl.DataFrame(columns, schema={"qid": pl.String, "retrieved_ids": pl.List(pl.String)}))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of five rows: blocks of equal scores span them."""
    monkeypatch.setattr(reader, "MOST_ROWS", 5)
    monkeypatch.setattr(reader, "FEWEST_ROWS", 5)


def seen(labelled: Labelled, *, ties: bool = True) -> list[Any]:
    """The hits, and what was noted on the way; blocks of equal scores are known only where there are scores."""
    hits, size = labelled.hits, len(labelled.present)
    found: list[Any] = [hits.query, hits.rank, hits.alternative, hits.repeat, hits.length, labelled.present]
    found += [labelled.extra, labelled.duplicated, labelled.no_match]
    if ties:
        found += [labelled.tied_at([depth]) for depth in (None, np.full(size, 1), np.full(size, 3))]
    return [each.tolist() if isinstance(each, np.ndarray) else each for each in found]


def labelled(truth: groupgt.GroundTruth, run: groupgt.Run, name: str, policy: Policy) -> tuple[groupgt.Run, Labelled]:
    labeller = labeller_of(LABELLERS[name])
    grouped = labeller.read(truth)
    run = renamed(grouped, run, labeller, policy)
    return run, carrier_of(run).label(grouped, labeller, policy, Engine())


@pytest.mark.filterwarnings("ignore:.*the file is empty")
@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("name", sorted(LABELLERS))
@given(rows=ROWS, groups=st.tuples(GROUPS, GROUPS), policy=POLICIES)
def test_every_carrier_has_one_order(name: str, rows: Rows, groups: Any, policy: Policy) -> None:
    truth = groupgt.GroundTruth.of(dict(zip(QIDS, groups)))
    lists, expected = labelled(truth, as_lists(rows), name, policy)
    columns, found = labelled(truth, as_columns(rows), name, policy)
    assert seen(found) == seen(expected)
    _, nested = labelled(truth, as_nested(rows, policy), name, policy)
    assert seen(nested, ties=False) == seen(expected, ties=False)
    flats = [local_carrier_of(run, "rows").flat(truth, policy) for run in (lists, columns)]
    for column in ("query", "rank"):
        assert np.array_equal(*(getattr(flat, column) for flat in flats)), column
    assert flats[0].ids == flats[1].ids


@given(rows=ROWS, policy=POLICIES)
def test_rankings_are_those_by_hand(rows: Rows, policy: Policy) -> None:
    truth = groupgt.GroundTruth.of({qid: [["a"]] for qid in QIDS})
    expected, whole = by_hand(rows, policy), by_hand(rows, replace(policy, duplicates="keep"))
    for run in (as_lists(rows), as_columns(rows)):
        assert {qid: ids for qid, (ids, _) in all_rankings(run, policy)} == whole
        assert {qid: carrier_of(run).ranking(qid, policy)[0] for qid in expected} == expected
        flat = local_carrier_of(run, "rows").flat(truth, policy)
        assert flat.ids == [name for qid in QIDS for name in expected.get(qid, [])]
        assert flat.sizes(len(QIDS)).tolist() == [len(expected.get(qid, [])) for qid in QIDS]
        assert flat.rank.tolist() == [at for qid in QIDS for at in range(1, len(expected.get(qid, [])) + 1)]
        assert [qid for qid, _ in all_rankings(run, policy)] == list(dict.fromkeys(qid for qid, _, _ in rows))
