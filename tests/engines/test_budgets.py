"""Budgets: a cutoff by length is the longest prefix that fits, in every metric, from every carrier of results."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from math import comb, log2
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.formats import source
from groupgt.formats.tokenizers import tokenizer_named
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.values import Budget
from groupgt.testing import alternatives, rejected
from tests import laws, reference
from tests.agreement import TOLERANCE, all_metrics, random_query
from tests.engines import counts_of
from tests.metrics.test_worksheet import evaluated

BUDGETS = (1, 2, 4, 9, 20, 1000)
# Under @k these cut their ideal: ndcg.autorag at the length of the list, the others at k.
CUT_IDEALS = {"mrr.coverage", "ndcg.autorag", "ndcg.trec", "ndcg.coverage", "alpha_ndcg", "nerr_ia", "mrecall"}
# These divide by k, which is the prefix's length under a budget and stays k where a list is shorter.
DIVIDE_BY_K = {"precision.trec", "f1.trec", "alpha_dcg", "err_ia", "p_ia", "unj"}

Batch = dict[str, tuple[list[Any], list[str]]]


def with_budget(metric: Metric, amount: int, unit: str = "tokens") -> Metric:
    return Metric(metric.name, metric.convention, metric.parameters, Budget(amount, unit))


def cuttable() -> list[Metric]:
    """Every metric under every convention, with its defaults and its variants, that takes a cutoff.

    Those that read the whole ground truth are not metrics of a query and its prefix alone.
    """
    return [each for each in all_metrics() if each.definition.takes_cutoff and not each.reads_all]


def title(metric: Metric) -> str:
    return metric.name + (f".{metric.convention}" if metric.convention else "")


# ---- the slow loop ----------------------------------------------------------------------------------------------


def prefix_of(ranking: Sequence[str], lengths: Mapping[str, int], budget: int, duplicates: str) -> list[str]:
    """The longest prefix that fits; under drop, repeats are gone before anything is measured."""
    results: list[str] = []
    for name in ranking:
        if duplicates != "drop" or name not in results:
            results.append(name)
    spent, fits = 0, 0
    for name in results:
        spent += lengths[name]
        if spent > budget:
            break
        fits += 1
    return results[:fits]


def ndcg_of_all_ones(query: reference.Query) -> float:
    """ndcg.autorag whose ideal holds a one for every alternative, however short the list is."""
    found = sum(1 / log2(rank + 1) for rank, name in enumerate(query.top, 1) if query.groups_of(name))
    listed = sum(len(group.members) for group in query.groups)
    return found / sum(1 / log2(rank + 1) for rank in range(1, listed + 1))


def slow(groups: list[Any], prefix: list[str], metric: Metric, duplicates: str) -> float | None:
    """The metric of the prefix alone: without a cutoff, k is its length and ideals are not cut."""
    if (metric.name, metric.convention) == ("ndcg", "autorag"):
        kept, grades = reference.read_truth(groups)
        results = reference.apply_duplicates(prefix, duplicates)
        return ndcg_of_all_ones(reference.Query(kept, grades, results, results, None, {})) if kept else None
    parameters = dict(metric.parameters)
    return reference.reference(groups, prefix, metric.name, metric.convention, parameters, None, duplicates)


def random_batch(seed: int, queries: int) -> tuple[Batch, dict[str, int]]:
    """Random queries, and a length for each id: every fifth is empty."""
    rng = random.Random(seed)
    batch = {f"q{number}": random_query(rng) for number in range(queries)}
    names = sorted({name for _, ranking in batch.values() for name in ranking})
    return batch, {name: rng.choice((0, 1, 2, 3, 7)) for name in names}


def values(
    batch: Batch, metrics: list[Metric], lengths: Mapping[str, int], duplicates: str = "penalize"
) -> dict[Metric, np.ndarray]:
    truth = {qid: groups for qid, (groups, _) in batch.items()}
    run = {qid: ranking for qid, (_, ranking) in batch.items()}
    policy = {"duplicates": duplicates}
    found = groupgt.evaluate(truth, run, metrics, lengths={"tokens": lengths}, policy=policy, corpus=laws.WORDS)
    return {metric: found.values[text] for text, metric in found.metrics.items()}


@pytest.mark.parametrize(
    "duplicates", ["drop", *(pytest.param(each, marks=pytest.mark.slow) for each in ("penalize", "keep"))]
)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.property)])
def test_every_metric_is_that_of_the_prefix(seed: int, duplicates: str) -> None:
    batch, lengths = random_batch(seed, 50 if seed else 25)
    metrics = [each for each in cuttable() if duplicates != "keep" or each.convention == "autorag"]
    asked = [with_budget(metric, budget) for metric in metrics for budget in BUDGETS]
    sizes = set()
    for metric, column in values(batch, asked, lengths, duplicates).items():
        for (qid, (groups, ranking)), value in zip(batch.items(), column):
            assert metric.budget is not None
            prefix = prefix_of(ranking, lengths, metric.budget.amount, duplicates)
            sizes.add((len(prefix), len(prefix) < len(ranking)))
            expected = slow(groups, prefix, metric, duplicates)
            text = f"{metric} {qid} {groups} {ranking}"
            assert (expected is None) == bool(np.isnan(value)), text
            assert expected is None or abs(expected - value) <= TOLERANCE * max(1.0, abs(expected)), text
    # Empty prefixes, cut ones and whole rankings were all among them.
    assert {(0, True), (0, False), (3, True), (5, False)} <= sizes


# ---- by hand ----------------------------------------------------------------------------------------------------

LENGTHS = {"a": 300, "x": 500, "b": 200, "c": 400}
WORKED = [
    # 300 ≤ 300 < 800: the prefix is [a].
    ("precision.autorag@300tokens", 1.0),  # 1 ÷ 1
    ("precision.trec@300tokens", 1.0),  # k is the prefix's length: 1 ÷ 1
    ("recall.autorag@300tokens", 1 / 2),
    ("ndcg.autorag@300tokens", 1 / (1 + 1 / log2(3) + 1 / 2)),  # three ones, not min(3, 1)
    ("ndcg.trec@300tokens", 1 / (1 + 1 / log2(3) + 1 / 2)),  # R = 3 grades of 1, not cut
    ("ndcg.coverage@300tokens", 1 / (1 + 1 / log2(3))),  # two groups
    ("mrr.coverage@300tokens", 1 / (1 + 1 / 2)),
    ("alpha_ndcg@300tokens", 1 / (1 + 1 / log2(3) + 0.5 / log2(4))),  # the ideal: c, b, and a again at 1/2
    ("alpha_dcg@300tokens", 1 / 2),  # 1 ÷ (m = 2 at rank 1), for k = 1
    ("p_ia@300tokens", 1 / 2),  # 1 ÷ (k·m) = 1 ÷ (1·2)
    # 299 < 300: nothing fits.
    ("precision@299tokens", 0.0),
    ("ndcg.coverage@299tokens", 0.0),
    ("err_ia@299tokens", 0.0),  # 0 ÷ 0
    ("redundancy@299tokens", math.nan),  # an empty list
    # 300 + 500 + 200 = 1000 ≤ 1000 < 1400: the prefix is [a, x, b].
    ("precision.autorag@1000tokens", 2 / 3),
    ("recall.autorag@1000tokens", 1 / 2),
    ("recall.trec@1000tokens", 2 / 3),
    ("redundancy@1000tokens", 1 / 3),  # (2 relevant − 1 that meets a new group) ÷ 3
    ("complete@1399tokens", 0.0),
    # 1400: everything.
    ("complete@1400tokens", 1.0),
    ("completion_rr@1400tokens", 1 / 4),
    ("recall@1000000000000000tokens", 1.0),
]


@pytest.mark.parametrize(("text", "expected"), WORKED)
def test_worked_figures(text: str, expected: float) -> None:
    found = groupgt.evaluate(
        {"q": [["a", "b"], ["c"]]}, {"q": ["a", "x", "b", "c"]}, [text], lengths={"tokens": LENGTHS}
    )
    assert found[text] == pytest.approx(expected, abs=1e-15, nan_ok=True)


def test_a_repeat_keeps_its_length_where_it_keeps_its_place() -> None:
    truth, run, lengths = {"q": [["a"], ["b"]]}, {"q": ["a", "a", "b"]}, {"tokens": {"a": 2, "b": 1}}
    asked = ["recall@4tokens", "recall@5tokens", "precision.trec@5tokens"]
    # 2 + 2 + 1 = 5, and two of three results are relevant.
    found = groupgt.evaluate(truth, run, asked, lengths=lengths)
    assert list(found.means.values()) == [1 / 2, 1, pytest.approx(2 / 3)]
    # 2 + 1 = 3, and both are.
    found = groupgt.evaluate(truth, run, ["recall@2tokens", *asked], lengths=lengths, policy={"duplicates": "drop"})
    assert list(found.means.values()) == [1 / 2, 1, 1, 1]


def test_results_of_no_length_fit_behind_a_spent_budget() -> None:
    lengths = {"tokens": {"a": 3, "x": 0, "b": 0, "c": 1, "z": 0}}
    run = {"q": ["a", "x", "b", "c", "z"]}
    found = groupgt.evaluate({"q": [["a"], ["b"], ["c"]]}, run, ["recall@3tokens", "judged@3tokens"], lengths=lengths)
    # 3 + 0 + 0 ≤ 3 < 4: a, x and b fit, and what follows c does not.
    assert list(found.means.values()) == [2 / 3, 2 / 3]
    # Nothing but empty results: 0 ≤ 1.
    found = groupgt.evaluate({"q": [["b"]]}, {"q": ["x", "b"]}, ["mrr@1chars"], lengths={"chars": {"x": 0, "b": 0}})
    assert found.means == {"mrr@1chars": 1 / 2}


def test_an_empty_a_missing_and_an_undefined_query() -> None:
    truth = {"empty": [["a"]], "missing": [["a"]], "undefined": [[]], "found": [["a"]]}
    run = {"empty": [], "undefined": ["a"], "found": ["a"], "extra": ["nobody knows how long"]}
    asked = ["recall@5tokens", "redundancy@5tokens"]
    found = groupgt.evaluate(truth, run, asked, lengths={"tokens": {"a": 5}})
    # redundancy: (1 − 1) ÷ 1 where there is a result, null elsewhere.
    np.testing.assert_array_equal(found.values["recall@5tokens"], [0, 0, np.nan, 1])
    np.testing.assert_array_equal(found.values["redundancy@5tokens"], [np.nan, np.nan, np.nan, 0])


def test_ties_at_the_border_of_a_prefix_are_counted() -> None:
    truth, lengths = {"q": [["b"]]}, {"tokens": {"a": 1, "b": 1, "c": 1}}
    run = {"q": {"c": 2.0, "b": 1.0, "a": 1.0}}

    def ties(*texts: str) -> int:
        return groupgt.evaluate(truth, run, list(texts), lengths=lengths).counts["ties"]

    # c, then b and a, which are tied: a prefix of 2 divides them, of 1 or 3 does not, nor does an empty one.
    assert [ties(f"recall@{budget}tokens") for budget in (1, 2, 3, 9)] == [0, 1, 0, 0]
    lengths["tokens"]["c"] = 5
    assert [ties(f"recall@{budget}tokens") for budget in (4, 5, 6, 7)] == [0, 0, 1, 0]
    assert ties("recall@4tokens", "recall@6tokens") == 1


def test_a_budget_that_was_not_evaluated_is_an_error() -> None:
    found = groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["recall@3tokens"], lengths={"tokens": {"a": 1}})
    with pytest.raises(groupgt.MetricError, match="@4tokens"):
        found.explain("q", ["recall@4tokens"])
    with pytest.raises(groupgt.MetricError, match="@3chars"):
        found.explain("q", ["recall@3chars"])


# ---- laws -------------------------------------------------------------------------------------------------------


def same(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return (first == second) | (np.isnan(first) & np.isnan(second))


@pytest.mark.parametrize("duplicates", ["penalize", "drop"])
def test_what_is_appended_behind_a_spent_budget_changes_no_bit(duplicates: str) -> None:
    batch, lengths = random_batch(11, 60)
    rng = random.Random(1)
    more = {**lengths, "y": 1, "z": 0}
    names = list(more)
    longer = {qid: (groups, [*ranking, *rng.choices(names, k=4)]) for qid, (groups, ranking) in batch.items()}
    checked = 0
    for budget in (1, 4, 9):
        spent = []
        for _, ranking in batch.values():
            whole = list(dict.fromkeys(ranking)) if duplicates == "drop" else ranking
            spent.append(len(prefix_of(ranking, lengths, budget, duplicates)) < len(whole))
        metrics = [with_budget(metric, budget) for metric in cuttable()]
        first, second = values(batch, metrics, more, duplicates), values(longer, metrics, more, duplicates)
        for metric in metrics:
            assert same(first[metric], second[metric])[spent].all(), metric
        checked += sum(spent)
    assert checked > 60


def test_a_budget_that_fits_everything_is_no_cutoff() -> None:
    """To the bit, but for ndcg.autorag, whose ideal is cut at the length of the list where there is no budget."""
    batch, lengths = random_batch(12, 80)
    columns = values(batch, [each for metric in cuttable() for each in (with_budget(metric, 1000), metric)], lengths)
    for metric in cuttable():
        alike = same(columns[with_budget(metric, 1000)], columns[metric])
        if title(metric) == "ndcg.autorag":
            listed = [sum(len({n for n, g in alternatives(each) if g > 0}) for each in gs) for gs, _ in batch.values()]
            long_enough = np.array([len(ranking) for _, ranking in batch.values()]) >= listed
            assert alike[long_enough].all()
            assert long_enough.any()
            assert not alike[~long_enough].all()
        else:
            assert alike.all(), metric


def test_a_larger_budget_never_finds_less() -> None:
    batch, lengths = random_batch(13, 80)
    never_fall = [each for each in cuttable() if each.name in laws.NEVER_FALL]
    ladders = [[with_budget(metric, budget) for budget in (*range(1, 30), 1000)] for metric in never_fall]
    columns = values(batch, [each for ladder in ladders for each in ladder], lengths)
    for ladder in ladders:
        for lower, higher in pairwise(ladder):
            # NaN, of an undefined query, is not above NaN.
            assert not (columns[lower] > columns[higher]).any(), (lower, higher)


def test_a_budget_of_k_results_of_length_one_is_k_where_no_ideal_is_cut() -> None:
    batch, _ = random_batch(14, 80)
    ones = dict.fromkeys((name for _, ranking in batch.values() for name in ranking), 1)
    sizes = np.array([len(ranking) for _, ranking in batch.values()])
    seen = set()
    pairs = [(metric, k, replace(metric, cutoff=k), with_budget(metric, k)) for metric in cuttable() for k in (1, 2, 5)]
    columns = values(batch, [each for _, _, *two in pairs for each in two], ones)
    for metric, k, at_k, fits in pairs:
        name = title(metric)
        alike = same(columns[at_k], columns[fits])
        if name in CUT_IDEALS:
            # A larger ideal, so never more.
            assert not (columns[fits] > columns[at_k] + TOLERANCE).any(), metric
        elif name in DIVIDE_BY_K:
            assert alike[sizes >= k].all(), metric
        else:
            assert alike.all(), metric
        if not alike.all():
            seen.add(name)
    # Each of these differs somewhere, so none stands in the sets for nothing.
    assert seen == CUT_IDEALS | DIVIDE_BY_K


# ---- the same bits from every carrier ---------------------------------------------------------------------------


def text_of(tokens: int, chars: int) -> str:
    """A text of so many words and code points, some of them beyond ASCII and the first plane."""
    if not tokens:
        return " " * chars
    head = " ".join("é" * tokens)
    return head + "𝛼" * (chars - len(head))


class Data:
    """A ground truth, rows (qid, doc, score) in the order of a file, and the length of each document."""

    def __init__(self, *, ties: bool, shuffled: bool) -> None:
        rng = random.Random(5)
        pool = [f"d{number}" for number in range(60)]
        self.tokens = {name: rng.choice((0, 1, 2, 5, 9)) for name in pool}
        self.chars = {name: max(2 * self.tokens[name] - 1, 0) + rng.randint(0, 9) for name in pool}
        self.text = {name: text_of(self.tokens[name], self.chars[name]) for name in pool}
        self.truth: dict[str, Any] = {"undefined": []}
        self.rows: list[tuple[str, str, float]] = [("unjudged", "d1", 1.0), ("undefined", "d2", 0.5)]
        for number in range(30):
            own = rng.sample(pool, 25)
            self.truth[f"q{number}"] = [rng.sample(own, rng.randint(1, 3)) for _ in range(rng.randint(1, 4))]
            ranking = rng.sample(own, rng.randint(1, 20))
            ranking += rng.choices(ranking, k=3)
            scores = sorted((rng.choice((1.0, 2.0, 3.0)) if ties else rng.random() for _ in ranking), reverse=True)
            self.rows += zip([f"q{number}"] * len(ranking), ranking, scores) if number % 7 else []
        if shuffled:
            rng.shuffle(self.rows)

    def rankings(self, tie_rule: str) -> dict[str, list[str]]:
        """Sorted by hand: by score, equal scores by descending id or as they came; a stable sort keeps the rest."""
        found: dict[str, list[tuple[float, str]]] = {}
        for qid, name, score in self.rows:
            found.setdefault(qid, []).append((score, name))
        for own in found.values():
            own.sort(key=(lambda row: row) if tie_rule == "id" else (lambda row: row[0]), reverse=True)
        return {qid: [name for _, name in own] for qid, own in found.items()}

    def long(self) -> pl.DataFrame:
        frame = pl.DataFrame(self.rows, schema=["qid", "doc_id", "score"], orient="row")
        lengths = {unit: [getattr(self, unit)[name] for _, name, _ in self.rows] for unit in ("tokens", "chars")}
        return frame.with_columns(**{unit: pl.Series(column) for unit, column in lengths.items()})

    def nested(self, tie_rule: str, *, contents: bool) -> pl.DataFrame:
        rankings = self.rankings(tie_rule)
        columns: dict[str, list[Any]] = {"qid": list(rankings), "retrieved_ids": list(rankings.values())}
        if contents:
            columns["retrieved_contents"] = [[self.text[name] for name in own] for own in rankings.values()]
        else:
            for unit in ("tokens", "chars"):
                table = getattr(self, unit)
                columns[f"retrieved_{unit}"] = [[table[name] for name in own] for own in rankings.values()]
        return pl.DataFrame(columns)


SCORED = ("jsonl", "csv", "csv large", "csv.gz large", "tsv large", "parquet", "polars", "lazy", "pandas", "pyarrow")
NESTED = ("nested jsonl", "nested parquet", "contents jsonl", "contents parquet", "contents pandas")
SCORED_FROM_OUTSIDE = ("trec", "trec large", "csv large and corpus", "parquet and texts")
ENGINE_METRICS = [
    with_budget(metric, amount, unit)
    for metric in laws.registered()
    if metric.definition.takes_cutoff
    for amount, unit in ((12, "tokens"), (60, "chars"))
]
ENGINE_METRICS += [parse_metric(text) for text in ("recall@1tokens", "hits@5tokens", "ndcg@1000000chars")]


def carried(kind: str, data: Data, tie_rule: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The results in one form, and what is said of lengths beside them."""
    if "large" in kind:
        monkeypatch.setattr(source, "SMALL", 0)
    count = groupgt.Lengths(count=tokenizer_named("whitespace"))
    bare = data.long().drop("tokens", "chars")
    if kind.startswith("trec"):
        file = folder / "run.trec"
        file.write_text("".join(f"{qid} Q0 {name} 0 {score!r} t\n" for qid, name, score in data.rows))
        return file, {"tokens": data.tokens, "chars": data.chars}
    if kind == "csv large and corpus":
        bare.write_csv(folder / "run.csv")
        return folder / "run.csv", groupgt.Lengths({"tokens": data.tokens}, texts=data.text)
    if kind == "parquet and texts":
        bare.write_parquet(folder / "run.parquet")
        return folder / "run.parquet", groupgt.Lengths(texts=data.text, count=tokenizer_named("whitespace"))
    if kind.startswith(("nested", "contents")):
        frame = data.nested(tie_rule, contents=kind.startswith("contents"))
        lengths = count if kind.startswith("contents") else None
    else:
        frame, lengths = data.long(), None
    library = kind.rsplit(maxsplit=1)[-1]
    if library in ("pandas", "pyarrow"):
        other = pytest.importorskip(library, reason=f"{library} is in the extra groupgt[frames]")
        make: Callable[[Any], Any] = other.DataFrame if library == "pandas" else other.table
        return make(frame.to_dict(as_series=False)), lengths
    if kind == "polars":
        return frame, lengths
    if kind == "lazy":
        return frame.lazy(), lengths
    file = folder / f"run.{kind.split(maxsplit=1)[0] if 'large' in kind else library}"
    if "jsonl" in kind:
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in frame.to_dicts()))
    elif "parquet" in kind:
        frame.write_parquet(file)
    else:
        text = frame.write_csv(separator="\t" if "tsv" in kind else ",")
        if "gz" in kind:
            import gzip

            file.write_bytes(gzip.compress(text.encode()))
        else:
            file.write_text(text)
    return file, lengths


