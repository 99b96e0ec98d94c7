"""Search calls: results that carry one are ordered by it first, and `@2calls` is a prefix, from every carrier."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt import native
from groupgt.engines.calls import _composed, calls_of, in_call_order
from groupgt.engines.carriers import all_rankings, carrier_of
from groupgt.formats import frames, source
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.policy import Policy
from groupgt.model.values import Budget
from tests import laws, reference
from tests.agreement import TOLERANCE, all_metrics, random_query
from tests.engines.test_budgets import slow
from tests.metrics.test_worksheet import evaluated

Found = list[tuple[str, int]]

TRUTH = {"q": [["a"], ["b", "c"]], "r": [["d"]], "s": [["a"]]}
# q: a in call 1, c in call 3; r: d in call 2; s: no results.
RUN: dict[str, Any] = {
    "q": [("a", 1), ("x", 1), ("a", 2), ("c", 3), ("b", 3)],
    "r": [("x", 2), ("d", 2)],
    "s": [],
}
WORKED = [
    ("complete@1calls", [0, 0, 0]),
    ("complete@2calls", [0, 1, 0]),  # q's prefix is a, x, a
    ("complete@3calls", [1, 1, 0]),
    ("recall@1calls", [1 / 2, 0, 0]),  # r's first call found nothing
    ("precision@2calls", [1 / 3, 1 / 2, 0]),  # a, x, a: the repeat is no hit; x, d
    ("precision.trec@1calls", [1 / 2, 0, 0]),  # k is the length of the prefix: 2, 0, 0
    ("mrr@2calls", [1 / 2, 1 / 2, 0]),  # (1 + 0) ÷ 2; 1 ÷ 2
    ("completion_rr@3calls", [1 / 4, 1 / 2, 0]),
    ("hits@9calls", [3, 1, 0]),
]


def mappings(run: Mapping[str, Sequence[tuple[str, int]]]) -> dict[str, list[dict[str, Any]]]:
    return {qid: [{"id": name, "call": call} for name, call in found] for qid, found in run.items()}


@pytest.mark.parametrize(("text", "expected"), WORKED)
def test_worked_figures(text: str, expected: list[float]) -> None:
    found = groupgt.evaluate(TRUTH, mappings(RUN), [text])
    assert found.values[text].tolist() == pytest.approx(expected, abs=1e-15)


def test_without_repeats_a_call_shows_what_is_new() -> None:
    asked = ["precision@2calls", "precision@3calls", "redundancy@2calls"]
    found = groupgt.evaluate(TRUTH, mappings(RUN), asked, policy={"duplicates": "drop"})
    # a, x | nothing new in call 2 | c, b
    assert [found.values[text][0] for text in asked] == [1 / 2, 3 / 4, 0]


def test_depth_in_calls() -> None:
    depths = groupgt.depth(TRUTH, mappings(RUN), [1 / 3, 2 / 3, 1.0], unit="calls")
    assert [each.depth for each in depths] == [2, 3, None]


def test_calls_may_skip_numbers_and_begin_late() -> None:
    run = mappings({"q": [("x", 4), ("a", 4), ("b", 9)]})
    found = groupgt.evaluate({"q": TRUTH["q"]}, run, [f"recall@{n}calls" for n in (1, 3, 4, 8, 9, 10**12)])
    assert list(found.means.values()) == [0, 0, 1 / 2, 1 / 2, 1, 1]


def test_a_run_without_results_needs_no_calls() -> None:
    assert groupgt.evaluate(TRUTH, {"q": [], "r": []}, ["recall@2calls"]).means == {"recall@2calls": 0}


# ---- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranking", "what"),
    [
        (
            [{"id": "a", "call": 2}, {"id": "b", "call": 1}],
            "rank 2 is from call 1, but the previous result is from call 2",
        ),
        ([{"id": "a", "call": 1}, {"id": "b"}], "for each of 2 results, found 1"),
        ([{"id": "a"}, {"id": "b", "call": 1}], "for each of 2 results, found 1"),
        (["a", {"id": "b", "call": 1}], "for each of 2 results, found 1"),
        (np.array(["a", {"id": "b", "call": 1}], dtype=object), "for each of 2 results, found 1"),
        ([({"id": "a", "call": 2}, 0.5), ({"id": "b", "call": 1}, 0.9)], "rank 2 is from call 1"),
        (({"id": "a", "call": 1}, "b"), "for each of 2 results, found 1"),
        ([{"id": "a", "call": 0}], "found 0"),
        ([{"id": "a", "call": -1}], "found 0"),
        ([{"id": "a", "call": 1.5}], "found 0"),
        ([{"id": "a", "call": True}], "found 0"),
        ([{"id": "a", "call": None}], "found 0"),
        ([{"id": "a", "call": 10**13}], "found 0"),
        (["a", "b"], "for each of 2 results, found 0"),
        ({"a": 0.5}, "for each of 1 results, found 0"),
    ],
    ids=str,
)
def test_calls_that_are_none(ranking: Any, what: str) -> None:
    run = {"q": ranking, "r": [{"id": "d", "call": 1}]}
    for metric in ("recall@2calls", "recall@5", "mrr"):
        with pytest.raises(groupgt.DataError, match=f"query 'q': .*{what}"):
            groupgt.evaluate(TRUTH, run, [metric])


@pytest.mark.parametrize("policy", ["default", "trec"])
def test_a_call_between_plain_ids_is_not_passed_over(policy: str) -> None:
    with pytest.raises(groupgt.DataError, match=r"query 'q': expected a call .* for each of 3 results, found 1"):
        groupgt.evaluate({"q": [["b"]]}, {"q": ["a", {"id": "b", "call": 2}, "c"]}, ["mrr"], policy=policy)


def test_numbers_of_numpy_are_calls() -> None:
    run = {"q": [{"id": "a", "call": np.int64(1)}, {"id": "b", "call": np.int32(2)}]}
    assert groupgt.evaluate({"q": TRUTH["q"]}, run, ["recall@1calls"]).means == {"recall@1calls": 1 / 2}


def test_results_without_calls_cannot_be_cut_by_them() -> None:
    with pytest.raises(
        groupgt.DataError,
        match=r"the call number of every result, but these results have no call numbers; add a call column",
    ):
        groupgt.evaluate(TRUTH, {"q": ["a"]}, ["recall@2calls"])
    with pytest.raises(groupgt.DataError, match="but these results have no call numbers"):
        groupgt.depth(TRUTH, {"q": ["a"]}, unit="calls")


def test_calls_are_no_lengths_of_documents() -> None:
    with pytest.raises(groupgt.ConfigError, match="tokens or chars"):
        groupgt.evaluate(TRUTH, mappings(RUN), ["recall@2calls"], lengths={"calls": {"a": 1}})


@pytest.mark.parametrize("text", ["recall@0calls", "recall@2call", "recall@calls", "recall@2rounds"])
def test_cutoffs_that_are_none(text: str) -> None:
    with pytest.raises(groupgt.MetricError, match="the cutoff must be at least 1" if "@0" in text else "@2calls"):
        parse_metric(text)


def rows(*cells: Any) -> list[dict[str, Any]]:
    return [{"qid": "q", "doc_id": f"d{n}", "score": 9 - n, "call": cell} for n, cell in enumerate(cells)]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "frame"])
@pytest.mark.parametrize(
    ("cells", "place", "number"),
    [((1, 0), "0", 2), ((1, None), "", 2), ((1.5, 1), "1.5", 1), ((1, -3), "-3", 2), ((None, None), "", 1)],
    ids=str,
)
def test_rows_whose_call_is_none(
    kind: str, large: bool, cells: Any, place: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(source, "SMALL", 0)
    run, where = written(kind, rows(*cells), tmp_path)
    line = number + (kind == "csv")
    with pytest.raises(groupgt.DataError, match="expected a whole number from 1 as the call, found") as caught:
        groupgt.evaluate({"q": [["d0"]]}, run, ["mrr"])
    assert place in str(caught.value)
    if where:
        assert f"{where}:{line}" in str(caught.value) or f"{where}: row {line}" in str(caught.value)


def written(kind: str, table: list[dict[str, Any]], folder: Path) -> tuple[Any, str]:
    """Rows as a file or a frame, and the name of the file."""
    frame = pl.DataFrame(table, infer_schema_length=None)
    if kind == "frame":
        return frame, ""
    file = folder / f"run.{kind}"
    if kind == "csv":
        frame.write_csv(file)
    elif kind == "parquet":
        frame.write_parquet(file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in table))
    return file, str(file)


def test_frames_whose_calls_are_no_numbers() -> None:
    with pytest.raises(groupgt.DataError, match="expected whole numbers in the 'call' column, found Boolean"):
        groupgt.evaluate({"q": [["d0"]]}, pl.DataFrame(rows(True, True)), ["mrr"])


def test_a_line_without_a_call(tmp_path: Path) -> None:
    table = rows(1, 1)
    del table[1]["call"]
    file, _ = written("jsonl", table, tmp_path)
    with pytest.raises(groupgt.DataError, match=r"query 'q': expected a call .* for each of 2 results, found 1"):
        groupgt.evaluate({"q": [["d0"]]}, file, ["mrr"])


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        ([2, 1], "rank 2 is from call 1"),
        ([1], "for each of 2 results, found 1"),
        (["x", 1], "found 1"),
        ("x", "found 0"),
    ],
    ids=str,
)
def test_lists_whose_calls_are_none(cells: Any, what: str, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text(json.dumps({"qid": "q", "retrieved_ids": ["a", "b"], "retrieved_calls": cells}) + "\n")
    with pytest.raises(groupgt.DataError, match=f"run.jsonl:1: query 'q': .*{what}"):
        groupgt.evaluate({"q": [["a"]]}, file, ["mrr"])
    if isinstance(cells, list) and all(isinstance(cell, int) for cell in cells):
        frame = pl.DataFrame({"qid": ["q"], "retrieved_ids": [["a", "b"]], "retrieved_calls": [cells]})
        with pytest.raises(groupgt.DataError, match=f"query 'q': .*{what}"):
            groupgt.evaluate({"q": [["a"]]}, frame, ["mrr"])


@pytest.mark.parametrize("large", [False, True])
def test_parts_of_which_one_has_no_calls(large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if large:
        monkeypatch.setattr(source, "SMALL", 0)
    (tmp_path / "1.csv").write_text("qid,doc_id,score,call\nq,a,1,1\n")
    (tmp_path / "2.csv").write_text("qid,doc_id,score\nq,b,1\n")
    with pytest.raises(
        groupgt.DataError, match=r"for each of 2 results, found 1|some files have calls and some do not"
    ):
        groupgt.evaluate({"q": [["a"]]}, tmp_path, ["mrr"], parts=True)


# ---- the slow loop ----------------------------------------------------------------------------------------------


def random_calls(seed: int, queries: int) -> dict[str, tuple[list[Any], Found]]:
    """Random queries, whose results were found in up to four calls."""
    rng = random.Random(seed)
    batch = {}
    for number in range(queries):
        groups, ranking = random_query(rng)
        batch[f"q{number}"] = groups, list(zip(ranking, sorted(rng.choices((1, 2, 3, 5), k=len(ranking)))))
    return batch


def cuttable() -> list[Metric]:
    return [each for each in all_metrics() if each.definition.takes_cutoff and not each.reads_all]


def at(metric: Metric, call: int) -> Metric:
    return Metric(metric.name, metric.convention, metric.parameters, Budget(call, "calls"))


def values(batch: Mapping[str, tuple[list[Any], Found]], metrics: list[Metric], duplicates: str) -> Any:
    truth = {qid: groups for qid, (groups, _) in batch.items()}
    run = mappings({qid: found for qid, (_, found) in batch.items()})
    result = groupgt.evaluate(truth, run, metrics, policy={"duplicates": duplicates}, corpus=laws.WORDS)
    return {metric: result.values[text] for text, metric in result.metrics.items()}


@pytest.mark.parametrize(
    "duplicates", ["drop", *(pytest.param(each, marks=pytest.mark.slow) for each in ("penalize", "keep"))]
)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.property)])
def test_every_metric_is_that_of_the_prefix(seed: int, duplicates: str) -> None:
    batch = random_calls(seed, 50)
    metrics = [each for each in cuttable() if duplicates != "keep" or each.convention == "autorag"]
    sizes = set()
    for metric, column in values(batch, [at(each, n) for each in metrics for n in (1, 2, 4, 5)], duplicates).items():
        for (_, (groups, found)), value in zip(batch.items(), column):
            assert metric.budget is not None
            prefix = reference.before_later_calls(found, metric.budget.amount, duplicates)
            sizes.add((len(prefix), len(prefix) < len(found)))
            expected = slow(groups, prefix, metric, duplicates)
            assert (expected is None) == bool(np.isnan(value)), (metric, groups, found)
            assert expected is None or abs(expected - value) <= TOLERANCE * max(1.0, abs(expected)), (metric, found)
    assert {(0, True), (0, False), (3, True), (5, False)} <= sizes


# ---- laws -------------------------------------------------------------------------------------------------------


def same(first: Any, second: Any) -> Any:
    return (first == second) | (np.isnan(first) & np.isnan(second))


@pytest.mark.parametrize("duplicates", ["penalize", "drop"])
def test_later_calls_change_no_bit(duplicates: str) -> None:
    batch = random_calls(2, 60)
    rng = random.Random(3)
    names = sorted({name for _, found in batch.values() for name, _ in found})
    longer = {
        qid: (groups, [*found, *((name, rng.choice((6, 7))) for name in rng.choices(names, k=3))])
        for qid, (groups, found) in batch.items()
    }
    longer = {qid: (groups, sorted(found, key=lambda result: result[1])) for qid, (groups, found) in longer.items()}
    asked = [at(metric, call) for metric in cuttable() for call in (1, 3, 5)]
    first, second = values(batch, asked, duplicates), values(longer, asked, duplicates)
    for metric in asked:
        assert same(first[metric], second[metric]).all(), metric


def test_the_last_call_is_the_whole_ranking() -> None:
    """To the bit, but for ndcg.autorag, whose ideal is cut at the length of the list where nothing else is."""
    batch = random_calls(4, 60)
    columns = values(batch, [each for metric in cuttable() for each in (metric, at(metric, 5))], "penalize")
    for metric in cuttable():
        alike = same(columns[metric], columns[at(metric, 5)]).all()
        assert alike or (metric.name, metric.convention) == ("ndcg", "autorag"), metric


def test_more_calls_never_find_less() -> None:
    batch = random_calls(5, 60)
    ladder = {metric: [at(metric, call) for call in range(1, 7)] for metric in cuttable()}
    never_fall = [metric for metric in ladder if metric.name in laws.NEVER_FALL]
    columns = values(batch, [each for metric in never_fall for each in ladder[metric]], "penalize")
    for metric in never_fall:
        for lower, higher in pairwise(ladder[metric]):
            assert not (columns[lower] > columns[higher]).any(), (lower, higher)


def test_a_call_of_one_result_each_is_k_where_no_ideal_is_cut() -> None:
    batch = {
        qid: (groups, [(name, n) for n, (name, _) in enumerate(found, 1)])
        for qid, (groups, found) in random_calls(6, 60).items()
    }
    for name in ("recall", "hit_rate", "complete", "hits", "precision.autorag", "mrr.trec", "completion_rr"):
        for k in (1, 2, 5):
            columns = values(batch, [parse_metric(f"{name}@{k}"), parse_metric(f"{name}@{k}calls")], "penalize")
            first, second = columns.values()
            assert same(first, second).all(), (name, k)


# ---- the same bits from every carrier ---------------------------------------------------------------------------


class Data:
    """Rows (qid, doc, score, call) of a file in no order, with repeats within and across calls, and ties."""

    def __init__(self, *, ties: bool) -> None:
        rng = random.Random(7)
        pool = [f"d{number}" for number in range(40)]
        self.truth: dict[str, Any] = {"undefined": []}
        self.rows: list[tuple[str, str, float, int]] = [("unjudged", "d1", 1.0, 3), ("undefined", "d2", 0.5, 1)]
        for number in range(25):
            own = rng.sample(pool, 15)
            self.truth[f"q{number}"] = [rng.sample(own, rng.randint(1, 3)) for _ in range(rng.randint(1, 4))]
            for name in rng.choices(own, k=rng.randint(1, 20)) if number % 7 else []:
                score = rng.choice((-0.0, 0.0, 1.0, -2.0)) if ties else rng.uniform(-5, 5)
                self.rows.append((f"q{number}", name, score, rng.choice((1, 2, 4))))
        rng.shuffle(self.rows)

    def rankings(self, tie_rule: str) -> dict[str, Found]:
        """Sorted by hand: by call, then falling score, equals by descending id or as they came."""
        found: dict[str, list[tuple[int, float, str]]] = {}
        for qid, name, score, call in self.rows:
            found.setdefault(qid, []).append((-call, score, name))
        for own in found.values():
            own.sort(key=(lambda row: row) if tie_rule == "id" else (lambda row: row[:2]), reverse=True)
        return {qid: [(name, -call) for call, _, name in own] for qid, own in found.items()}

    @property
    def table(self) -> list[dict[str, Any]]:
        return [{"qid": q, "doc_id": d, "score": s, "call": c} for q, d, s, c in self.rows]


CARRIERS = (
    "csv",
    "csv large",
    "csv huge",
    "jsonl",
    "parquet",
    "frame",
    "lazy",
    "pandas",
    "pyarrow",
    "parts",
    "parts large",
)


def carried(kind: str, data: Data, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    if "large" in kind:
        monkeypatch.setattr(source, "SMALL", 0)
    kind = kind.removesuffix(" large")
    if kind == "csv huge":
        # Rows of a file that is not held, and whose quotes want a careful reader.
        monkeypatch.setattr(source, "SMALL", 0)
        monkeypatch.setattr(source, "HUGE", 100)
        pl.DataFrame(data.table).write_csv(folder / "run.csv", quote_style="always")
        return folder / "run.csv"
    if kind == "parts":
        for number in range(3):
            pl.DataFrame(data.table[number::3]).write_csv(folder / f"{number}.csv")
        return folder
    if kind in ("pandas", "pyarrow"):
        library = pytest.importorskip(kind, reason=f"{kind} is in the extra groupgt[frames]")
        make: Callable[[Any], Any] = library.DataFrame if kind == "pandas" else library.table
        return make(pl.DataFrame(data.table).to_dict(as_series=False))
    if kind == "lazy":
        return pl.LazyFrame(data.table)
    return written(kind, data.table, folder)[0]


ASKED = [at(metric, call) for metric in laws.registered() if metric.definition.takes_cutoff for call in (1, 3)]
ASKED += [metric for metric in laws.registered() if not metric.definition.takes_cutoff]
ASKED += [parse_metric(text) for text in ("recall@3", "ndcg.coverage@5", "mrr", "recall@4calls")]
SHARES = [0.3, 0.6, 1.0]


@cache
def by_hand(ties: bool, duplicates: str, tie_rule: str) -> tuple[groupgt.Evaluation, list[int | None]]:
    """What the sorted lists are worth, which is the same for all carriers."""
    data, policy = Data(ties=ties), {"duplicates": duplicates, "ties": tie_rule}
    run = mappings(data.rankings(tie_rule))
    depths = groupgt.depth(data.truth, run, SHARES, unit="calls", policy=policy)
    return groupgt.evaluate(data.truth, run, ASKED, policy=policy, corpus=laws.WORDS), [each.depth for each in depths]


@pytest.mark.parametrize("kind", CARRIERS)
@pytest.mark.parametrize(
    ("ties", "duplicates", "tie_rule"),
    [
        (False, "penalize", "id"),
        pytest.param(True, "drop", "id", marks=pytest.mark.property),
        pytest.param(True, "penalize", "id", marks=pytest.mark.property),
        (True, "drop", "input"),
    ],
)
def test_the_same_bits_from_every_carrier(
    kind: str, ties: bool, duplicates: str, tie_rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind.startswith("parts") and tie_rule == "input":
        pytest.skip("the order of rows in several files is not that of one")
    data, policy = Data(ties=ties), {"duplicates": duplicates, "ties": tie_rule}
    expected, depths = by_hand(ties, duplicates, tie_rule)
    run = carried(kind, data, tmp_path, monkeypatch)
    parts = kind.startswith("parts")
    found = groupgt.evaluate(data.truth, run, ASKED, policy=policy, corpus=laws.WORDS, parts=parts)
    for text, column in expected.values.items():
        np.testing.assert_array_equal(found.values[text], column, text)
    assert found.labelled.duplicated == expected.labelled.duplicated
    asked_depths = groupgt.depth(data.truth, run, SHARES, unit="calls", policy=policy, parts=parts)
    assert [each.depth for each in asked_depths] == depths


def test_without_the_compiled_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = Data(ties=True)
    run = carried("jsonl", data, tmp_path, monkeypatch)
    asked = ["recall@2calls", "ndcg.coverage@4calls", "mrr"]
    expected = groupgt.evaluate(data.truth, run, asked)
    monkeypatch.setattr(native, "built", None)
    found = groupgt.evaluate(data.truth, run, asked)
    for text in asked:
        np.testing.assert_array_equal(found.values[text], expected.values[text])
    assert found.counts == expected.counts


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_streamed(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Data(ties=True)
    run = carried(kind, data, tmp_path, monkeypatch)
    asked = ["recall@2calls", "map.trec", "complete@4calls"]
    expected = groupgt.evaluate(data.truth, run, asked)
    engine = {"use": "streaming", "with": {"memory": "4GB"}}
    found = groupgt.evaluate(data.truth, run, asked, engine=engine)
    for text in asked:
        np.testing.assert_array_equal(found.values[text], expected.values[text])


def test_ordering_twice_changes_nothing() -> None:
    data = Data(ties=True)
    for run in (groupgt.Run.of(mappings(data.rankings("id"))), frames.run_of(pl.DataFrame(data.table))):
        once = in_call_order(run)
        assert calls_of(in_call_order(once), Policy()) == calls_of(once, Policy())
        for name in ("recall@1calls", "mrr"):
            first, second = (groupgt.evaluate(data.truth, each, [name]).values[name] for each in (run, once))
            np.testing.assert_array_equal(first, second)


def test_scores_of_several_calls_are_not_handed_out() -> None:
    """They order the results of one call alone, and whoever compared them across calls would find another order."""
    frame = pl.DataFrame({"qid": ["q"] * 3, "doc_id": ["a", "b", "c"], "score": [1.0, 9.0, 2.0], "call": [1, 2, 1]})
    for run in (in_call_order(frames.run_of(frame)), in_call_order(groupgt.Run.of(mappings({"q": RUN["q"]})))):
        for qid, (_, scores) in all_rankings(run, Policy()):
            assert qid == "q"
            assert scores is None
    carrier = carrier_of(in_call_order(frames.run_of(frame)))
    assert carrier.ranking("q", Policy()) == (["c", "a", "b"], None)


@pytest.mark.parametrize("labeller", ["parents", "text"])
def test_what_a_labeller_calls_results_keeps_their_calls(labeller: str) -> None:
    truth = {"q": [["a"], ["b"]]}
    results = [("a", 1), ("x", 1), ("a", 2), ("b", 3)]
    run = {"q": [{"id": f"{n}", "parent": name, "text": name, "call": call} for n, (name, call) in enumerate(results)]}
    options: dict[str, Any] = {"labeller": labeller, "corpus": {"a": "a", "b": "b"}}
    asked = [f"recall@{call}calls" for call in (1, 2, 3)]
    assert list(groupgt.evaluate(truth, run, asked, **options).means.values()) == [1 / 2, 1 / 2, 1]
    depths = groupgt.depth(truth, run, 1.0, unit="calls", **options)
    assert [each.depth for each in depths] == [3]


def test_what_the_ground_truth_leaves_out_leaves_its_call() -> None:
    truth = groupgt.GroundTruth.of({"q": [["a"], ["b"]]}, excluded_ids={"q": ["x"]})
    run = mappings({"q": [("x", 1), ("a", 1), ("x", 2), ("b", 3)]})
    found = groupgt.evaluate(truth, run, ["precision@1calls", "recall@2calls", "recall@3calls"])
    assert list(found.means.values()) == [1, 1 / 2, 1]


def test_a_hit_vector_keeps_the_order_of_calls() -> None:
    assert groupgt.label([["a"], ["b"]], mappings(RUN)["q"]).tolist() == [1, 0, 0, 0, 1]
    with pytest.raises(groupgt.DataError, match="rank 2 is from call 1"):
        groupgt.label([["a"]], [{"id": "a", "call": 2}, {"id": "b", "call": 1}])


def test_depth_in_calls_is_where_complete_reaches_the_share() -> None:
    batch = random_calls(8, 60)
    truth = {qid: groups for qid, (groups, _) in batch.items()}
    run = mappings({qid: found for qid, (_, found) in batch.items()})
    means = {n: groupgt.evaluate(truth, run, [f"complete@{n}calls"])[f"complete@{n}calls"] for n in range(1, 6)}
    seen = set()
    for each in groupgt.depth(truth, run, [0.1, 0.2, 0.3, 0.4, 0.5, 0.9], unit="calls"):
        seen.add(each.depth)
        if each.depth is None:
            assert means[5] < each.share
            continue
        assert means[each.depth] >= each.share - 1e-12
        assert means.get(each.depth - 1, 0.0) < each.share - 1e-12
    assert len(seen) > 2


# ---- explain ----------------------------------------------------------------------------------------------------


def test_worked_formulas_give_the_values() -> None:
    batch = random_calls(9, 12)
    run = mappings({qid: found for qid, (_, found) in batch.items()})
    asked = [at(metric, call) for metric in cuttable() for call in (1, 3)]
    found = groupgt.evaluate({qid: groups for qid, (groups, _) in batch.items()}, run, asked, corpus=laws.WORDS)
    for text, metric in found.metrics.items():
        for position, value in enumerate(found.values[text]):
            if not np.isnan(value):
                expression = metric.explanation(found.labelled.hits, position)
                assert evaluated(expression) == pytest.approx(value, abs=1e-9), (text, expression)


def test_explain_shows_the_call_of_each_result() -> None:
    found = groupgt.evaluate(TRUTH, mappings(RUN), ["precision@2calls"])
    lines = found.explain("q").splitlines()
    header = next(line.split() for line in lines if line.startswith("rank"))
    assert header == ["rank", "call", "result", "g1", "g2"]
    assert [line.split()[:3] for line in lines if line[:1].isdigit()][:5] == [
        ["1", "1", "a"],
        ["2", "1", "x"],
        ["3", "2", "a"],
        ["4", "3", "c"],
        ["5", "3", "b"],
    ]
    assert "= 1 / 3" in found.explain("q")
    assert [row["call"] for row in found.explain_dict("q")["results"]] == [1, 1, 2, 3, 3]
    dropped = groupgt.evaluate(TRUTH, mappings(RUN), ["mrr"], policy={"duplicates": "drop"})
    assert [(row["id"], row["call"]) for row in dropped.explain_dict("q")["results"]] == [
        ("a", 1),
        ("x", 1),
        ("c", 3),
        ("b", 3),
    ]
    without = groupgt.evaluate(TRUTH, {"q": ["a"]}, ["mrr"]).explain_dict("q")["results"]
    assert without == [{"rank": 1, "id": "a", "hits": [1]}]


def test_explain_leaves_calls_out_where_results_were_dropped_by_other_names() -> None:
    run = {"q": [{"id": "1", "parent": "a", "call": 1}, {"id": "2", "parent": "a", "call": 2}]}
    options: dict[str, Any] = {"labeller": "parents", "policy": {"duplicates": "drop"}}
    found = groupgt.evaluate(TRUTH, run, ["mrr"], **options)
    assert [sorted(row) for row in found.explain_dict("q")["results"]] == [["hits", "id", "rank"]]
    with pytest.raises(groupgt.ConfigError, match="duplicates=drop removes results by the labeller's ids"):
        groupgt.evaluate(TRUTH, run, ["recall@2calls"], **options)


class Streamed(dict[str, Any]):
    """A mapping whose values can be walked once."""

    def values(self) -> Any:
        return iter(list(super().values()))


def test_calls_are_found_in_any_mapping() -> None:
    run = {"q": [{"id": "z", "call": 1}, {"id": "a", "call": 2}]}
    found = [groupgt.evaluate({"q": [["a"]]}, each, ["recall@1calls", "mrr"]).means for each in (run, Streamed(run))]
    assert found == [{"recall@1calls": 0.0, "mrr": 0.5}] * 2


def test_scores_beside_mappings_order_the_results_of_a_call() -> None:
    ranking = [{"id": "x", "call": 2}, {"id": "a", "call": 1}, {"id": "b", "call": 2}]
    run = groupgt.Run.of({"q": ranking}, scores={"q": [0.1, 0.2, 0.3]})
    # a | b, x
    found = groupgt.evaluate({"q": [["a"], ["b"]]}, run, ["recall@1calls", "completion_rr"])
    assert list(found.means.values()) == [1 / 2, 1 / 2]


def test_what_is_no_ranking_is_told_as_ever() -> None:
    run = {"q": [{"id": 1.5, "call": 1}], "r": [{"id": "d", "call": 1}]}
    with pytest.raises(groupgt.DataError, match="at rank 1") as caught:
        groupgt.evaluate(TRUTH, run, ["mrr"])
    assert "expected a call" not in str(caught.value)


def test_composed_scores_fall_from_call_to_call() -> None:
    assert _composed([2, 1, 2], [0.5, 0.1, 0.9]) == [-6, -3, -5]
