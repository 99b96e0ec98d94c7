"""The same bits from lists, files, frames and streams, with ties, repeats and shuffled lines in them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt import native
from groupgt.engines.columns import any_order
from groupgt.formats import source
from groupgt.metrics.language import Metric, parse_metric
from groupgt.testing import at
from tests import laws
from tests.engines import counts_of

EVERY_CUTOFF = at(laws.registered(), (None, 1, 3, 5))
# Quicker: what all metrics share is not asked at each cutoff.
METRICS = [*at(laws.registered(), (None, 3)), *map(parse_metric, ("recall@1", "precision.trec@5", "ndcg.coverage@5"))]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as large: polars reads it."""
    monkeypatch.setattr(source, "SMALL", 0)


def make(
    seed: int, *, ties: bool = False, repeats: bool = False
) -> tuple[dict[str, Any], list[tuple[str, str, float]]]:
    """A ground truth, and rows (qid, doc, score) in order."""
    rng = random.Random(seed)
    truth, rows = {}, []
    for number in range(40):
        qid = f"q{number}"
        pool = [f"d{each}" for each in rng.sample(range(60), 25)]
        truth[qid] = [rng.sample(pool, rng.randint(1, 3)) for _ in range(rng.randint(1, 4))]
        if number % 9 == 0:
            continue  # missing from the run
        ranking = rng.sample(pool, rng.randint(1, 20))
        if repeats:
            ranking += rng.choices(ranking, k=3)
        scores = sorted((rng.choice((1.0, 2.0, 3.0)) if ties else rng.random() for _ in ranking), reverse=True)
        rows += zip([qid] * len(ranking), ranking, scores)
    rows += [("unjudged", "d1", 1.0), ("unjudged", "d2", 0.5)]
    truth["undefined"] = []
    return truth, rows


def as_trec(rows: list[tuple[str, str, float]]) -> str:
    return "".join(f"{qid} Q0 {doc} 0 {score!r} t\n" for qid, doc, score in rows)


def other_frame(kind: str, frame: pl.DataFrame) -> Any:
    """The same frame in another library, where that is installed."""
    library = pytest.importorskip(kind, reason=f"{kind} is in the extra groupgt[frames]")
    make = library.DataFrame if kind == "pandas" else library.table
    return make(frame.to_dict(as_series=False))


def same(first: groupgt.Evaluation, second: groupgt.Evaluation) -> None:
    assert counts_of(first) == counts_of(second)
    for text in first.values:
        assert np.array_equal(first.values[text], second.values[text], equal_nan=True), text


CASES = {
    "sorted": (False, False, False),
    "ties": (True, False, False),
    "repeats": (False, True, False),
    "ties and repeats": (True, True, False),
    "shuffled": (False, False, True),
    "shuffled with ties and repeats": (True, True, True),
}
POLICIES = list(product(("penalize", "drop"), ("id", "input")))
# Of these, each case has the first and the last by default, or the two between.
OUTER = (("penalize", "id"), ("drop", "input"))


def agreeing() -> Iterator[Any]:
    for place, (name, case) in enumerate(CASES.items()):
        for policy in POLICIES:
            title = " ".join((name, *policy))
            if (policy in OUTER) == (place % 2 == 0):
                yield pytest.param(*case, *policy, METRICS, id=title)
            every = f"{title} every cutoff"
            yield pytest.param(*case, *policy, EVERY_CUTOFF, id=every, marks=pytest.mark.property)


@pytest.mark.parametrize(("ties", "repeats", "shuffled", "duplicates", "tie_rule", "metrics"), list(agreeing()))
def test_lists_and_columns_agree(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ties: bool,
    repeats: bool,
    shuffled: bool,
    duplicates: str,
    tie_rule: str,
    metrics: Sequence[Metric],
) -> None:
    truth, rows = make(3, ties=ties, repeats=repeats)
    if shuffled:
        random.Random(5).shuffle(rows)
    file = tmp_path / "run.trec"
    file.write_text(as_trec(rows))
    policy = {"duplicates": duplicates, "ties": tie_rule}
    in_memory = groupgt.evaluate(truth, file, metrics, policy=policy, corpus=laws.WORDS)
    monkeypatch.setattr(source, "SMALL", 0)
    run = groupgt.read_run(file)
    assert not run.in_memory
    same(in_memory, groupgt.evaluate(truth, run, metrics, policy=policy, corpus=laws.WORDS))