@pytest.mark.filterwarnings("ignore:.* judged passages have no contents")
@pytest.mark.parametrize(
    ("order", "duplicates", "tie_rule"),
    [
        ("sorted", "penalize", "id"),
        ("ties", "penalize", "id"),
        ("shuffled", "drop", "input"),
        *(
            pytest.param(order, *policy, marks=pytest.mark.property)
            for order in ("ties", "shuffled")
            for policy in product(("penalize", "drop"), ("id", "input"))
            if (order, *policy) not in (("ties", "penalize", "id"), ("shuffled", "drop", "input"))
        ),
    ],
)
def test_every_carrier_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, duplicates: str, tie_rule: str
) -> None:
    data = Data(ties=order != "sorted", shuffled=order == "shuffled")
    policy = {"duplicates": duplicates, "ties": tie_rule}
    known = {"tokens": data.tokens, "chars": data.chars}
    expected = groupgt.evaluate(
        data.truth, data.rankings(tie_rule), ENGINE_METRICS, lengths=known, policy=policy, corpus=data.text
    )
    counts = []
    for kind in (*SCORED, *NESTED, *SCORED_FROM_OUTSIDE):
        folder = tmp_path / kind.replace(" ", "-")
        folder.mkdir()
        with monkeypatch.context() as patched:
            run, lengths = carried(kind, data, tie_rule, folder, patched)
            found = groupgt.evaluate(data.truth, run, ENGINE_METRICS, lengths=lengths, policy=policy, corpus=data.text)
        assert (not found.run.in_memory) == ("large" in kind or kind in _LONG_FRAMES), kind
        for text, column in found.values.items():
            assert np.array_equal(column, expected.values[text], equal_nan=True), (kind, text)
        if kind not in NESTED:
            counts.append(counts_of(found))
    assert all(each == counts[0] for each in counts)
    assert (counts[0]["ties"] > 0) == (order != "sorted")


