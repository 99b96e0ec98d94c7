"""`compare`: systems are found by any spelling, seeds fix all bits, what cannot be compared is refused."""

from __future__ import annotations

import math
import random

import pytest

import groupgt
from groupgt import ConfigError, DataError
from tests.comparison.samples import QUERIES, TRUTH, run_of
from tests.snapshots import Snapshot


def test_rows_are_found_by_any_spelling(table: groupgt.Comparison, snapshot: Snapshot) -> None:
    assert table["better"]["recall.autorag@2"] is table["better"]["recall@2"]
    with snapshot.raises(ConfigError):
        table["better"]["recall@3"]
    with snapshot.raises(ConfigError):
        table["beter"]


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    rng = random.Random(1)
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.5)}

    def figures(seed: int) -> list[float]:
        row = groupgt.compare(TRUTH, runs, ["mrr"], seed=seed, test="bootstrap", resamples=500)["b"]["mrr"]
        return [*row.interval, *row.delta_interval, row.p_value]

    assert figures(1) == figures(1)
    assert figures(1) != figures(2)


def test_nothing_that_counts_is_no_number() -> None:
    table = groupgt.compare({"q": []}, {"a": {"q": ["x"]}, "b": {"q": ["y"]}}, ["recall"])
    row = table["b"]["recall"]
    assert math.isnan(row.p_value)
    assert row.pairs == 0
    plain = table.to_dict()["rows"][1]
    assert plain["mean"] is plain["interval"] is plain["against_baseline"]["p_value"] is None
    assert "–" in str(table)


def test_every_two_systems() -> None:
    rng = random.Random(4)
    runs = {name: run_of(rng, quality) for name, quality in (("a", 0.0), ("b", 0.5), ("c", 0.9))}
    table = groupgt.compare(TRUTH, runs, ["mrr"], pairs=True, resamples=999)
    assert [(pair.first, pair.second) for pair in table.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    against = {pair.second: pair for pair in table.pairs if pair.first == "a"}
    for name in ("b", "c"):
        assert against[name].against.delta == -table[name]["mrr"].delta
        assert against[name].against.raw_p_value == table[name]["mrr"].raw_p_value
        # The largest of all pairs is at least as far as that of one pair.
        assert against[name].against.p_value >= against[name].against.raw_p_value
    assert "p (step-down maximum)" in str(table)


def test_runs_that_cannot_be_told_apart(tmp_path, snapshot: Snapshot) -> None:
    (tmp_path / "bm25.trec").write_text("q Q0 a 1 1 t\n")
    with snapshot.raises(DataError):
        groupgt.compare({"q": [["a"]]}, [tmp_path / "bm25.trec", tmp_path / "bm25.trec"], ["recall"])
    for runs in ({}, {"one": {"q": ["a"]}}):
        with snapshot.raises(ConfigError):
            groupgt.compare({"q": [["a"]]}, runs, ["recall"])
    for runs in (None, "bm25.trec", 5):
        with pytest.raises(ConfigError, match="runs: expected"):
            groupgt.compare({"q": [["a"]]}, runs, ["recall"])  # type: ignore[arg-type]


def test_shapes_of_the_public_parts(table: groupgt.Comparison) -> None:
    assert table.per_query.columns == ["run", "qid", "recall@2", "mrr.trec", "complete@2"]
    assert table.per_query.height == 3 * len(QUERIES)
    assert "<table>" in table._repr_html_()
    assert repr(table) == "Comparison(plain, better, same; baseline plain; recall@2, mrr.trec, complete@2)"
    assert table.table("github").startswith("| recall@2")