@pytest.mark.parametrize("seed", range(5))
def test_shuffling_changes_no_bit(tmp_path: Path, large: None, seed: int) -> None:
    truth, rows = make(seed)
    file, other = tmp_path / "a.trec", tmp_path / "b.trec"
    file.write_text(as_trec(rows))
    random.Random(seed).shuffle(rows)
    other.write_text(as_trec(rows))
    same(
        groupgt.evaluate(truth, file, METRICS, corpus=laws.WORDS),
        groupgt.evaluate(truth, other, METRICS, corpus=laws.WORDS),
    )


def test_which_plan_runs(tmp_path: Path, large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second plan runs exactly where rows are not in order; a scattered query is not taken for two."""
    monkeypatch.setattr(native, "built", None)
    truth, rows = make(1)
    counted = []
    original = any_order.ranked_hits
    monkeypatch.setattr(any_order, "ranked_hits", lambda *given: counted.append(1) or original(*given))
    file = tmp_path / "a.trec"
    file.write_text(as_trec(rows))
    first = groupgt.evaluate(truth, file, METRICS, corpus=laws.WORDS)
    assert counted == []
    half = len(rows) // 2
    file.write_text(as_trec(rows[half:] + rows[:half]))
    same(first, groupgt.evaluate(truth, file, METRICS, corpus=laws.WORDS))
    assert counted == [1]


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "pyarrow", "parquet", "csv", "csv lazy", "jsonl", "rank"])
def test_every_carrier_gives_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    truth, rows = make(2)
    file = tmp_path / "run.trec"
    file.write_text(as_trec(rows))
    expected = groupgt.evaluate(truth, file, METRICS, corpus=laws.WORDS)
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    given: Any = frame
    if kind == "lazy":
        given = frame.lazy()
    elif kind in ("pandas", "pyarrow"):
        given = other_frame(kind, frame)
    elif kind == "parquet":
        given = tmp_path / "run.parquet"
        frame.write_parquet(given)
    elif kind.startswith("csv"):
        given = tmp_path / "run.csv"
        frame.write_csv(given)
        if kind == "csv lazy":
            monkeypatch.setattr(source, "SMALL", 0)
    elif kind == "jsonl":
        given = tmp_path / "run.jsonl"
        frame.write_ndjson(given)
    elif kind == "rank":
        given = frame.with_columns(rank=pl.int_range(pl.len()).over("qid") + 1).drop("score")
    same(expected, groupgt.evaluate(truth, given, METRICS, corpus=laws.WORDS))


def test_nested_frames_keep_their_order() -> None:
    frame = pl.DataFrame({"qid": ["q"], "retrieved_ids": [["x", "a"]], "retrieve_scores": [[0.1, 0.9]]})
    assert groupgt.evaluate({"q": [["a"]]}, frame, ["mrr"])["mrr"] == 0.5


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_ground_truth_of_a_frame(kind: str) -> None:
    columns = {"qid": ["1", "2"], "retrieval_gt": [[["a", "b"], ["c"]], [["d"]]], "type": ["x", "y"]}
    given = pl.DataFrame(columns) if kind == "polars" else other_frame(kind, pl.DataFrame(columns))
    result = groupgt.evaluate(given, {"1": ["a"], "2": ["d"]}, ["recall"], by="type")
    assert result.means == {"recall": 0.75}
    assert [each["means"]["recall"] for each in result.slices] == [0.5, 1.0]


def test_pandas_reads_parquet_as_arrays_of_arrays() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is in the extra groupgt[frames]")
    nested = np.empty(2, dtype=object)
    nested[0], nested[1] = np.array(["a", "b"], dtype=object), np.array(["c"], dtype=object)
    frame = pandas.DataFrame({"qid": ["q"], "retrieval_gt": [nested]})
    assert groupgt.evaluate(frame, {"q": ["b"]}, ["recall"])["recall"] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("shuffled", [False, True])
def test_many_hits_among_many_equal_scores(tmp_path: Path, large: None, shuffled: bool) -> None:
    """Where comparing each result with each hit would not end, sorting finds the same ranks."""
    ids = [f"d{number:04d}" for number in range(2000)]
    rows = [("q", name, float(number // 50)) for number, name in enumerate(ids)]
    (random.Random(1).shuffle if shuffled else list)(rows)
    truth = {"q": [[name] for name in ids[::7]]}
    file = tmp_path / "run.trec"
    file.write_text(as_trec(rows))
    ordered = sorted(rows, key=lambda row: (-row[2], [-ord(letter) for letter in row[1]]))
    same_values = groupgt.evaluate(truth, {"q": [name for _, name, _ in ordered]}, METRICS, corpus=laws.WORDS)
    found = groupgt.evaluate(truth, file, METRICS, corpus=laws.WORDS)
    for text in found.values:
        assert np.array_equal(found.values[text], same_values.values[text], equal_nan=True), text


def test_integer_ids_are_their_decimal_text_on_both_sides() -> None:
    frame = pl.DataFrame({"qid": [1, 1], "doc_id": [7, 8], "score": [2, 1]})
    assert groupgt.evaluate({"1": [["8"]]}, frame, ["mrr"])["mrr"] == 0.5
    assert groupgt.evaluate({1: [[8]]}, {1: [7, 8]}, ["mrr"])["mrr"] == 0.5
    assert groupgt.evaluate({"1": [["8"]]}, {"1": ["7", np.int64(8)]}, ["mrr"])["mrr"] == 0.5


@pytest.mark.parametrize("bad", [1.0, True, None, b"a", ["a", "b", "c"]])
def test_what_is_no_id_is_an_error_wherever_it_stands(bad: Any) -> None:
    with pytest.raises(groupgt.DataError, match="'q'"):
        groupgt.evaluate({"q": [["a"]]}, {"q": ["a", "b", bad]}, ["mrr"])
    with pytest.raises(groupgt.DataError, match="'q'"):
        groupgt.evaluate({"q": [["a", bad if bad is not None else 2.5]]}, {"q": ["a"]}, ["mrr"])


def test_scores_do_not_reorder_lists_but_order_mappings() -> None:
    truth = {"q": [["a"]]}
    assert groupgt.evaluate(truth, {"q": [("b", 0.1), ("a", 0.9)]}, ["mrr"])["mrr"] == 0.5
    assert groupgt.evaluate(truth, {"q": {"b": 0.1, "a": 0.9}}, ["mrr"])["mrr"] == 1
    # Equal scores: the greater id first, as in trec_eval; or the order given.
    assert groupgt.evaluate(truth, {"q": {"a": 1, "b": 1}}, ["mrr"])["mrr"] == 0.5
    assert groupgt.evaluate(truth, {"q": {"a": 1, "b": 1}}, ["mrr"], policy={"ties": "input"})["mrr"] == 1


@pytest.mark.parametrize("score", [float("nan"), float("inf"), "high", True])
def test_a_score_that_is_no_finite_number_is_an_error(score: Any) -> None:
    with pytest.raises(groupgt.DataError, match="score"):
        groupgt.evaluate({"q": [["a"]]}, {"q": {"a": score}}, ["mrr"])
    with pytest.raises(groupgt.DataError, match="score"):
        groupgt.evaluate({"q": [["a"]]}, {"q": [("a", score)]}, ["mrr"])


def test_garbage_collection_is_restored_after_an_error() -> None:
    import gc

    assert gc.isenabled()
    with pytest.raises(groupgt.DataError):
        groupgt.evaluate({"q": [["a"]]}, {"q": [None]}, ["mrr"])
    assert gc.isenabled()


def test_a_long_ranking_of_repeats() -> None:
    ids = ["a", "x"] * 1000 + ["b"]
    result = groupgt.evaluate(
        {"q": [["a"], ["b"]]}, {"q": ids}, ["recall", "hits", "mrr", "recall@2000", "recall@2001"]
    )
    assert list(result.means.values()) == [1, 2, (1 + 1 / 2001) / 2, 0.5, 1]
    assert result.counts["duplicates"] == 1


def test_many_relevant_results_take_the_other_way() -> None:
    ids = [f"d{number}" for number in range(50)]
    for ranking in (ids, ids + ids[:3]):
        result = groupgt.evaluate({"q": [[each] for each in ids]}, {"q": ranking}, ["recall", "complete@50"])
        assert list(result.means.values()) == [1, 1]