_LONG_FRAMES = ("parquet", "polars", "lazy", "pandas", "pyarrow", "parquet and texts")


def test_a_repeat_with_two_lengths_is_read_alike_by_both_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both lengths of the first, or an error; not one by the small reader and another by the large."""
    file = tmp_path / "run.csv"
    file.write_text("qid,doc_id,score,tokens\nq,a,3,1\nq,a,2,4\nq,b,1,1\n")
    found = []
    for size in (source.SMALL, 0):
        monkeypatch.setattr(source, "SMALL", size)
        try:
            found.append(groupgt.evaluate({"q": [["a"], ["b"]]}, file, ["recall@4tokens"])["recall@4tokens"])
        except groupgt.DataError:
            found.append(None)
    assert found[0] == found[1]


# ---- explain ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", cuttable(), ids=str)
def test_worked_formula_gives_the_value(metric: Metric) -> None:
    batch, lengths = random_batch(7, 25)
    harmful = {qid: rejected(groups) for qid, (groups, _) in batch.items()}
    truth = groupgt.GroundTruth.of({qid: groups for qid, (groups, _) in batch.items()}, harmful_ids=harmful)
    run = {qid: ranking for qid, (_, ranking) in batch.items()}
    asked = [with_budget(metric, budget) for budget in (2, 9, 1000)]
    found = groupgt.evaluate(truth, run, asked, lengths={"tokens": lengths}, corpus=laws.WORDS)
    compared = 0
    for position in range(len(batch)):
        for text, each in found.metrics.items():
            value = found.values[text][position]
            if not np.isnan(value):
                expression = each.explanation(found.labelled.hits, position)
                assert evaluated(expression) == pytest.approx(value, abs=1e-9), (expression, batch[f"q{position}"])
                compared += 1
    assert compared > 20


def test_explain_shows_the_prefix_at_work() -> None:
    truth, run = {"q": [["a", "b"], ["c"]]}, {"q": ["a", "x", "b", "c"]}
    found = groupgt.evaluate(truth, run, ["precision.trec@1000tokens", "ndcg@300tokens"], lengths={"tokens": LENGTHS})
    text = found.explain("q")
    # [a, x, b]: two relevant of three.
    assert "precision.trec@1000tokens = 0.6667" in text
    assert "= 2 / 3" in text
    # [a]: one hit, and three ones in the ideal.
    assert "(1/log2(1+1)) / (1/log2(1+1) + 1/log2(2+1) + 1/log2(3+1))" in text
    rows = found.explain_dict("q")["metrics"]
    assert [evaluated(row["worked"]) for row in rows] == [pytest.approx(row["value"]) for row in rows]
    assert "precision.trec@1000tokens = 0.6667" in found.explain("q", "precision.trec@1000tokens")


# ---- depth ------------------------------------------------------------------------------------------------------


def completion(groups: list[Any], ranking: list[str], lengths: Mapping[str, int] | None, duplicates: str) -> float:
    """What it takes until every group is met: results, or their lengths together; infinite where one never is."""
    wanted = [{name for name, grade in alternatives(group) if grade > 0} for group in groups]
    results = list(dict.fromkeys(ranking)) if duplicates == "drop" else ranking
    spent = 0
    for rank, name in enumerate(results, 1):
        spent += 1 if lengths is None else lengths[name]
        if all(own & set(results[:rank]) for own in wanted if own):
            return spent
    return math.inf


def smallest(depths: list[float], share: float) -> float:
    """The smallest depth at which so many of the queries are complete, in exact fractions."""
    wanted = Fraction(str(share)) * len(depths)
    return min(each for each in [*depths, math.inf] if sum(other <= each for other in depths) >= wanted)


SHARES = [0.05, 0.1, 0.2, 0.25, 0.3, 1 / 3, 0.4, 0.5, 0.6, 0.9, 1.0]


@pytest.mark.parametrize("unit", ["results", "tokens", "chars"])
@pytest.mark.parametrize("duplicates", ["penalize", "drop"])
@pytest.mark.parametrize("seed", range(3))
def test_depth_is_that_of_a_slow_loop(unit: str, duplicates: str, seed: int) -> None:
    batch, lengths = random_batch(20 + seed, 70)
    truth = {qid: groups for qid, (groups, _) in batch.items()}
    run = {qid: ranking for qid, (_, ranking) in batch.items()}
    known = {} if unit == "results" else {unit: lengths}
    policy = {"duplicates": duplicates}
    found = groupgt.depth(truth, run, SHARES, unit=unit, lengths=known, policy=policy)
    depths = [
        completion(groups, ranking, None if unit == "results" else lengths, duplicates)
        for groups, ranking in batch.values()
        if any(grade > 0 for group in groups for _, grade in alternatives(group))
    ]
    assert any(each.depth is None for each in found)
    assert any(each.depth is not None for each in found)
    for share, each in zip(SHARES, found):
        expected = smallest(depths, share)
        assert each.depth == (None if math.isinf(expected) else expected), share
        assert (each.share, each.unit, each.queries) == (share, unit, len(depths))
        assert each.reached == pytest.approx(sum(not math.isinf(own) for own in depths) / len(depths))
        low, high = each.interval
        assert low is None or each.depth is None or low <= each.depth
        assert high is None or (each.depth is not None and high >= each.depth)


def test_the_budget_named_completes_the_share_and_one_less_does_not() -> None:
    batch, _ = random_batch(30, 70)
    rng = random.Random(3)
    lengths = {"tokens": {name: rng.randint(1, 9) for name in {n for _, ranking in batch.values() for n in ranking}}}
    truth = {qid: groups for qid, (groups, _) in batch.items()}
    run = {qid: ranking for qid, (_, ranking) in batch.items()}
    checked = 0
    for each in groupgt.depth(truth, run, SHARES, unit="tokens", lengths=lengths):
        if each.depth is None:
            assert groupgt.evaluate(truth, run, ["complete"])["complete"] < each.share
            continue
        named, less = f"complete@{each.depth}tokens", f"complete@{each.depth - 1}tokens"
        asked = [named, less][: each.depth]
        means = groupgt.evaluate(truth, run, asked, lengths=lengths).means
        assert means[named] >= each.share - 1e-12
        assert means.get(less, 0.0) < each.share - 1e-12
        checked += 1
    assert checked >= 3


def test_depth_from_columns_is_that_from_lists(tmp_path: Path) -> None:
    data = Data(ties=True, shuffled=True)
    data.long().write_parquet(tmp_path / "run.parquet")
    for unit in ("results", "tokens", "chars"):
        known = {"tokens": data.tokens, "chars": data.chars}
        expected = groupgt.depth(data.truth, data.rankings("id"), SHARES, unit=unit, lengths=known, name="run")
        assert groupgt.depth(data.truth, tmp_path / "run.parquet", SHARES, unit=unit) == expected


def test_missing_queries_never_complete_unless_they_are_skipped() -> None:
    truth = {"found": [["a"]], "missing": [["a"]]}
    one = groupgt.depth(truth, {"found": ["a"]}, [0.5, 1.0])
    assert [(each.depth, each.queries, each.reached) for each in one] == [(1, 2, 0.5), (None, 2, 0.5)]
    one = groupgt.depth(truth, {"found": ["a"]}, 1.0, policy={"missing": "skip"})
    assert [(each.depth, each.queries, each.reached) for each in one] == [(1, 1, 1.0)]


EPSILON = Fraction(1, 10**12)


def ladder(count: int) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Query number i is complete at rank i: an interval of depths reads as one of order statistics."""
    truth = {f"q{number}": [["a"]] for number in range(1, count + 1)}
    return truth, {f"q{number}": ["x"] * (number - 1) + ["a"] for number in range(1, count + 1)}


