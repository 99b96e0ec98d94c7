"""`compare`: deltas, wins and losses by hand, populations, slices, determinism."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import groupgt
from groupgt import ConfigError, DataError
from groupgt.comparison.tests import Settings
from tests.laws import WORDS, registered

QUERIES = [f"q{number:02d}" for number in range(24)]
TRUTH = {qid: [["a", "b"], ["c"]] for qid in QUERIES}


def run_of(rng: random.Random, quality: float) -> dict[str, list[str]]:
    """Rankings of five, the better the more often a and c come first."""
    found = {}
    for qid in QUERIES:
        ids = ["a", "b", "c", "x", "y"]
        found[qid] = sorted(ids, key=lambda name: rng.random() - quality * (name in "ac"))
    return found


@pytest.fixture(scope="module")
def table() -> groupgt.Comparison:
    rng = random.Random(5)
    runs = {"plain": run_of(rng, 0.0), "better": run_of(rng, 0.9), "same": run_of(random.Random(5), 0.0)}
    return groupgt.compare(TRUTH, runs, ["recall@2", "mrr.trec", "complete@2"], by=["n_groups"], seed=3)


def test_rows_by_hand() -> None:
    """Four queries: recall 1, 1/2, 1, 0 against 1/2, 1/2, 1/2, 1/2; differences 1/2, 0, 1/2, -1/2."""
    truth = {qid: [["a"], ["b"]] for qid in "pqrs"}
    one = {"p": ["a", "b"], "q": ["a"], "r": ["b", "a"], "s": ["x"]}
    half = {qid: ["a", "x"] for qid in "pqrs"}
    row = groupgt.compare(truth, {"half": half, "one": one}, ["recall"])["one"]["recall"]
    assert row.mean == 2.5 / 4
    assert row.delta == 0.5 / 4
    assert (row.wins, row.ties, row.losses, row.differ, row.pairs) == (2, 1, 1, 3, 4)
    # The sum is 1/2; of the 8 sign patterns of three halves, sums are ±3/2 twice and ±1/2 six times: all as far.
    assert row.p_value == row.raw_p_value == 1.0
    # Variance: differences minus 1/8: 3/8, -1/8, 3/8, -5/8; squares sum to (9 + 1 + 9 + 25)/64 = 44/64; ÷ 3.
    assert row.spread == pytest.approx(math.sqrt(44 / 64 / 3), abs=1e-15)
    assert row.effect_size == pytest.approx((1 / 8) / math.sqrt(44 / 64 / 3), abs=1e-15)


def test_the_baseline_has_no_difference_to_itself(table: groupgt.Comparison) -> None:
    row = table["plain"]["recall@2"]
    assert row.against is None
    assert row.delta is row.p_value is row.wins is None
    with pytest.raises(AttributeError, match="no 'nonsense'"):
        _ = row.nonsense


def test_rows_are_found_by_any_spelling(table: groupgt.Comparison) -> None:
    assert table["better"]["recall.autorag@2"] is table["better"]["recall@2"]
    with pytest.raises(ConfigError, match="was not compared"):
        table["better"]["recall@3"]
    with pytest.raises(ConfigError, match=r"'beter' was not compared \(did you mean 'better'\?\)"):
        table["beter"]


def test_identical_runs_differ_nowhere(table: groupgt.Comparison) -> None:
    for row in table["same"].values():
        assert (row.delta, row.p_value, row.wins, row.losses) == (0.0, 1.0, 0, 0)
        # Not one of 24 queries differs, which does not prove that none would: see `unseen`.
        low, high = row.delta_interval
        assert -0.2 < low < 0 < high < 0.2
        assert not row.significant


def test_holm_is_over_all_comparisons_of_the_table(table: groupgt.Comparison) -> None:
    rows = [row for row in table.rows if row.against is not None]
    assert len(rows) == 6
    ordered = sorted(rows, key=lambda row: row.raw_p_value)
    highest = 0.0
    for place, row in enumerate(ordered):
        highest = max(highest, min(1.0, row.raw_p_value * (6 - place)))
        assert row.p_value == pytest.approx(highest, abs=1e-15)
        assert row.significant == (row.p_value <= 0.05)


def test_means_are_those_of_evaluate(table: groupgt.Comparison) -> None:
    for name, evaluation in table.evaluations.items():
        for text, mean in evaluation.means.items():
            row = table[name][text]
            assert row.mean == mean
            assert row.interval[0] <= mean <= row.interval[1]


def test_randomization_of_few_queries_is_exact() -> None:
    """Differences with a slow enumeration in whole numbers."""
    rng = random.Random(8)
    truth = {f"q{n}": [[f"d{i}"] for i in range(4)] for n in range(9)}
    runs = [{qid: rng.sample(["d0", "d1", "d2", "d3", "x", "y"], 4) for qid in truth} for _ in range(2)]
    row = groupgt.compare(truth, {"a": runs[0], "b": runs[1]}, ["recall"])["b"]["recall"]
    counts = [
        len({"d0", "d1", "d2", "d3"} & set(runs[1][qid])) - len({"d0", "d1", "d2", "d3"} & set(runs[0][qid]))
        for qid in truth
    ]
    far = sum(
        abs(sum(sign * count for sign, count in zip(signs, counts))) >= abs(sum(counts))
        for signs in product((1, -1), repeat=9)
    )
    assert row.raw_p_value == float(Fraction(far, 2**9))


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    rng = random.Random(1)
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.5)}

    def figures(seed: int) -> list[float]:
        row = groupgt.compare(TRUTH, runs, ["mrr"], seed=seed, test="bootstrap", resamples=500)["b"]["mrr"]
        return [*row.interval, *row.delta_interval, row.p_value]

    assert figures(1) == figures(1)
    assert figures(1) != figures(2)


def test_a_row_does_not_depend_on_the_other_systems_or_metrics() -> None:
    rng = random.Random(1)
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.5), "c": run_of(rng, 0.9)}
    few = groupgt.compare(TRUTH, {"a": runs["a"], "b": runs["b"]}, ["mrr"], correction="none")
    many = groupgt.compare(TRUTH, runs, ["recall@2", "mrr", "ndcg"], correction="none")
    assert few["b"]["mrr"] == many["b"]["mrr"]


@pytest.mark.parametrize("metric", registered(), ids=str)
def test_every_metric_can_be_compared(metric: groupgt.Metric) -> None:
    rng = random.Random(2)
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.8)}
    table = groupgt.compare(TRUTH, runs, [metric], resamples=200, corpus=WORDS)
    text = next(iter(table.metrics))
    row = table["b"][text]
    difference = table.systems[1].values[text] - table.systems[0].values[text]
    assert row.delta == pytest.approx(np.nanmean(difference), abs=1e-12)
    better = difference > 1e-12 if metric.higher_is_better else difference < -1e-12
    assert row.wins == int(better.sum())
    assert row.wins + row.ties + row.losses == row.pairs
    assert 0 < row.p_value <= 1
    low, high = row.delta_interval
    assert low <= row.delta <= high
    low, high = row.interval
    assert low <= row.mean <= high


def test_missing_queries_count_as_the_policy_says() -> None:
    truth = {"p": [["a"]], "q": [["a"]], "r": [["a"]], "s": []}
    whole = {"p": ["a"], "q": ["a"], "r": ["x"]}
    part = {"p": ["a"], "r": ["a"]}
    zero = groupgt.compare(truth, {"whole": whole, "part": part}, ["recall"])["part"]["recall"]
    # Differences 0, -1, 1.
    assert (zero.pairs, zero.unpaired, zero.delta, zero.mean, zero.queries) == (3, 0, 0.0, 2 / 3, 3)
    table = groupgt.compare(truth, {"whole": whole, "part": part}, ["recall"], policy={"missing": "skip"})
    skip = table["part"]["recall"]
    # Of the two queries that count for both the differences are 0 and 1; q counts for the baseline alone.
    assert (skip.pairs, skip.unpaired, skip.delta, skip.mean, skip.queries) == (2, 1, 0.5, 1.0, 2)
    assert any("count for one of the two alone" in line and "part in recall 1" in line for line in table.warnings)


def test_nothing_that_counts_is_no_number() -> None:
    table = groupgt.compare({"q": []}, {"a": {"q": ["x"]}, "b": {"q": ["y"]}}, ["recall"])
    row = table["b"]["recall"]
    assert math.isnan(row.p_value)
    assert row.pairs == 0
    plain = table.to_dict()["rows"][1]
    assert plain["mean"] is plain["interval"] is plain["against_baseline"]["p_value"] is None
    assert "–" in str(table)


def test_too_few_that_differ_is_said() -> None:
    """Five queries differ: the smallest p is 2/2^5 = .0625."""
    truth = {f"q{n}": [["a"]] for n in range(40)}
    none = {qid: ["x", "a"] for qid in truth}
    five = {qid: ["a"] if qid in ("q1", "q2", "q3", "q4", "q5") else ["x", "a"] for qid in truth}
    table = groupgt.compare(truth, {"none": none, "five": five}, ["recall@1"])
    assert table["five"]["recall@1"].p_value == 0.0625
    (warning,) = table.warnings
    assert "fewer than 6 queries differ" in warning
    assert "five in recall@1 (5)" in warning
    six = {**five, "q6": ["a"]}
    assert groupgt.compare(truth, {"none": none, "six": six}, ["recall@1"]).warnings == []


def test_slices_are_the_same_comparison_of_their_queries() -> None:
    rng = random.Random(3)
    groups = {qid: [["a"], ["c"]] if at % 3 else [["b"]] for at, qid in enumerate(QUERIES)}
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.9)}
    table = groupgt.compare(groups, runs, ["recall@2"], by=["n_groups", "n_alternatives"], correction="none")
    assert [(part.by, part.value, part.queries) for part in table.slices] == [
        ("n_groups", "1", 8),
        ("n_groups", "2", 16),
        ("n_alternatives", "1", 8),
        ("n_alternatives", "2", 16),
    ]
    for part in table.slices[:2]:
        own = {qid: each for qid, each in groups.items() if len(each) == int(part.value)}
        alone = groupgt.compare(own, runs, ["recall@2"], correction="none")
        assert list(part.rows) == alone.rows


def test_p_values_of_slices_are_corrected_over_their_table(table: groupgt.Comparison) -> None:
    (part,) = table.slices
    assert [row.p_value for row in part.rows if row.against] == [row.p_value for row in table.rows if row.against]


def test_reversals_and_extremes_are_told() -> None:
    truth = groupgt.GroundTruth.from_rows(
        [f"q{n}" for n in range(10)],
        [[["a"]]] * 10,
        groupgt.Policy(),
        columns={"kind": ["often"] * 8 + ["seldom"] * 2},
    )
    base = {f"q{n}": ["a"] if n >= 8 else ["x"] for n in range(10)}
    other = {f"q{n}": ["x"] if n >= 8 else ["a"] for n in range(10)}
    table = groupgt.compare(truth, {"base": base, "other": other}, ["recall"], by="kind")
    ((whole, part, row),) = table.reversals()
    # +8/10 - 2/10 over all, -1 where kind is seldom.
    assert (whole.delta, part.value, row.delta) == (pytest.approx(0.6), "seldom", -1.0)
    text = str(table)
    assert "other gains most where kind = often (+1.0000, 8 queries) and loses most where kind = seldom" in text
    assert "1 slice goes the other way than the whole, not significantly; such as other gains +0.6000 in recall" in text
    assert "and loses -1.0000 where kind = seldom (2 queries, p (holm) 0.5000)" in text


def test_lower_is_better_where_it_is() -> None:
    truth = {f"q{n}": [["a", "b"], ["c"]] for n in range(12)}
    clean, redundant = {qid: ["a", "c"] for qid in truth}, {qid: ["a", "b"] for qid in truth}
    table = groupgt.compare(truth, {"redundant": redundant, "clean": clean}, ["redundancy"])
    row = table["clean"]["redundancy"]
    assert (row.delta, row.wins, row.losses) == (-0.5, 12, 0)
    assert table.headroom[0].best == "clean"


def test_every_two_systems() -> None:
    rng = random.Random(4)
    runs = {name: run_of(rng, quality) for name, quality in (("a", 0.0), ("b", 0.5), ("c", 0.9))}
    table = groupgt.compare(TRUTH, runs, ["mrr"], pairs=True, resamples=999)
    assert [(pair.first, pair.second) for pair in table.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    against = {pair.second: pair for pair in table.pairs if pair.first == "a"}
    for name in ("b", "c"):
        assert against[name].against.delta == -table[name]["mrr"].delta
        assert against[name].against.raw_p_value == table[name]["mrr"].raw_p_value
        # One range for all pairs can only be less certain than a test of one pair.
        assert against[name].tukey >= against[name].against.raw_p_value
    assert "Tukey's HSD" in str(table)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"test": "randomisation"}, "did you mean 'randomization'"),
        ({"correction": "fdr"}, "expected holm, bonferroni or none"),
        ({"alpha": 0}, "alpha: expected a number above 0 and below 1, found 0"),
        ({"intervals": 95}, "intervals: expected a number above 0 and below 1, found 95"),
        ({"resamples": 0}, "resamples: expected a whole number from 1"),
        ({"resamples": 10.5}, "resamples: expected a whole number"),
        ({"seed": -1}, "seed: expected a whole number from 0"),
        ({"correction": []}, "correction: expected holm"),
        ({"pairs": "x"}, "pairs: expected true or false"),
        ({"baseline": 5}, "baseline: expected the name of a run"),
        ({"baseline": "bse"}, r"baseline: expected one of base, other, found 'bse' \(did you mean 'base'"),
    ],
)
def test_settings_that_are_none(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        groupgt.compare({"q": [["a"]]}, {"base": {"q": ["a"]}, "other": {"q": ["x"]}}, ["recall"], **options)


def test_all_settings_at_fault_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        Settings(test="x", correction="y", alpha=2, resamples=0)
    assert error.value.total == 4


def test_runs_that_cannot_be_told_apart(tmp_path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bm25.trec").write_text("q Q0 a 1 1 t\n")
    with pytest.raises(DataError, match="the run 'bm25' stands twice"):
        groupgt.compare({"q": [["a"]]}, [tmp_path / "one" / "bm25.trec", tmp_path / "two" / "bm25.trec"], ["recall"])
    for runs in ({}, {"one": {"q": ["a"]}}):
        with pytest.raises(ConfigError, match="at least two to compare"):
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


def test_many_queries_that_differ_raise_no_warning() -> None:
    """The number of sign patterns, 2^1,500, is no double."""
    truth = {f"q{n}": [["a"], ["b"]] for n in range(1500)}
    runs = {"a": {qid: ["a"] for qid in truth}, "b": {qid: ["a", "b"] for qid in truth}}
    row = groupgt.compare(truth, runs, ["recall"], resamples=99)["b"]["recall"]
    assert (row.differ, row.p_value) == (1500, 0.01)


def test_slices_are_a_partition_whatever_the_column_holds() -> None:
    """Values that print alike are one slice; 1, 1.0 and True are three."""
    values = [1, 1.0, True, "1", None, "(none)", "x", 2, 10]
    truth = groupgt.GroundTruth.from_rows(
        [f"q{n}" for n in range(9)], [[["a"]]] * 9, groupgt.Policy(), columns={"kind": values}
    )
    found = groupgt.evaluate(truth, {"q0": ["a"]}, ["recall"], by="kind").slices
    assert [(part["value"], part["queries"]) for part in found] == [
        ("1", 2),
        ("1.0", 1),
        ("True", 1),
        ("2", 1),
        ("10", 1),
        ("x", 1),
        ("(none)", 2),
    ]


def test_small_values_are_measured_by_their_own_scale() -> None:
    """precision.trec@1000000 is at most 2e-6: its intervals and tests are those of precision.trec@2, scaled."""
    rng = random.Random(6)
    runs = {"a": run_of(rng, 0.0), "b": run_of(rng, 0.9)}
    deep = {name: {qid: ids[:2] for qid, ids in run.items()} for name, run in runs.items()}
    table = groupgt.compare(TRUTH, deep, ["precision.trec@2", "precision.trec@1000000"], test="bootstrap")
    near, far = table["b"].values()
    assert far.delta == pytest.approx(near.delta * 2e-6)
    assert far.raw_p_value == pytest.approx(near.raw_p_value, abs=0.002)
    assert far.delta_interval[0] < far.delta < far.delta_interval[1]


def test_columns_with_too_many_values_are_left_out_and_named() -> None:
    truth = groupgt.GroundTruth.from_rows(
        [f"q{n}" for n in range(300)],
        [[["a"]]] * 300,
        groupgt.Policy(),
        columns={"number": list(range(300)), "kind": [n % 12 for n in range(300)]},
    )
    runs = {name: {f"q{n}": [first, "a"] for n in range(300)} for name, first in (("one", "x"), ("two", "a"))}
    table = groupgt.compare(truth, runs, ["mrr"], by=["number", "kind"], resamples=99)
    assert {part.by for part in table.slices} == {"kind"}
    text = str(table)
    assert "slices by number are left out: it has 300 values, more than 200" in text
    # Twelve slices do not fit a line: each has a row of its own.
    (header,) = [line for line in text.splitlines() if line.startswith("mrr: delta by kind")]
    assert header.split()[4:] == ["queries", "one", "(mean)", "two"]


def test_a_reversal_that_is_real_is_told_as_one() -> None:
    """Forty queries gain, twelve lose: both significantly (p 2/2^12 in the slice)."""
    truth = groupgt.GroundTruth.from_rows(
        [f"q{n}" for n in range(52)],
        [[["a"]]] * 52,
        groupgt.Policy(),
        columns={"kind": ["often"] * 40 + ["seldom"] * 12},
    )
    base = {f"q{n}": ["a"] if n >= 40 else ["x", "a"] for n in range(52)}
    other = {f"q{n}": ["x", "a"] if n >= 40 else ["a"] for n in range(52)}
    text = str(groupgt.compare(truth, {"base": base, "other": other}, ["recall@1"], by="kind"))
    assert "reversal: other gains +0.5385 in recall@1 over all, and loses -1.0000* where" not in text
    assert "reversal: other gains +0.5385 in recall@1 over all, and loses -1.0000 where kind = seldom" in text
    assert "slices by kind: p corrected (holm) over 2 comparisons" in text


def test_missing_results_are_warned_of() -> None:
    truth = {f"q{n}": [["a"]] for n in range(8)}
    whole = {qid: ["a"] for qid in truth}
    part = {qid: ["a"] for qid in list(truth)[:6]}
    zero = groupgt.compare(truth, {"whole": whole, "part": part}, ["recall"])
    assert "warning: part has no results for 2 of 8 queries, which count as zero" in zero.warnings[0]
    skip = groupgt.compare(truth, {"whole": whole, "part": part}, ["recall"], policy={"missing": "skip"})
    assert not any("no results" in line for line in skip.warnings)


def test_a_column_of_one_value_makes_no_table(table: groupgt.Comparison) -> None:
    assert "every query has n_groups = 2" in str(table)
    assert "delta by n_groups" not in str(table)


def test_what_a_row_offers() -> None:
    runs = {"a": {"q": ["x"]}, "b": {"q": ["a"]}}
    row = groupgt.compare({"q": [["a"]]}, runs, ["recall"])["b"]["recall"]
    assert {"delta", "p_value", "raw_p_value", "wins", "differ"} <= set(dir(row))
    with pytest.raises(TypeError, match=r"compare\(\) got an unexpected keyword argument 'bsaeline'"):
        groupgt.compare({"q": [["a"]]}, runs, ["recall"], bsaeline="a")


def test_holm_may_show_what_bonferroni_cannot() -> None:
    """Of two comparisons the second of Holm is not multiplied: six queries that differ (p 2/2^6) reach .05 there."""
    truth = {f"q{n}": [["a"]] for n in range(60)}
    base = {qid: ["x", "a"] for qid in truth}
    six = {qid: ["a"] if at < 6 else ["x", "a"] for at, qid in enumerate(truth)}
    runs = {"base": base, "all": {qid: ["a"] for qid in truth}, "six": six}
    holm = groupgt.compare(truth, runs, ["recall@1"])
    assert holm["six"]["recall@1"].significant
    assert holm.warnings == []
    bonferroni = groupgt.compare(truth, runs, ["recall@1"], correction="bonferroni")
    assert not bonferroni["six"]["recall@1"].significant
    assert "fewer than 7 queries differ" in bonferroni.warnings[0]