@pytest.mark.parametrize("count", [1, 2, 5, 20, pytest.param(45, marks=pytest.mark.property)])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_interval_is_the_narrowest_of_the_binomial(count: int, level: float) -> None:
    truth, run = ladder(count)
    tail = (1 - Fraction(str(level))) / 2
    for share in (0.1, 0.5, 0.75, 0.9):
        p = Fraction(str(share))

        def below(end: int, p: Fraction = p) -> Fraction:
            """P(B < end), B binomial."""
            return sum((comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(end)), Fraction(0))

        low, high = groupgt.depth(truth, run, share, confidence=level)[0].interval
        # The largest l with P(B < l) ≤ tail, the smallest u with P(B ≥ u) ≤ tail; none where that is no query. Where
        # one of them is the tail exactly, doubles may take the next.
        first = {max(end for end in range(count + 1) if below(end) < other) for other in (tail, tail + EPSILON)}
        last = {min(end for end in range(count + 2) if 1 - below(end) < other) for other in (tail, tail + EPSILON)}
        assert low in {end or None for end in first}, share
        assert high in {end if end <= count else None for end in last}, share


def test_all_questions_have_no_upper_bound() -> None:
    truth, run = ladder(4)
    assert groupgt.depth(truth, run, 1.0)[0].interval == (4, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "level"), [(0.7, 0.9), *(pytest.param(share, 0.8, marks=pytest.mark.property) for share in (0.5, 0.85))]
)
def test_the_interval_covers_as_often_as_it_says(share: float, level: float) -> None:
    """Samples of 40 questions, complete at 1 … 20 results with 4.5% each, never with 10%."""
    rng = np.random.default_rng(1)
    true = next(k for k in range(1, 21) if Fraction(45, 1000) * k >= Fraction(str(share)))
    times, covered = 400, 0
    truth = {f"q{number}": [["a"]] for number in range(40)}
    rankings = [["x"] * rank + ["a"] for rank in range(20)]
    for _ in range(times):
        ranks = rng.choice(20, 40)
        never = rng.random(40) < 0.1
        run = {f"q{number}": rankings[ranks[number]] if not never[number] else ["x"] for number in range(40)}
        low, high = groupgt.depth(truth, run, share, confidence=level)[0].interval
        covered += (low is None or low <= true) and (high is None or true <= high)
    assert covered / times >= level


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"share": 0}, "share"),
        ({"share": 1.1}, "share"),
        ({"share": [0.5, True]}, "share"),
        ({"share": math.nan}, "share"),
        ({"share": "0.9"}, "share"),
        ({"share": None}, "share"),
        ({"unit": "words"}, "unit"),
        ({"confidence": 1}, "confidence"),
        ({"confidence": "high"}, "confidence"),
    ],
    ids=str,
)
def test_depth_says_what_it_expected(options: dict[str, Any], named: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=named):
        groupgt.depth({"q": [["a"]]}, {"q": ["a"]}, **options)


def test_a_budget_reads_back_and_bpref_takes_none() -> None:
    for metric in cuttable():
        for unit in ("tokens", "chars"):
            text = str(with_budget(metric, 2000, unit))
            assert text.endswith(f"@2000{unit}")
            assert parse_metric(text) == with_budget(metric, 2000, unit)
    for text in ("bpref@100tokens", "recall@0tokens", "recall@-1chars", "recall@5words", "recall@1.5tokens"):
        with pytest.raises(groupgt.MetricError):
            parse_metric(text)
